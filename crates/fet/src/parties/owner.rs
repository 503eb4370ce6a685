//! The owner's view of a party: it checks each request against the approvals, and writes each answer into the audit log before the
//! answer leaves.
//!
//! All sessions of a party share one [`Owner`]. A session asks [`OwnerSession::before`] about a request, and passes the answer
//! through [`OwnerSession::after`].

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fet_core::experiment::CommonSettings;
use fet_core::message::{Answer, Parts, Reply, Request};
use fet_core::party::Refusal;
use fet_core::release::ReleaseLoss;
use fet_federation::lifetime::Lifetime;
use fet_federation::outlook::{PartyPlace, PlannedRun, PrimarySize, epsilon_of, release_loss};
use fet_io::input::input;

use super::approval::{Approvals, Asking, Covers, NotApproved, short};
use super::audit_log::{AuditEvent, AuditLog};
use super::greeting::{Greeting, JoinPurpose, one_line};
use super::roster::Roster;
use super::run_id::RunId;
use super::setup::PartySetup;
use crate::reporter::Reporter;

/// Shortest time between two notes about refused programs.
const PAUSE: Duration = Duration::from_secs(60);

/// The primary, the settings and the table of the runs that a party serves.
pub(super) struct Subject {
    pub(super) settings: CommonSettings,
    pub(super) covers: Covers,
    /// Hash of `covers`.
    pub(super) hash: String,
    /// Name and public key of the primary.
    pub(super) primary: String,
    pub(super) place: PartyPlace,
    /// δ at which ε is shown, `policy.most_delta`.
    pub(super) delta: f64,
    /// Folder of the party's own state.
    pub(super) folder: PathBuf,
    /// Loss of a one-time release; `None` without `[release]`.
    pub(super) release: Option<ReleaseLoss>,
}

impl Subject {
    pub(super) fn new(setup: &PartySetup, roster: &Roster) -> anyhow::Result<Self> {
        let primary = roster.primary();
        let settings = setup.experiment.common();
        let covers = Covers {
            settings: settings.terms(),
            primary: primary.identity.to_string(),
            data: fet_io::hex(&fet_io::sha256(setup.data_settings().as_bytes())),
            columns: setup.columns(),
            members: setup.has_sums.then(|| roster.fingerprint()),
            rehearsal: setup.rehearsal,
        };
        let delta = setup.policy().most_delta;
        let release = release_loss(&settings, setup.table()).map_err(input)?;
        Ok(Self {
            hash: covers.hash(),
            settings,
            covers,
            primary: format!("{} {}", primary.name, primary.identity),
            place: setup.place(),
            delta,
            folder: setup.own_folder().to_path_buf(),
            release,
        })
    }

    /// ε of the one-time release at `delta`; `None` without one, or without a bound.
    pub(super) fn release_epsilon(&self) -> Option<f64> {
        let epsilon = epsilon_of(&self.release.as_ref()?.loss, self.delta);
        Some(epsilon).filter(|epsilon| epsilon.is_finite())
    }
}

/// The owner's approvals and audit log.
pub(super) struct Owner {
    required: bool,
    /// Approvals of the state folder, which all rosters with this state share.
    approvals: Arc<Mutex<Approvals>>,
    log: AuditLog,
    /// Time of the last note about a refused program.
    last_program: Mutex<Option<Instant>>,
    subject: Subject,
    reporter: Reporter,
}

impl Owner {
    /// Opens the approvals and the log of a party, and notes its start.
    pub(super) fn open(
        subject: Subject,
        (required, approvals): (bool, Arc<Mutex<Approvals>>),
        reporter: Reporter,
        roster: &str,
    ) -> Result<Arc<Self>, String> {
        let log = AuditLog::open(&subject.folder)?;
        let owner = Self { required, approvals, log, last_program: Mutex::default(), subject, reporter };
        let needs = if required { "required" } else { "not required" };
        let message = format!("approvals are {needs}; the fingerprint of the roster is {roster}");
        owner.note("started", Some(message))?;
        Ok(Arc::new(owner))
    }

    /// Notes the orderly end of the party, and tells the operator the last hash.
    pub(super) fn stopped(&self) {
        match self.note("stopped", None) {
            Ok(head) => self.reporter.tell("log", format_args!("the audit log ends with the hash {head}")),
            Err(problem) => self.reporter.tell("warning", problem),
        }
    }

