//! `fet party`: serves as a secondary, which waits for the primary and answers its requests, run after run,
//! until it is stopped.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fet_core::message::{Answer, LARGEST_FRAME, Request, decode, encode_behind, frames};
use fet_core::party::{Failure, Party, Refusal};
use fet_federation::secondary::Secondary;
use fet_net::{Connection, Local, Peer, Service};

use super::greeting::{self, Greeting, JoinPurpose};
use super::monitor::metrics::{PartyMetrics, SessionGuard};
use super::monitor::{Monitor, PartyNames};
use super::observer::Observer;
use super::remote;
use super::roster::{Roster, Unreached};
use super::run_id::RunId;
use super::setup::{Membership, PartyFile, PartySetup, Unable, private_folder};
use super::status::{self, LinkStatus, Mirror, PartyStatus};
#[cfg(unix)]
use super::systemd::Notifier;
use super::{keys, prune};
use crate::lock;
use crate::reporter::{Log, LogLevel, Reporter};
use fet_io::input::input;

/// Maximum number of requests in one message: a gradient and the next request.
const MOST_TOGETHER: usize = 2;

/// Arguments of `fet party`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct PartyArguments {
    /// Subcommand instead of serving.
    #[command(subcommand)]
    pub command: Option<PartyCommand>,
    /// The party's own file (TOML): its name, experiment, key, state and table.
    #[arg(required = true)]
    pub file: Option<PathBuf>,
    /// Form of log messages.
    #[arg(long, value_enum, default_value_t)]
    pub log: Log,
    /// Importance of the shown log messages.
    #[arg(long, value_enum, default_value_t)]
    pub log_level: LogLevel,
}

/// Commands of `fet party`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum PartyCommand {
    /// Remove a party's files of finished or old runs, but never its privacy accounts.
    Prune(prune::PruneArguments),
}

