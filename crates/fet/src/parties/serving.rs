//! Service of one program of the primary: answers its requests in order.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fet_core::message::{Answer, LARGEST_FRAME, Request, decode, encode_behind, frames};
use fet_core::party::{Failure, Party, Refusal};
use fet_federation::secondary::{LinkCount, Secondary};
use fet_net::Peer;
use tracing::field::{Empty, display};
use tracing::{Span, info_span};

use super::greeting::{self, Greeting, JoinPurpose, one_line};
use super::linking_progress::{PACE, ProgressDisplay, links_in_words, showing};
use super::monitor::metrics::{PartyMetrics, SessionGuard};
use super::owner::{Owner, OwnerSession};
use super::programs::{Link, NotNow, ProgramId, ProgramPlace, Programs, Training, WAITS};
use super::run_id::RunId;
use super::setup::{PartySetup, Unable};
use crate::reporter::Reporter;

/// Maximum number of requests in one message: a gradient and the next request.
const MOST_TOGETHER: usize = 2;

/// Refusal of a training that needs accounts in use.
const BUSY: &str = "it trains in another run with noise or a secure sum, and one such training at a time may write its accounts: give \
     the same command again after that run has ended";
/// Refusal of a training that a newer command has taken.
const OVERTAKEN: &str =
    "a newer command of the primary has joined for the same run: end one of the two commands";

/// Returns the first differing line of the settings, with both values.
fn differs(theirs: Option<&str>, ours: Option<&str>) -> Option<String> {
    let (theirs, ours) = (theirs?, ours?);
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let (theirs, ours) = (lines(theirs), lines(ours));
    let missing = || "nothing".to_string();
    let place = (0..theirs.len().max(ours.len())).find(|&place| theirs.get(place) != ours.get(place))?;
    let line = |lines: &[String]| lines.get(place).cloned().unwrap_or_else(missing);
    Some(format!(
        "settings of `data` differ: the primary has `{}`, this party `{}`",
        line(&theirs),
        line(&ours)
    ))
}

/// Party that serves the programs of one primary.
pub(super) struct ServingParty {
    pub(super) setup: PartySetup,
    /// Number of the roster in the party's command.
    pub(super) roster: usize,
    /// Maximum number of programs.
    pub(super) most: usize,
    pub(super) link: Arc<dyn Link>,
    /// Programs of all rosters with the same state.
    pub(super) programs: Arc<Programs>,
    pub(super) owner: Arc<Owner>,
    pub(super) metrics: Arc<PartyMetrics>,
}

impl fet_net::Programs for ServingParty {
    fn begins(&self, peer: &Peer, is_above: bool) -> impl fet_net::Answer {
        Serving::begin(self, peer, is_above)
    }

    fn refused(&self, peer: &Peer, ours: u16) {
        let (program, theirs) = (Greeting::read(&peer.about).program, peer.version);
        let advice = match theirs > ours {
            true => format!(
                "a primary that also speaks version {ours} joins with it; for any other, upgrade this program"
            ),
            false => "the primary must upgrade its program".to_string(),
        };
        let reason = format!(
            "it offers version {theirs} of the links, and this program's newest version is {ours}: {advice}"
        );
        self.setup.reporter.tell("refused", format_args!("refused {program}: {reason}"));
        self.owner.refused_program(&program, &reason);
        self.metrics.refused("version", format_args!("refused {program}: {reason}"));
    }
}

/// Service of one program of the primary.
///
/// The fields are dropped in their order: the secondary completes its accounts, the owner's view then writes its summary, and
/// another program may take the place last.
struct Serving<'a> {
    setup: &'a PartySetup,
    metrics: &'a PartyMetrics,
    secondary: Option<Secondary>,
    session: Option<OwnerSession>,
    place: ProgramPlace,
    /// Entry of the program on the operator's page.
    shown: SessionGuard,
    purpose: JoinPurpose,
    /// Id of the run that the primary has joined for.
    run: Option<RunId>,
    /// Refusal to join: the number of programs, or a difference between the primary's and this party's settings of the
    /// common data.
    refuses: Option<Refusal>,
    /// Span of the service, the parent of the spans of its requests.
    span: Span,
}

impl<'a> Serving<'a> {
    fn begin(party: &'a ServingParty, peer: &Peer, is_above: bool) -> Self {
        let setup = &party.setup;
        let about = Greeting::read(&peer.about);
        let id = ProgramId { roster: party.roster, instance: peer.instance_id };
        let place = party.programs.begin(id, Arc::clone(&party.link));
        let purpose = match about.purpose {
            JoinPurpose::Run => "training",
            JoinPurpose::Predictions => "predictions",
        };
        setup
            .reporter
            .tell("joined", format_args!("the primary has joined for {purpose}: {}", about.program));
        let crowded = is_above.then(|| {
            Refusal::not_now(format_args!(
                "the party serves {} programs of the primary already, the limit of `most_programs` in its file: end one of \
                 them, or ask the party's operator to raise the limit",
                party.most
            ))
        });
        let refuses = crowded.or_else(|| difference(setup, &about).map(Refusal::new));
        if let Some(refusal) = &refuses {
            setup.reporter.tell("refused", refusal);
        }
        let run = RunId::parse(&about.run);
        let session = Some(party.owner.session(run.as_ref(), about.purpose, &about.program));
        let shown = party.metrics.open(&about.program, purpose, &about.run);
        let run_id = run.as_ref().map(ToString::to_string).unwrap_or_default();
        let span = info_span!(target: "fet", parent: None, "session", purpose, run = run_id);
        let (metrics, purpose) = (party.metrics.as_ref(), about.purpose);
        Self { setup, metrics, secondary: None, session, place, shown, purpose, run, span, refuses }
    }