    fn note(&self, event: &str, message: Option<String>) -> Result<String, String> {
        let event = AuditEvent {
            program: Some(Greeting::party().program),
            primary: Some(self.subject.primary.clone()),
            settings: Some(self.subject.hash.clone()),
            message,
            ..AuditEvent::new(event)
        };
        self.log.record(&event, true).map(|head| head.hash)
    }

    /// Begins a session of the primary's program.
    pub(super) fn session(
        self: &Arc<Self>,
        run: Option<&RunId>,
        purpose: JoinPurpose,
        program: &str,
    ) -> OwnerSession {
        let session = OwnerSession {
            owner: Arc::clone(self),
            run: run.map(ToString::to_string),
            purpose,
            program: program.to_string(),
            approved: None,
            is_barred: false,
            planned: None,
            sent: Sent::default(),
        };
        let joined = AuditEvent {
            primary: Some(self.subject.primary.clone()),
            program: Some(session.program.clone()),
            ..session.event("joined")
        };
        if let Err(problem) = self.log.record(&joined, true) {
            self.reporter.tell("warning", problem);
        }
        session
    }

    /// Notes a program that the party refused before a session, at most once a minute: such programs need no key.
    pub(super) fn refused_program(&self, program: &str, reason: &str) {
        let mut last = self.last_program.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        drop(last);
        let event = AuditEvent {
            primary: Some(self.subject.primary.clone()),
            program: Some(program.to_string()),
            message: Some(one_line(reason)),
            ..AuditEvent::new("refused")
        };
        if let Err(problem) = self.log.record(&event, true) {
            self.reporter.tell("warning", problem);
        }
    }

    fn approvals(&self) -> MutexGuard<'_, Approvals> {
        self.approvals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// ε of a run with this size as planned; `None` if it is unbounded.
    fn plan(&self, rows: usize, parts: &Parts) -> Option<PlannedRun> {
        let Subject { settings, place, .. } = &self.subject;
        let is_identity = settings.privacy.build(&()).map_or(true, |privacy| privacy.is_identity());
        let takes_part = settings.method.build(&()).is_ok_and(|method| method.plan().secondaries);
        if is_identity || !takes_part {
            return None;
        }
        PlannedRun::new(settings, PrimarySize { rows, parts }, *place).ok()
    }
}

/// Returns the problem in the words of the party's log.
fn operators(problem: &NotApproved) -> String {
    match problem {
        NotApproved::Journal(problem) => problem.clone(),
        problem => problem.to_string(),
    }
}

/// Answers of a session.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    /// True once the party agreed to the terms.
    has_agreed: bool,
    rounds: u64,
    bytes: u64,
    /// Number of new records for predictions.
    predictions: u64,
}

/// Approval of a session.
#[derive(Debug, Clone, Copy)]
struct Approved {
    /// Number of the approval.
    approval: u64,
    /// Number of primary rows of the run.
    rows: u64,
    /// True once the run counts against the approval.
    is_counted: bool,
}

/// A request, without its content.
pub(super) struct Asked {
    name: &'static str,
    kind: Kind,
}

enum Kind {
    Join { rows: usize, parts: Parts, settings: String },
    Link { rows: u64 },
    Predict { rows: u64 },
    Release { rows: Option<u64> },
    Round,
    Save,
    Finish,
    Other,
}

impl Asked {
    fn new(request: &Request) -> Self {
        let kind = match request {
            Request::Join(terms) => {
                Kind::Join { rows: terms.rows, parts: terms.parts.clone(), settings: terms.settings.clone() }
            }
            Request::Link(message) => Kind::Link { rows: message.keys.rows() as u64 },
            Request::Predict(message) => Kind::Predict { rows: message.keys.rows() as u64 },
            Request::Release(places) => {
                Kind::Release { rows: places.as_ref().map(|places| places.keys.rows() as u64) }
            }
            Request::Forward(_) | Request::ShareParameters(_) => Kind::Round,
            Request::Save(_) => Kind::Save,
            Request::Finish => Kind::Finish,
            _ => Kind::Other,
        };
        Self { name: request.name(), kind }
    }
}

/// The owner's view of one session. When it is dropped, it writes the session's summary; drop the session's `Secondary` first, so
/// that the lifetime account is complete.
pub(super) struct OwnerSession {
    owner: Arc<Owner>,
    run: Option<String>,
    purpose: JoinPurpose,
    program: String,
    /// Approval under which the party joined.
    approved: Option<Approved>,
    /// True if the party agreed to the terms, but could not record that: nothing more leaves.
    is_barred: bool,
    planned: Option<PlannedRun>,
    sent: Sent,
}

