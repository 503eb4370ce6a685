//! The secondaries as the trainer sees them: a group of parties that answer messages, and a count of the
//! bytes sent.
//!
//! Several parties compute in parallel if there are enough threads. The federation cannot access a party's
//! state. It treats a reply as data: if the reply does not fit the request, [`SentRequest`] makes an error
//! that names party, message and round.

use fet_core::message::{CodecError, Reply, Request, Round};
use fet_core::party::{Failure, Party, Refusal};

pub use fet_eval::records::Traffic;
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

/// All secondary parties.
pub struct Federation {
    parties: Vec<Box<dyn Party>>,
    threads: usize,
    /// Traffic by party, in their order.
    traffic: Vec<Traffic>,
    /// Parties that dropped out, from 0, in the order of their dropout; the primary does not contact them
    /// again.
    dropped: Vec<usize>,
}

/// A secondary party. Programs count parties from 0; people and the terms of a run count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyIndex(usize);

impl PartyIndex {
    /// Makes the index of a party that is counted from 0.
    pub fn new(index: usize) -> Self {
        Self(index)
    }

    /// Makes the index of a party with this number, counted from 1; `None` for 0.
    pub fn from_number(number: usize) -> Option<Self> {
        number.checked_sub(1).map(Self)
    }

    /// Returns the party's place among the secondaries, from 0.
    pub fn index(self) -> usize {
        self.0
    }

    /// Returns the party's number, from 1.
    pub fn number(self) -> usize {
        self.0 + 1
    }

    /// Returns the party's place in the form of messages, from 0.
    pub(crate) fn in_message(self) -> u32 {
        self.0 as u32
    }
}

impl std::fmt::Display for PartyIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "party {}", self.number())
    }
}

/// A request that a party was sent, for errors about its reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// The party's name.
    pub party: String,
    /// The party.
    pub index: PartyIndex,
    /// Name of the request.
    pub message: &'static str,
    /// The request's round, if it has one.
    pub round: Option<Round>,
}

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("party \"{}\", {}{}: {problem}", sent.party, sent.message, round(sent))]
pub struct PartyError {
    /// The party and the request.
    pub sent: Box<SentRequest>,
    /// The problem.
    pub problem: Box<Problem>,
}

fn round(sent: &SentRequest) -> String {
    sent.round.map_or_else(String::new, |round| format!(" in {round}"))
}

impl PartyError {
    /// Returns true if the party's program was restarted: the run can return to its last checkpoint with this
    /// party.
    pub fn is_restart(&self) -> bool {
        *self.problem == Problem::Restarted
    }

    /// Returns true if the party refused because it is busy: the same command may succeed later.
    pub fn is_not_now(&self) -> bool {
        matches!(&*self.problem, Problem::Refused(refusal) if refusal.is_not_now())
    }

    /// Returns true if the party could not be reached: the run can be resumed when the party is available
    /// again.
    pub fn is_unreached(&self) -> bool {
        matches!(*self.problem, Problem::Unreached(_))
    }
}

/// The problem with a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The party refused the request.
    #[error(transparent)]
    Refused(Refusal),
    /// The party no longer answers.
    #[error("it no longer answers")]
    Gone,
    /// The party's program was restarted and has lost its state of the run: the run must return to its last
    /// checkpoint.
    #[error("its program was restarted")]
    Restarted,
    /// The party cannot be reached.
    #[error("{0}")]
    Unreached(String),
    /// The reply cannot be decoded.
    #[error(transparent)]
    Unreadable(CodecError),
    /// The reply has the wrong kind.
    #[error("it sent the reply {found}")]
    Unexpected {
        /// Name of the reply.
        found: &'static str,
    },
    /// A field of the reply breaks a rule.
    #[error("`{field}` {rule}; it is {value}")]
    Wrong {
        /// Field of the reply.
        field: &'static str,
        /// The rule that the value breaks.
        rule: String,
        /// Value of the field.
        value: String,
    },
}