    fn does(&self, what: &str) {
        self.shown.does(what);
        self.place.does(what.to_string());
    }

    fn tell(&self, event: &str, message: impl Display) {
        self.setup.reporter.tell(event, message);
    }

    /// Answers a request and counts it.
    fn counted_reply(&mut self, request: Request) -> Answer {
        let (began, name) = (Instant::now(), request.name());
        let span = info_span!(
            target: "fet",
            parent: &self.span,
            "request",
            otel.name = name,
            otel.kind = "server",
            otel.status_code = Empty,
            round = Empty,
            received = request.payload() as i64,
            sent = Empty,
        );
        if let Some(round) = request.round() {
            span.record("round", display(round));
        }
        let answer = span.in_scope(|| self.reply_as_permitted(request));
        match &answer {
            Ok(reply) => {
                span.record("sent", reply.payload() as i64);
                self.metrics.answered(name, began.elapsed());
            }
            Err(refusal) => {
                span.record("otel.status_code", "ERROR");
                self.metrics.refused(name, &refusal.reason);
            }
        }
        answer
    }

    /// Answers a request that the owner permits, and records the answer.
    fn reply_as_permitted(&mut self, request: Request) -> Answer {
        let mut session = self.session.take();
        let asked = session.as_mut().map(|session| session.before(&request)).transpose();
        let answer = asked.and_then(|asked| {
            let answer = self.reply(request).unwrap_or_else(|failure| Err(Refusal::new(failure)));
            match (&mut session, asked) {
                (Some(session), Some(asked)) => session.after(&asked, answer),
                _ => answer,
            }
        });
        self.session = session;
        answer
    }