/// Serves until `stop` is set.
pub fn serve(arguments: &PartyArguments, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let Some(path) = &arguments.file else { return Err(input("name the party's own file")) };
    let bad = |problem: String| input(format!("{}: {problem}", path.display()));
    let file = PartyFile::read(path)?;
    file.policy.check().map_err(|violation| bad(violation.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let roster = Roster::read(&folder.join(&file.roster))?;
    let Some(index) = roster.parties().iter().position(|party| party.name.as_str() == file.party) else {
        let known: Vec<&str> = roster.parties().iter().map(|party| party.name.as_str()).collect();
        return Err(bad(format!(
            "`party` must be one of the roster's parties ({}); it is \"{}\"",
            known.join(", "),
            file.party
        )));
    };
    let keys = keys::read(&folder.join(&file.key))?;
    let pinned = roster.parties()[index].identity;
    if keys.public() != pinned {
        return Err(bad(format!(
            "`key` is the key of {}; the roster's key for {} is {pinned}",
            keys.public(),
            file.party
        )));
    }
    let reporter = Reporter::new(&file.party, arguments.log).at(arguments.log_level);
    let membership = Membership { roster: &roster, index, keys: &keys };
    let setup = PartySetup::new(&file, &folder, membership, reporter.clone())?;
    let state = folder.join(&file.state);
    private_folder(&state)
        .map_err(|error| bad(format!("`state`: cannot create the folder {} ({error})", state.display())))?;
    let Some(_lock) = lock::take(&state)? else {
        return Err(bad(format!("another process is using the state in {}", state.display())));
    };
    status::clear(&state);
    setup.check_table(&state).map_err(bad)?;
    let metrics = Arc::new(PartyMetrics::default());
    let monitor = monitor(&file, &roster, &metrics, &state).map_err(|error| bad(error.to_string()))?;
    if let Some(address) = monitor.address() {
        reporter.tell("monitor", format_args!("the monitor listens on http://{address}"));
    }
    let wait = Duration::from_secs(roster.file.wait);
    let about = Greeting { rehearsal: file.rehearsal, ..Greeting::party() };
    let local = Local::new(keys, about.text());
    reporter.tell(
        "roster",
        format_args!(
            "the fingerprint of the roster is {}; the other parties must have the same (`fet keys roster`)",
            roster.fingerprint()
        ),
    );
    reporter.tell("connecting", format_args!("connecting to {}", roster.file.server));
    let hub = roster.connect(&local.keys, wait)?;
    let route = roster.route(index);
    let transport = hub.to_primary(&route).map_err(input)?;
    let mut service =
        Service::new(transport, local, route, roster.primary().identity, remote::settings(wait));
    let ready = format!(
        "ready for {} in the run {}; its key must be {}",
        roster.primary().name,
        roster.file.run,
        roster.primary().identity
    );
    reporter.tell("ready", ready);
    let doing = Arc::new(Mutex::new("waits for the primary".to_string()));
    monitor.watch(service.watch(), service.heartbeat());
    #[cfg(unix)]
    let _notifier = {
        let (look, what) = (service.watch(), Arc::clone(&doing));
        Notifier::start(service.heartbeat(), Arc::clone(stop), move || (look(), activity(&what)))
    };
    let (look, what) = (service.watch(), Arc::clone(&doing));
    let (party, run, primary) =
        (file.party.clone(), roster.file.run.clone(), roster.primary().name.to_string());
    let mut observer = Observer::new(&primary, &run, wait);
    let _mirror = Mirror::start(&state, move || {
        let link = look();
        for (event, message) in observer.observe(&link, Instant::now()) {
            reporter.tell(event, message);
        }
        PartyStatus {
            party: party.clone(),
            run: run.clone(),
            doing: activity(&what),
            links: vec![LinkStatus::from_state(&primary, &link, true)],
            written: 0,
        }
    });
    let mut serving = Serving {
        setup,
        secondary: None,
        purpose: JoinPurpose::Run,
        run: None,
        differs: None,
        doing,
        metrics,
        session: None,
    };
    service.serve(&mut serving, stop);
    monitor.stopping();
    if let denied @ Connection::Denied { .. } = service.state().connection {
        return Err(input(format!("{}: {denied}", file.party)));
    }
    if !stop.load(Ordering::Relaxed) {
        return Err(Unreached(format!("{}: the connection to the server has ended", file.party)).into());
    }
    serving.tell("stopped", "stopped");
    Ok(())
}

/// Starts the monitor of a party, if its file turns it on.
fn monitor(
    file: &PartyFile,
    roster: &Roster,
    metrics: &Arc<PartyMetrics>,
    state: &Path,
) -> anyhow::Result<Monitor> {
    let names = PartyNames {
        party: file.party.clone(),
        primary: roster.primary().name.to_string(),
        run: roster.file.run.clone(),
        server: roster.file.server.clone(),
    };
    Monitor::start(&file.monitor, names, Arc::clone(metrics), state.to_path_buf(), file.policy.clone())
}

fn activity(doing: &Mutex<String>) -> String {
    doing.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

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

/// Serving party.
struct Serving {
    setup: PartySetup,
    secondary: Option<Secondary>,
    purpose: JoinPurpose,
    /// Id of the run that the primary has joined for.
    run: Option<RunId>,
    /// Difference between the primary's and this party's settings of the common data.
    differs: Option<String>,
    /// Current activity, for `fet status`.
    doing: Arc<Mutex<String>>,
    metrics: Arc<PartyMetrics>,
    session: Option<SessionGuard>,
}

impl Serving {
    fn does(&self, what: String) {
        if let Some(session) = &self.session {
            session.does(&what);
        }
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn tell(&self, event: &str, message: impl Display) {
        self.setup.reporter.tell(event, message);
    }

    /// Replies to a request and counts it.
    fn counted_reply(&mut self, request: Request) -> Answer {
        let (began, name) = (Instant::now(), request.name());
        let answer = self.reply(request).unwrap_or_else(|failure| Err(Refusal::new(failure)));
        match &answer {
            Ok(_) => self.metrics.answered(name, began.elapsed()),
            Err(refusal) => self.metrics.refused(name, &refusal.reason),
        }
        answer
    }

    fn reply(&mut self, request: Request) -> Result<Answer, Failure> {
        // A Join request starts from the beginning, because the primary's or another party's program was
        // restarted.
        if let Request::Join(_) = request {
            if let Some(differs) = &self.differs {
                self.tell("refused", format_args!("refused Join: {differs}"));
                return Ok(Err(Refusal::new(differs)));
            }
            let Some(run) = &self.run else {
                return Ok(Err(Refusal::new(
                    "`run` in the greeting must be a run id, 32 hexadecimal digits",
                )));
            };
            self.secondary = match self.setup.secondary(self.purpose, run) {
                Ok(secondary) => Some(secondary),
                Err(Unable::TooMany(problem)) => {
                    self.tell("unable", &problem);
                    return Ok(Err(Refusal::new("stores too many runs; see the log of its operator")));
                }
                Err(Unable::Broken(problem)) => {
                    self.tell("unable", problem);
                    let reason = "lacks a usable state or model; see the log of its operator";
                    return Ok(Err(Refusal::new(reason)));
                }
            };
        }
        self.does(match request.round() {
            Some(round) => format!("{} in {round}", request.name()),
            None => request.name().to_string(),
        });
        let (name, is_join, is_end) =
            (request.name(), matches!(request, Request::Join(_)), matches!(request, Request::Finish));
        let of_predictions = matches!(
            request,
            Request::Join(_) | Request::Predict(_) | Request::Answer(_) | Request::Forward(_)
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
            let reason = "this run is no longer under way at the party, because another command with the primary's key has joined. \
             Give the same command again after the other command has ended";
            self.setup.reporter.tell("refused", format_args!("refused {name}: no run is under way"));
            return Ok(Err(Refusal::new(reason)));
        };
        match secondary.ask(request) {
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
                    let folder = self.run.as_ref().map(|run| self.setup.of_run(run)).unwrap_or_default();
                    self.session = None;
                    self.tell("over", format_args!("the run is over; the model is in {}", folder.display()));
                }
                Ok(Ok(reply))
            }
            Err(Failure::Refused(refusal)) => {
                self.tell("refused", format_args!("refused {name}: {refusal}"));
                Ok(Err(refusal))
            }
            Err(failure) => Err(failure),
        }
    }
}

impl fet_net::Answer for Serving {
    fn begins(&mut self, peer: &Peer) {
        let about = Greeting::read(&peer.about);
        self.tell("joined", format_args!("the primary has joined: {}", about.program));
        self.purpose = about.purpose;
        self.run = RunId::parse(&about.run);
        let other_secret = about.secret != greeting::confirmation(&self.setup.experiment);
        let other_secret = other_secret.then(|| {
            let name = greeting::secret_env(&self.setup.experiment.linker.settings()).unwrap_or_default();
            format!("the linkers' common secret (`linker.secret_env` \"{name}\") differs at this party")
        });
        let rehearsal = (about.rehearsal != self.setup.rehearsal).then(|| {
            format!(
                "`rehearsal` is {} in the primary's roster, but {} in this party's file. All must have the same value, \
                 because a rehearsal hides nothing",
                about.rehearsal, self.setup.rehearsal
            )
        });
        if let Some(rehearsal) = &rehearsal {
            self.tell("refused", rehearsal);
        }
        self.differs = rehearsal.or(other_secret).or_else(|| {
            differs(about.data.as_deref(), greeting::common_data(&self.setup.experiment).as_deref())
        });
        self.secondary = None;
        let purpose = match about.purpose {
            JoinPurpose::Run => "a run",
            JoinPurpose::Predictions => "predictions",
        };
        self.session = None;
        self.session = Some(self.metrics.open(&about.program, purpose, &about.run));
    }

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
        self.does("waits for the primary".into());
        answers
    }

    fn refused(&mut self, peer: &Peer, ours: u16) {
        let (program, theirs) = (Greeting::read(&peer.about).program, peer.version);
        let reason = format!(
            "refused {program}: it uses version {theirs} of the protocol, this program uses version {ours}"
        );
        self.metrics.refused("version", &reason);
        self.tell("refused", reason);
    }
}