impl OwnerSession {
    /// Refuses a request that the owner has not approved. Only [`OwnerSession::after`] records anything.
    pub(super) fn before(&mut self, request: &Request) -> Result<Asked, Refusal> {
        let asked = Asked::new(request);
        match self.check(&asked) {
            Ok(()) => Ok(asked),
            Err(problem) => {
                self.owner
                    .reporter
                    .tell("refused", format_args!("refused {}: {}", asked.name, operators(&problem)));
                let refusal = Refusal::new(problem.refusal());
                self.refused(asked.name, &refusal);
                Err(refusal)
            }
        }
    }

    fn check(&self, asked: &Asked) -> Result<(), NotApproved> {
        if self.is_barred && !matches!(asked.kind, Kind::Join { .. }) {
            return Err(NotApproved::NotUnderWay);
        }
        if !self.owner.required {
            return Ok(());
        }
        let Subject { settings, covers, .. } = &self.owner.subject;
        let mut approvals = self.owner.approvals();
        if let Kind::Join { rows, settings: theirs, .. } = &asked.kind {
            let Some(run) = &self.run else { return Ok(()) };
            approvals.permit(&Asking { settings, covers, run, rows: *rows as u64 })?;
            return match settings.difference(theirs) {
                None => Ok(()),
                Some((field, ours, theirs)) => {
                    let hash = short(&self.owner.subject.hash);
                    let what = format!("`{field}` is {theirs}; the approval {hash} is for {ours}");
                    Err(NotApproved::Asked { what })
                }
            };
        }
        let Approved { approval, rows: of_run, .. } = self.approved.ok_or(NotApproved::NotUnderWay)?;
        approvals.check_kept(approval)?;
        match asked.kind {
            Kind::Link { rows } | Kind::Release { rows: Some(rows) } => approvals.check_rows(approval, rows),
            Kind::Predict { rows } => approvals.permit_predictions(approval, of_run, rows).map(drop),
            _ => Ok(()),
        }
    }

    /// Records an answer before it leaves. Returns the answer, or a refusal if it cannot be recorded or a quota is used up.
    pub(super) fn after(&mut self, asked: &Asked, answer: Answer) -> Answer {
        match answer {
            Err(refusal) => {
                self.refused(asked.name, &refusal);
                Err(refusal)
            }
            Ok(reply) => {
                let recorded = self.record(asked, &reply);
                if matches!(asked.kind, Kind::Join { .. }) {
                    self.is_barred = recorded.is_err();
                }
                recorded.map(|()| reply).inspect_err(|refusal| self.refused(asked.name, refusal))
            }
        }
    }

    fn record(&mut self, asked: &Asked, reply: &Reply) -> Result<(), Refusal> {
        self.count(asked).map_err(|problem| {
            let reason = operators(&problem);
            self.owner.reporter.tell("refused", format_args!("refused {}: {reason}", asked.name));
            Refusal::new(problem.refusal())
        })?;
        self.sent.bytes += reply.payload();
        let (event, durable) = match &asked.kind {
            Kind::Join { rows, parts, .. } => (self.agreed(*rows, parts, reply), true),
            Kind::Link { rows } => (AuditEvent { rows: Some(*rows), ..self.event("linked") }, false),
            Kind::Predict { rows } => {
                self.sent.predictions += rows;
                (AuditEvent { rows: Some(*rows), ..self.event("predictions") }, false)
            }
            Kind::Release { rows } => {
                // The account knows the number of symbols, on which the loss of a release depends.
                let lifetime = match reply {
                    Reply::Released(released) => released.lifetime,
                    _ => None,
                };
                let (bytes, lifetime_epsilon) =
                    (Some(reply.payload()), lifetime.and_then(|lifetime| lifetime.epsilon));
                (AuditEvent { rows: *rows, bytes, lifetime_epsilon, ..self.event("released") }, true)
            }
            Kind::Save => (self.with_sums("saved"), false),
            Kind::Finish => (self.with_sums("finished"), true),
            Kind::Round => {
                self.sent.rounds += 1;
                return Ok(());
            }
            Kind::Other => return Ok(()),
        };
        self.owner.log.record(&event, durable).map(drop).map_err(|problem| {
            self.owner.reporter.tell("warning", &problem);
            Refusal::new(format!("cannot write its audit log: {}", ending(&problem)))
        })
    }