    fn reply(&mut self, request: Request) -> Result<Answer, Failure> {
        // A Join request starts from the beginning, because the primary's or another party's program was
        // restarted.
        if let Request::Join(_) = request {
            if let Some(refusal) = &self.refuses {
                self.tell("refused", format_args!("refused Join: {refusal}"));
                return Ok(Err(refusal.clone()));
            }
            let Some(run) = &self.run else {
                return Ok(Err(Refusal::new(
                    "`run` in the greeting must be a run id, 32 hexadecimal digits",
                )));
            };
            self.secondary = None;
            if self.purpose == JoinPurpose::Run {
                let training = Training { run: run.clone(), alone: self.setup.trains_alone };
                match self.place.train(&training) {
                    Ok(0) => {}
                    Ok(_) => {
                        self.tell("closed", "another command of the primary takes over; the former one ends")
                    }
                    Err(problem) => {
                        let refusal = match problem {
                            NotNow::Busy => Refusal::not_now(BUSY),
                            NotNow::Overtaken => Refusal::new(OVERTAKEN),
                        };
                        self.tell("refused", format_args!("refused Join: {refusal}"));
                        return Ok(Err(refusal));
                    }
                }
            }
            self.secondary = match self.setup.secondary(self.purpose, run) {
                Ok(secondary) => Some(secondary),
                Err(Unable::TooMany(problem)) => {
                    self.place.trained();
                    self.tell("unable", &problem);
                    return Ok(Err(Refusal::new("stores too many runs; see the log of its operator")));
                }
                Err(Unable::NoModel(path)) => {
                    self.place.trained();
                    self.tell("unable", format_args!("{}: the model of this run is missing", path.display()));
                    return Ok(Err(Refusal::new(
                        "lacks the model of this run: the run did not finish there, or its folder was removed or not restored",
                    )));
                }
                Err(Unable::Broken(problem)) => {
                    self.place.trained();
                    self.tell("unable", problem);
                    let reason = "lacks a usable state or model; see the log of its operator";
                    return Ok(Err(Refusal::new(reason)));
                }
            };
        }
        self.does(&match request.round() {
            Some(round) => format!("{} in {round}", request.name()),
            None => request.name().to_string(),
        });
        let (name, is_join, is_end) =
            (request.name(), matches!(request, Request::Join(_)), matches!(request, Request::Finish));
        let of_predictions = matches!(
            request,
            Request::Join(_)
                | Request::Predict(_)
                | Request::Answer(_)
                | Request::Forward(_)
                | Request::MakeKey
                | Request::AgreeOnKeys(_)
                | Request::KeepKeyShares(_)
                | Request::Unmask(_)
                | Request::Reveal(_)
        );
        if self.purpose == JoinPurpose::Predictions && !of_predictions {
            return Ok(Err(Refusal::new(format!(
                "`{name}` belongs to a training run, but the primary has joined for predictions"
            ))));
        }
        let linked = match &request {
            Request::Predict(message) => Some(message.keys.rows()),
            _ => None,
        };
        let is_release = matches!(request, Request::Release(_));
        let Some(secondary) = &mut self.secondary else {
            let reason = "no run is under way at the party for this command: the first request must be Join";
            self.setup.reporter.tell("refused", format_args!("refused {name}: no run is under way"));
            return Ok(Err(Refusal::new(reason)));
        };
        let links = matches!(request, Request::Link(_) | Request::Answer(_) | Request::Predict(_));
        let answered = match secondary.link_count().filter(|_| links) {
            Some(count) => {
                let (place, shown, reporter) = (&self.place, &self.shown, &self.setup.reporter);
                let mut display = LinksDisplay { name, count: &count, place, shown, reporter };
                showing(PACE, &mut display, || secondary.ask(request))
            }
            None => secondary.ask(request),
        };
        match answered {
            Ok(reply) => {
                if let Some(rows) = linked {
                    self.metrics.linked(rows);
                    self.tell("predictions", format_args!("{rows} new records were linked for predictions"));
                } else if is_join {
                    let lifetime = secondary.lifetime();
                    self.tell("agreed", "agreed to the terms");
                    if let Some(lifetime) = lifetime {
                        self.tell("lifetime", lifetime);
                    }
                } else if is_release {
                    let lifetime = secondary.lifetime();
                    let release = self.setup.experiment.release.as_ref();
                    let kind = release.map_or_else(String::new, |slot| slot.kind().to_string());
                    self.tell(
                        "released",
                        format_args!(
                            "made its release (`{kind}`); the run needs nothing more from this party"
                        ),
                    );
                    if let Some(lifetime) = lifetime {
                        self.tell("lifetime", lifetime);
                    }
                } else if is_end {
                    // The session keeps its accounts open until it ends, so that it stays in the way of other trainings.
                    let folder = self.run.as_ref().map(|run| self.setup.of_run(run)).unwrap_or_default();
                    self.tell("over", format_args!("the run is over; the model is in {}", folder.display()));
                }
                Ok(Ok(reply))
            }
            Err(Failure::Refused(refusal)) => {
                if is_join {
                    self.place.trained();
                }
                self.tell("refused", format_args!("refused {name}: {}", one_line(&refusal.to_string())));
                Ok(Err(refusal))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Shows the progress of a search for links in the party's status, its monitor and its log.
struct LinksDisplay<'a> {
    /// Name of the request.
    name: &'static str,
    count: &'a LinkCount,
    place: &'a ProgramPlace,
    shown: &'a SessionGuard,
    reporter: &'a Reporter,
}

impl ProgressDisplay for LinksDisplay<'_> {
    fn look(&mut self, elapsed: Duration) {
        let text = format!("{}: {}", self.name, links_in_words(self.count, elapsed));
        self.shown.does(&text);
        self.place.does(text);
    }

    fn line(&mut self, elapsed: Duration) {
        self.reporter.tell("linking", links_in_words(self.count, elapsed));
    }
}

/// Returns the first difference between the primary and this party: the rehearsal, the linkers' common secret, or the settings
/// of the common data.
fn difference(setup: &PartySetup, about: &Greeting) -> Option<String> {
    if about.rehearsal != setup.rehearsal {
        return Some(format!(
            "`rehearsal` is {} in the primary's roster, but {} in this party's file. All must have the same value, \
             because a rehearsal hides nothing",
            about.rehearsal, setup.rehearsal
        ));
    }
    if about.secret != greeting::confirmation(&setup.experiment) {
        let name = greeting::secret_env(&setup.experiment.linker.settings()).unwrap_or_default();
        return Some(format!(
            "the linkers' common secret (`linker.secret_env` \"{name}\") differs at this party"
        ));
    }
    differs(about.data.as_deref(), greeting::common_data(&setup.experiment).as_deref())
}

impl fet_net::Answer for Serving<'_> {
    /// Answers the requests of one message in order, up to the first refused request.
    fn answer(&mut self, requests: Vec<u8>) -> Vec<u8> {
        let mut answers = Vec::new();
        for (place, request) in frames(&requests).enumerate() {
            let answer: Answer = match decode(request, if place < MOST_TOGETHER { LARGEST_FRAME } else { 0 })
            {
                Err(_) if place >= MOST_TOGETHER => {
                    Err(Refusal::new(format!("at most {MOST_TOGETHER} requests may come together")))
                }
                Ok(request) => self.counted_reply(request),
                Err(error) => {
                    self.metrics.refused("unreadable", &error);
                    Err(Refusal::new(error))
                }
            };
            let refused = match encode_behind(&mut answers, &answer) {
                Ok(()) => answer.is_err(),
                Err(error) => {
                    // If even this error cannot be encoded, the answer stays empty.
                    let _ = encode_behind::<Answer>(&mut answers, &Err(Refusal::new(error)));
                    true
                }
            };
            if refused {
                break;
            }
        }
        self.does(WAITS);
        answers
    }
}