impl SentRequest {
    /// Makes an error about this request.
    pub fn failed(self, problem: Problem) -> PartyError {
        PartyError { sent: Box::new(self), problem: Box::new(problem) }
    }

    /// Makes the error for a reply of the wrong kind.
    pub fn unexpected(self, reply: &Reply) -> PartyError {
        self.failed(Problem::Unexpected { found: reply.name() })
    }

    /// Makes the error for a reply with a field that breaks a rule.
    pub fn wrong(self, field: &'static str, rule: impl ToString, value: impl ToString) -> PartyError {
        self.failed(Problem::Wrong { field, rule: rule.to_string(), value: value.to_string() })
    }
}

/// Result of a request; `None` if the party dropped out.
pub type Answered = (SentRequest, Option<Reply>);

impl Federation {
    /// Makes a federation of `parties` without the `dropped` ones (from 0); up to `threads` parties
    /// compute in parallel.
    pub fn new(parties: Vec<Box<dyn Party>>, dropped: Vec<usize>, threads: usize) -> Self {
        let traffic = vec![Traffic::default(); parties.len()];
        Self { parties, threads: threads.max(1), traffic, dropped }
    }

    /// Returns the active parties, from 0, ascending.
    pub fn active(&self) -> Vec<usize> {
        (0..self.len()).filter(|party| !self.dropped.contains(party)).collect()
    }

    /// Returns the parties that dropped out, from 0, in the order of their dropout.
    pub fn dropped(&self) -> &[usize] {
        &self.dropped
    }

    /// Records parties that dropped out.
    pub(crate) fn drop_out(&mut self, parties: impl IntoIterator<Item = usize>) {
        self.dropped.extend(parties);
    }

    /// Returns the number of parties.
    pub fn len(&self) -> usize {
        self.parties.len()
    }

