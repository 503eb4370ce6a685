//! Worker: answers requests in order with the parties, and waits for parties that are away.

use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use fet_federation::trainer::RunError;
use tokio::sync::oneshot;
use tracing::field::Empty;
use tracing::info_span;

use super::arguments::ServeArguments;
use super::json::BodyError;
use super::metrics::Metrics;
use super::rows::{self, Form};
use crate::parties::Unreached;
use crate::predict::{Model, ModelArguments, PredictError, Served, read_records};
use crate::predictions::table;
use crate::reporter::Reporter;
use crate::run::party_error;

/// Time between two looks for the end of the command.
const LOOK: Duration = Duration::from_millis(100);
/// Time after which a link counts as silent; the wait for a party begins then.
const SILENCE: Duration = Duration::from_secs(15);
/// Time until the worker tries to reach the parties again.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest time until the worker asks the parties again after a refusal. Each time, their accounts get more lines.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Time without a request after which the worker looks whether the parties are still there.
const IDLE: Duration = Duration::from_secs(5);
/// Longest time that a party may take to answer this look.
const ANSWER: Duration = Duration::from_secs(3);

/// Status of a request that a party refuses.
const FORBIDDEN: u16 = 403;

/// Readiness of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    /// The parties have not joined, for this reason.
    Joining(String),
    /// The next request can be answered.
    Ready,
}

/// Request that waits for the worker.
pub(super) struct Job {
    pub(super) form: Form,
    pub(super) body: Bytes,
    /// Form of the answer.
    pub(super) accepted: Form,
    /// Time after which the client no longer waits for the answer.
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// Answer to a request.
pub(super) enum Reply {
    /// Predictions.
    Predictions { form: Form, body: Vec<u8>, rows: usize, warnings: Vec<String> },
    /// The time of the request passed while it waited.
    Late,
    /// Refusal with a status of HTTP and the reason.
    Refused(u16, String),
}

/// Worker of the service.
pub(super) struct Worker<'a> {
    pub(super) model: Model,
    pub(super) arguments: &'a ServeArguments,
    pub(super) reporter: Reporter,
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stop: &'a Arc<AtomicBool>,
}

