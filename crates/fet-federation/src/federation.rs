//! The secondaries as the trainer sees them: a group of parties that answer messages, on several threads if there are
//! enough, and a count of the bytes sent.
//!
//! It cannot look into a party. A reply is data: if it does not fit the request, [`Asked`] makes an error that names
//! party, message and round.

use fet_core::message::{CodecError, Reply, Request, Round};
use fet_core::party::{Failure, Party, Refusal};

pub use fet_eval::records::Traffic;

/// All secondary parties.
pub struct Federation {
    parties: Vec<Box<dyn Party>>,
    threads: usize,
    /// By party, in their order.
    traffic: Vec<Traffic>,
}

/// A party and the request it was sent, for errors about its reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The party's name.
    pub party: String,
    /// Its number, from 1.
    pub number: usize,
    /// The request.
    pub message: &'static str,
    /// The request's round, if it has one.
    pub round: Option<Round>,
}

/// A request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("party \"{}\", {}{}: {problem}", asked.party, asked.message, round(asked))]
pub struct PartyError {
    /// The party and the request.
    pub asked: Box<Asked>,
    /// What went wrong.
    pub problem: Box<Problem>,
}

fn round(asked: &Asked) -> String {
    asked.round.map_or_else(String::new, |round| format!(" in {round}"))
}

impl PartyError {
    /// Whether the party's program was started again: the run can go back to its last checkpoint with it.
    pub fn is_restart(&self) -> bool {
        *self.problem == Problem::Restarted
    }

    /// Whether the party could not be reached: the run can be resumed when it can.
    pub fn is_unreached(&self) -> bool {
        matches!(*self.problem, Problem::Unreached(_))
    }
}

/// What went wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The party refuses.
    #[error(transparent)]
    Refused(Refusal),
    /// It no longer answers.
    #[error("it no longer answers")]
    Gone,
    /// Its program was started again and knows nothing of the run: the run must go back to its last checkpoint.
    #[error("its program was started again")]
    Restarted,
    /// It cannot be reached.
    #[error("{0}")]
    Unreached(String),
    /// The reply cannot be decoded.
    #[error(transparent)]
    Unreadable(CodecError),
    /// A reply of the wrong kind.
    #[error("it answered with {found}")]
    Unexpected {
        /// The name of the reply.
        found: &'static str,
    },
    /// A reply that does not fit.
    #[error("`{field}` {rule}; it is {value}")]
    Wrong {
        /// The field of the reply.
        field: &'static str,
        /// The rule.
        rule: String,
        /// Its value.
        value: String,
    },
}

impl Asked {
    /// An error about this request.
    pub fn failed(self, problem: Problem) -> PartyError {
        PartyError { asked: Box::new(self), problem: Box::new(problem) }
    }

    /// The error for a reply of the wrong kind.
    pub fn unexpected(self, reply: &Reply) -> PartyError {
        self.failed(Problem::Unexpected { found: reply.name() })
    }

    /// The error for a reply with a field that breaks a rule.
    pub fn wrong(self, field: &'static str, rule: impl ToString, value: impl ToString) -> PartyError {
        self.failed(Problem::Wrong { field, rule: rule.to_string(), value: value.to_string() })
    }
}

/// The result of a request; `None` if the party was lost.
pub type Answered = (Asked, Option<Reply>);