    /// Counts a run or predictions against the approval. A run counts with its first request after the agreement, so that a run
    /// that another party refuses costs nothing.
    fn count(&mut self, asked: &Asked) -> Result<(), NotApproved> {
        if !self.owner.required {
            return Ok(());
        }
        let run = self.run.as_ref().ok_or(NotApproved::NotUnderWay)?;
        let Subject { settings, covers, .. } = &self.owner.subject;
        if let Kind::Join { rows, .. } = &asked.kind {
            let asking = Asking { settings, covers, run, rows: *rows as u64 };
            let approval = self.owner.approvals().permit(&asking)?;
            self.approved = Some(Approved { approval, rows: *rows as u64, is_counted: false });
            return Ok(());
        }
        let approved = self.approved.as_mut().ok_or(NotApproved::NotUnderWay)?;
        if !approved.is_counted {
            let asking = Asking { settings, covers, run, rows: approved.rows };
            (approved.approval, approved.is_counted) = (self.owner.approvals().claim(&asking)?, true);
        }
        if let Kind::Predict { rows } = asked.kind {
            approved.approval =
                self.owner.approvals().count_predictions(approved.approval, approved.rows, rows)?;
        }
        Ok(())
    }

    fn agreed(&mut self, rows: usize, parts: &Parts, reply: &Reply) -> AuditEvent {
        self.sent.has_agreed = true;
        self.planned = match self.purpose {
            JoinPurpose::Run => self.owner.plan(rows, parts),
            JoinPurpose::Predictions => None,
        };
        let subject = &self.owner.subject;
        let lifetime = match reply {
            Reply::Joined(joined) => joined.lifetime.and_then(|lifetime| lifetime.epsilon),
            _ => None,
        };
        AuditEvent {
            primary: Some(subject.primary.clone()),
            program: Some(self.program.clone()),
            settings: Some(subject.hash.clone()),
            rows: Some(rows as u64),
            epsilon: self
                .planned
                .as_ref()
                .and_then(|planned| planned.epsilon(subject.delta))
                .or(subject.release_epsilon()),
            lifetime_epsilon: lifetime,
            ..self.event("agreed")
        }
    }

    fn refused(&self, request: &str, refusal: &Refusal) {
        let event = AuditEvent {
            request: Some(request.to_string()),
            message: Some(one_line(&refusal.reason)),
            ..self.event("refused")
        };
        if let Err(problem) = self.owner.log.record(&event, true) {
            self.owner.reporter.tell("warning", problem);
        }
    }

    fn event(&self, event: &str) -> AuditEvent {
        let purpose = serde_json::json!(self.purpose).as_str().map(String::from);
        AuditEvent {
            run: self.run.clone(),
            purpose,
            approval: self.approved.map(|approved| approved.approval),
            ..AuditEvent::new(event)
        }
    }

    /// An event with the sums of the session.
    fn with_sums(&self, event: &str) -> AuditEvent {
        let Sent { rounds, bytes, predictions, .. } = self.sent;
        let rows = (predictions > 0).then_some(predictions);
        AuditEvent { rounds: Some(rounds), bytes: Some(bytes), rows, ..self.event(event) }
    }
}

impl Drop for OwnerSession {
    fn drop(&mut self) {
        let owner = &self.owner;
        if owner.required && self.sent.predictions > 0 {
            // If this fails, the journal keeps a larger count.
            drop(owner.approvals().settle());
        }
        if !self.sent.has_agreed {
            return;
        }
        let account = Lifetime::open(&owner.subject.folder).ok();
        let spent = self.planned.as_ref().zip(account.as_ref());
        let epsilon = spent.and_then(|(planned, account)| planned.spent(account, owner.subject.delta));
        let total = account.as_ref().map(|account| account.total().epsilon(owner.subject.delta));
        let lifetime_epsilon = total.filter(|epsilon| epsilon.is_finite());
        let event = AuditEvent { epsilon, lifetime_epsilon, ..self.with_sums("ended") };
        if let Err(problem) = owner.log.record(&event, true) {
            owner.reporter.tell("warning", problem);
        }
    }
}

/// Returns a problem without the path in front of it, which is for the party's operator alone.
fn ending(problem: &str) -> &str {
    problem.split_once(": ").map_or(problem, |(_, rest)| rest)
}