    /// Returns true if the federation is empty.
    pub fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }

    /// Returns the maximum number of parties that compute in parallel.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the name of party `index` (from 0).
    pub fn name(&self, index: usize) -> &str {
        self.parties[index].name()
    }

    /// Returns the bytes sent so far to and from all parties together.
    pub fn traffic(&self) -> Traffic {
        self.traffic.iter().fold(Traffic::default(), |sum, party| Traffic {
            sent: sum.sent + party.sent,
            received: sum.received + party.received,
        })
    }

    /// Returns the bytes sent so far, by party.
    pub fn traffic_by_party(&self) -> &[Traffic] {
        &self.traffic
    }

    /// Continues with the dropped-out parties of an interrupted run.
    pub(crate) fn restore_dropped(&mut self, dropped: Vec<usize>) {
        self.dropped = dropped;
    }

    /// Continues the byte counts of an interrupted run.
    pub(crate) fn restore_traffic(&mut self, traffic: Vec<Traffic>) {
        if traffic.len() == self.traffic.len() {
            self.traffic = traffic;
        }
    }

    /// Sends each of the parties numbered `to` (ascending, from 0) its request, and waits for all answers.
    /// The answers have the same order.
    pub fn ask_each(
        &mut self,
        to: &[usize],
        requests: Vec<Request>,
    ) -> Vec<(SentRequest, Result<Reply, Problem>)> {
        let mut sent = Vec::with_capacity(to.len());
        for (&party, request) in to.iter().zip(&requests) {
            self.traffic[party].sent += request.payload();
            sent.push(SentRequest {
                party: self.parties[party].name().to_string(),
                index: PartyIndex::new(party),
                message: request.name(),
                round: request.round(),
            });
        }
        let mut chosen = to.iter().copied().peekable();
        let parties = self.parties.iter_mut().enumerate();
        let parties = parties.filter_map(|(index, party)| chosen.next_if_eq(&index).map(|_| party));
        let work: Vec<Task<'_>> =
            parties.zip(requests).map(|(party, request)| Task::new(party, request)).collect();
        let answers = if self.threads == 1 || work.len() == 1 {
            work.into_iter().map(Task::ask).collect()
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
        sent.into_iter().zip(answers).map(|(sent, answer)| (sent, answer.map_err(problem))).collect()
    }

    /// Sends each of the parties its request. The reply of a party that dropped out is `None`; a refusal is
    /// an error.
    pub fn exchange(&mut self, to: &[usize], requests: Vec<Request>) -> Result<Vec<Answered>, PartyError> {
        let answers = self.ask_each(to, requests).into_iter();
        let answered = answers.map(|(sent, answer)| match answer {
            Ok(reply) => Ok((sent, Some(reply))),
            Err(Problem::Gone) => Ok((sent, None)),
            Err(problem) => Err(sent.failed(problem)),
        });
        answered.collect()
    }

    /// Sends each of the parties its request. A party that dropped out is an error, as is a refusal.
    pub fn exchange_all(
        &mut self,
        to: &[usize],
        requests: Vec<Request>,
    ) -> Result<Vec<(SentRequest, Reply)>, PartyError> {
        let answered = self.exchange(to, requests)?;
        let reply_of = |(sent, reply): Answered| match reply {
            Some(reply) => Ok((sent, reply)),
            None => Err(sent.failed(Problem::Gone)),
        };
        answered.into_iter().map(reply_of).collect()
    }

    /// Sends one party a request and returns its reply.
    pub fn exchange_one(&mut self, to: usize, request: Request) -> Result<(SentRequest, Reply), PartyError> {
        let mut answered = self.exchange_all(&[to], vec![request])?;
        Ok(answered.pop().expect("one party got a request"))
    }

    /// Sends each of the parties numbered `to` a request whose only valid reply is [`Reply::Done`].
    pub fn command(&mut self, to: &[usize], requests: Vec<Request>) -> Result<(), PartyError> {
        for (sent, reply) in self.exchange_all(to, requests)? {
            if !matches!(reply, Reply::Done) {
                return Err(sent.unexpected(&reply));
            }
        }
        Ok(())
    }

    /// Sends every active party the same request, whose only valid reply is [`Reply::Done`].
    pub fn command_active(&mut self, request: &Request) -> Result<(), PartyError> {
        let active = self.active();
        self.command(&active, vec![request.clone(); active.len()])
    }
}

impl std::fmt::Debug for Federation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Federation({} parties)", self.parties.len())
    }
}

type Answer = Result<Reply, Failure>;

/// A party, its request, and the span of the request.
struct Task<'a> {
    party: &'a mut Box<dyn Party>,
    request: Request,
    span: Span,
}

impl<'a> Task<'a> {
    /// The span becomes a part of the calling thread's span.
    fn new(party: &'a mut Box<dyn Party>, request: Request) -> Self {
        let span = info_span!(
            target: "fet",
            "request",
            otel.name = request.name(),
            otel.kind = "client",
            otel.status_code = Empty,
            party = party.name(),
            round = Empty,
            sent = request.payload() as i64,
            received = Empty,
        );
        if let Some(round) = request.round() {
            span.record("round", display(round));
        }
        Self { party, request, span }
    }

    /// Sends the request and waits for the answer, on any thread.
    fn ask(self) -> Answer {
        let Self { party, request, span } = self;
        let answer = span.in_scope(|| party.ask(request));
        match &answer {
            Ok(reply) => span.record("received", reply.payload() as i64),
            Err(_) => span.record("otel.status_code", "ERROR"),
        };
        answer
    }
}

/// Party i works on thread i mod `threads`, so that the division does not depend on timing. The first thread
/// is the calling one, which may be a worker of the kernels.
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
            share.into_iter().map(|(index, task)| (index, task.ask())).collect::<Vec<_>>()
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
    answers.into_iter().map(|answer| answer.expect("every party got a request on some thread")).collect()
}
