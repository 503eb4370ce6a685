//! The secondaries as the trainer meets them: a group that answers messages, on threads where that pays,
//! with a meter of the bytes a deployment would have sent.

pub use fet_records::Traffic;

use crate::protocol::{Reply, Request};
use crate::secondary::{Secondary, SecondaryError};

/// All secondary parties.
#[derive(Debug)]
pub struct Federation {
    parties: Vec<Secondary>,
    threads: usize,
    /// By party, in their order.
    traffic: Vec<Traffic>,
}

impl Federation {
    /// `parties`, of which up to `threads` compute at a time.
    pub fn new(parties: Vec<Secondary>, threads: usize) -> Self {
        let traffic = vec![Traffic::default(); parties.len()];
        Self { parties, threads: threads.max(1), traffic }
    }

    /// How many parties there are.
    pub fn len(&self) -> usize {
        self.parties.len()
    }

    /// Whether there is no party.
    pub fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }

    /// What has been sent so far, to and from all parties together.
    pub fn traffic(&self) -> Traffic {
        self.traffic.iter().fold(Traffic::default(), |sum, party| Traffic {
            sent: sum.sent + party.sent,
            received: sum.received + party.received,
        })
    }

    /// What has been sent so far, party by party.
    pub fn traffic_by_party(&self) -> &[Traffic] {
        &self.traffic
    }

    /// Continues the meters of an interrupted run. Those of another number of parties are left aside.
    pub fn restore_traffic(&mut self, traffic: Vec<Traffic>) {
        if traffic.len() == self.traffic.len() {
            self.traffic = traffic;
        }
    }

    /// The parties, for saving and loading their models; not a message.
    pub fn parties(&self) -> &[Secondary] {
        &self.parties
    }

    /// The parties, for saving and loading their models; not a message.
    pub fn parties_mut(&mut self) -> &mut [Secondary] {
        &mut self.parties
    }

    /// Sends each of the parties numbered `to` (ascending, from 0) its request, and waits for all replies,
    /// in the same order.
    pub fn exchange(&mut self, to: &[usize], requests: Vec<Request>) -> Result<Vec<Reply>, SecondaryError> {
        for (&party, request) in to.iter().zip(&requests) {
            self.traffic[party].sent += request.bytes();
        }
        let mut chosen = to.iter().copied().peekable();
        let parties = self.parties.iter_mut().enumerate();
        let parties = parties.filter_map(|(index, party)| chosen.next_if_eq(&index).map(|_| party));
        let work: Vec<_> = parties.zip(requests).collect();
        let replies = if self.threads == 1 || work.len() == 1 {
            work.into_iter().map(|(party, request)| party.handle(request)).collect()
        } else {
            on_threads(work, self.threads)
        };
        let replies = replies.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (&party, reply) in to.iter().zip(&replies) {
            self.traffic[party].received += reply.bytes();
        }
        Ok(replies)
    }

    /// Sends every party the same request.
    pub fn broadcast(&mut self, request: &Request) -> Result<Vec<Reply>, SecondaryError> {
        let everyone: Vec<usize> = (0..self.len()).collect();
        self.exchange(&everyone, vec![request.clone(); self.len()])
    }
}

type Answer = Result<Reply, SecondaryError>;

/// Party i works on thread i mod `threads`, so that the division does not depend on timing.
fn on_threads(work: Vec<(&mut Secondary, Request)>, threads: usize) -> Vec<Answer> {
    let count = work.len();
    let mut shares: Vec<Vec<_>> = (0..threads.min(count)).map(|_| Vec::new()).collect();
    let lanes = shares.len();
    for (index, item) in work.into_iter().enumerate() {
        shares[index % lanes].push((index, item));
    }
    let mut answers: Vec<Option<Answer>> = (0..count).map(|_| None).collect();
    std::thread::scope(|scope| {
        let run = |share: Vec<(usize, (&mut Secondary, Request))>| {
            share
                .into_iter()
                .map(|(index, (party, request))| (index, party.handle(request)))
                .collect::<Vec<_>>()
        };
        let handles: Vec<_> = shares.into_iter().map(|share| scope.spawn(move || run(share))).collect();
        for handle in handles {
            match handle.join() {
                Ok(done) => done.into_iter().for_each(|(index, answer)| answers[index] = Some(answer)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    answers.into_iter().map(|answer| answer.expect("every party was asked on some thread")).collect()
}