impl Worker<'_> {
    /// Answers requests until the command stops.
    pub(super) fn work(&self, jobs: &Receiver<Job>) -> anyhow::Result<()> {
        let mut served = None;
        let mut was_ready = false;
        let mut heard = Instant::now();
        let mut pause = PAUSE;
        let mut refusal = String::new();
        while !self.stop.load(Ordering::Relaxed) {
            let Some(parties) = &mut served else {
                match self.join() {
                    Ok(found) => {
                        found.warnings.iter().for_each(|warning| self.reporter.tell("warning", warning));
                        was_ready = true;
                        served = Some(found);
                        heard = Instant::now();
                        pause = PAUSE;
                        self.enter(Stage::Ready);
                        self.reporter.tell("ready", "ready");
                    }
                    // Invalid settings do not become valid by waiting; a party that has answered may do so again.
                    Err(error) if !was_ready && !is_temporary(&error) => return Err(error),
                    Err(error) => {
                        let mut reason = format!("{error:#}");
                        // Only the operator of a party can end its refusal.
                        pause = match is_temporary(&error) {
                            true => PAUSE,
                            false => (2 * pause).min(LONGEST_PAUSE),
                        };
                        if pause > PAUSE {
                            reason += &format!(" (asks again in {} s)", pause.as_secs());
                        }
                        self.reporter.tell("waiting", &reason);
                        self.enter(Stage::Joining(reason));
                        self.rest(pause);
                    }
                }
                continue;
            };
            let job = match jobs.recv_timeout(LOOK) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) if heard.elapsed() < IDLE => continue,
                Err(RecvTimeoutError::Timeout) => {
                    let links = parties.links.as_ref();
                    if let Some(problem) = links.and_then(|links| links.problem(ANSWER)) {
                        served = None;
                        self.lose(problem);
                    }
                    heard = Instant::now();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.metrics.left_queue();
            // Predictions for a client that has gone would still count at the parties.
            if job.reply.is_closed() {
                continue;
            }
            if job.deadline <= Instant::now() {
                drop(job.reply.send(Reply::Late));
                continue;
            }
            let answered = self.answer(parties, &job);
            heard = Instant::now();
            let reply = match answered {
                Ok(reply) => reply,
                Err(Problem { status, reason, is_lost }) => {
                    if status == FORBIDDEN && refusal != reason {
                        self.reporter.tell("refused", &reason);
                        refusal.clone_from(&reason);
                    }
                    if is_lost {
                        served = None;
                        self.lose(reason.clone());
                    }
                    Reply::Refused(status, reason)
                }
            };
            // A client that no longer waits needs no answer.
            drop(job.reply.send(reply));
        }
        Ok(())
    }

    /// Waits for this time, or until the command stops.
    fn rest(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.stop.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Notes that a party is away, for this reason.
    fn lose(&self, reason: String) {
        self.reporter.tell("waiting", &reason);
        self.enter(Stage::Joining(reason));
    }

    fn enter(&self, stage: Stage) {
        self.metrics.set_ready(stage == Stage::Ready);
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    /// Waits for the parties. A party that does not answer ends the wait within the time of a request, so that clients learn the
    /// reason.
    fn join(&self) -> anyhow::Result<Served> {
        let ServeArguments { model, timeout, .. } = self.arguments;
        let wait = Duration::from_secs(u64::from(*timeout)).saturating_sub(SILENCE).max(PAUSE);
        let model = ModelArguments { wait: model.wait.or(Some(wait.as_secs())), ..model.clone() };
        let elsewhere = self.model.elsewhere(&model, self.stop)?;
        let mut served = self.model.serve(elsewhere.as_ref())?;
        served.predictor.keep(self.arguments.cache);
        Ok(served)
    }

    fn answer(&self, served: &mut Served, job: &Job) -> Result<Reply, Problem> {
        let span = info_span!(target: "fet", parent: None, "prediction", rows = Empty);
        let _entered = span.enter();
        let Model { run, model, dataset, .. } = &self.model;
        let most = self.arguments.most_rows;
        let too_many = || Problem::new(413, format!("a request may have at most {most} rows"));
        let bytes = rows::table_of(job.form, &job.body, most).map_err(|error| match error {
            BodyError::TooMany => too_many(),
            BodyError::Invalid(problem) => Problem::new(400, problem),
        })?;
        let name = Path::new("the request");
        let read = |options: &fet_tables::Options| fet_tables::read_bytes(&bytes, name, options);
        let records = read_records(&run.experiment, dataset.as_ref(), model, "the request", &read);
        let records = records.map_err(|error| Problem::new(400, format!("{error:#}")))?;
        let rows = records.rows();
        if rows > most {
            return Err(too_many());
        }
        if rows == 0 {
            return Err(Problem::new(400, "the request must have at least one row"));
        }
        span.record("rows", rows as i64);
        let known = served.predictor.known_records();
        let (columns, mut warnings) =
            served.answer_request(model, records, self.model.conformal()).map_err(Problem::of_prediction)?;
        self.metrics.predicted_from_cache(served.predictor.known_records() - known);
        warnings.splice(0..0, served.warnings.iter().cloned());
        let body = table(columns).map_err(|error| error.to_string());
        let body = body.and_then(|table| rows::answer(job.accepted, &table, &warnings));
        let body = body.map_err(|problem| Problem::new(500, problem))?;
        Ok(Reply::Predictions { form: job.accepted, body, rows, warnings })
    }
}

/// Reason why a request is not answered.
struct Problem {
    status: u16,
    reason: String,
    /// True if the parties must join again.
    is_lost: bool,
}

impl Problem {
    fn new(status: u16, reason: impl Display) -> Self {
        Self { status, reason: reason.to_string(), is_lost: false }
    }

    fn of_prediction(error: PredictError) -> Self {
        let reason = error.to_string();
        match error {
            PredictError::Run(RunError::Party(party))
                if party.is_unreached() || party.is_restart() || party.is_not_now() =>
            {
                Self { status: 503, reason, is_lost: true }
            }
            // A refusal follows from the party's policy; the primary may ask for something else.
            PredictError::Run(RunError::Party(_)) => Self { status: FORBIDDEN, reason, is_lost: false },
            PredictError::Run(RunError::Data(_) | RunError::Link { .. }) | PredictError::Row(_) => {
                Self { status: 400, reason, is_lost: false }
            }
            PredictError::Run(_) => Self { status: 500, reason, is_lost: false },
        }
    }
}

/// Returns true if an error may end without another command: a party or the server is away.
fn is_temporary(error: &anyhow::Error) -> bool {
    error.is::<Unreached>()
        || party_error(error)
            .is_some_and(|party| party.is_restart() || party.is_unreached() || party.is_not_now())
}