impl Federation {
    /// A federation of `parties`, of which up to `threads` compute at a time.
    pub fn new(parties: Vec<Box<dyn Party>>, threads: usize) -> Self {
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

    /// The name of party `index` (from 0).
    pub fn name(&self, index: usize) -> &str {
        self.parties[index].name()
    }

    /// The bytes sent so far, to and from all parties together.
    pub fn traffic(&self) -> Traffic {
        self.traffic.iter().fold(Traffic::default(), |sum, party| Traffic {
            sent: sum.sent + party.sent,
            received: sum.received + party.received,
        })
    }

    /// The bytes sent so far, for each party.
    pub fn traffic_by_party(&self) -> &[Traffic] {
        &self.traffic
    }

    /// Continues the byte counts of an interrupted run.
    pub(crate) fn restore_traffic(&mut self, traffic: Vec<Traffic>) {
        if traffic.len() == self.traffic.len() {
            self.traffic = traffic;
        }
    }

    /// Sends each of the parties numbered `to` (ascending, from 0) its request, and waits for all answers, in the same order.
    pub fn ask_each(&mut self, to: &[usize], requests: Vec<Request>) -> Vec<(Asked, Result<Reply, Problem>)> {
        let mut asked = Vec::with_capacity(to.len());
        for (&party, request) in to.iter().zip(&requests) {
            self.traffic[party].sent += request.payload();
            asked.push(Asked {
                party: self.parties[party].name().to_string(),
                number: party + 1,
                message: request.name(),
                round: request.round(),
            });
        }
        let mut chosen = to.iter().copied().peekable();
        let parties = self.parties.iter_mut().enumerate();
        let parties = parties.filter_map(|(index, party)| chosen.next_if_eq(&index).map(|_| party));
        let work: Vec<_> = parties.zip(requests).collect();
        let answers = if self.threads == 1 || work.len() == 1 {
            work.into_iter().map(|(party, request)| party.ask(request)).collect()
        } else {
            on_threads(work, self.threads)
        };
        let problem = |failure| match failure {
            Failure::Gone => Problem::Gone,
            Failure::Restarted => Problem::Restarted,
            Failure::Unreached(how) => Problem::Unreached(how),
            Failure::Refused(refusal) => Problem::Refused(refusal),
            Failure::Unreadable(error) => Problem::Unreadable(error),
            other => Problem::Refused(Refusal::new(other)),
        };
        for (&party, answer) in to.iter().zip(&answers) {
            self.traffic[party].received += answer.as_ref().map_or(0, Reply::payload);
        }
        asked.into_iter().zip(answers).map(|(asked, answer)| (asked, answer.map_err(problem))).collect()
    }

    /// Sends each of the parties its request. A lost party has no reply; a refusal is an error.
    pub fn exchange(&mut self, to: &[usize], requests: Vec<Request>) -> Result<Vec<Answered>, PartyError> {
        let answers = self.ask_each(to, requests).into_iter();
        let answered = answers.map(|(asked, answer)| match answer {
            Ok(reply) => Ok((asked, Some(reply))),
            Err(Problem::Gone) => Ok((asked, None)),
            Err(problem) => Err(asked.failed(problem)),
        });
        answered.collect()
    }

    /// The same, except that a lost party is an error.
    pub fn exchange_all(
        &mut self,
        to: &[usize],
        requests: Vec<Request>,
    ) -> Result<Vec<(Asked, Reply)>, PartyError> {
        let answered = self.exchange(to, requests)?;
        let here = |(asked, reply): Answered| match reply {
            Some(reply) => Ok((asked, reply)),
            None => Err(asked.failed(Problem::Gone)),
        };
        answered.into_iter().map(here).collect()
    }

    /// Sends one party a request.
    pub fn exchange_one(&mut self, to: usize, request: Request) -> Result<(Asked, Reply), PartyError> {
        let mut answered = self.exchange_all(&[to], vec![request])?;
        Ok(answered.pop().expect("one party was asked"))
    }

    /// Sends each of the parties numbered `to` a request whose only valid reply is [`Reply::Done`].
    pub fn command(&mut self, to: &[usize], requests: Vec<Request>) -> Result<(), PartyError> {
        for (asked, reply) in self.exchange_all(to, requests)? {
            if !matches!(reply, Reply::Done) {
                return Err(asked.unexpected(&reply));
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Federation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Federation({} parties)", self.parties.len())
    }
}

type Answer = Result<Reply, Failure>;
/// A party and its request.
type Task<'a> = (&'a mut Box<dyn Party>, Request);

/// Party i works on thread i mod `threads`, so that the division does not depend on timing. The first of them is this one, which may be
/// one of those that share the kernels' work.
fn on_threads(work: Vec<Task<'_>>, threads: usize) -> Vec<Answer> {
    let count = work.len();
    let mut shares: Vec<Vec<_>> = (0..threads.min(count)).map(|_| Vec::new()).collect();
    let lanes = shares.len();
    for (index, item) in work.into_iter().enumerate() {
        shares[index % lanes].push((index, item));
    }
    let mut answers: Vec<Option<Answer>> = (0..count).map(|_| None).collect();
    std::thread::scope(|scope| {
        let run = |share: Vec<(usize, Task<'_>)>| {
            share.into_iter().map(|(index, (party, request))| (index, party.ask(request))).collect::<Vec<_>>()
        };
        let mut shares = shares.into_iter();
        let own = shares.next().unwrap_or_default();
        let handles: Vec<_> = shares.map(|share| scope.spawn(move || run(share))).collect();
        let own = run(own);
        let others = handles.into_iter().flat_map(|handle| match handle.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        own.into_iter().chain(others).for_each(|(index, answer)| answers[index] = Some(answer));
    });
    answers.into_iter().map(|answer| answer.expect("every party was asked on some thread")).collect()
}
