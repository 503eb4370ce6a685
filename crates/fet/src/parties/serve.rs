//! `fet party`: serves as a secondary, which waits for the primary and answers its requests, run after run,
//! until it is stopped.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fet_core::message::{Answer, LARGEST_FRAME, Request, decode, encode_behind, frames};
use fet_core::party::{Failure, Party, Refusal};
use fet_federation::secondary::Secondary;
use fet_net::{Connection, Local, Peer, Service};

use super::greeting::{self, Greeting, JoinPurpose};
use super::observer::Observer;
use super::remote;
use super::roster::{Roster, Unreached};
use super::run_id::RunId;
use super::setup::{Membership, PartyFile, PartySetup, Unable, private_folder};
use super::status::{self, LinkStatus, Mirror, PartyStatus};
use super::{keys, prune};
use crate::lock;
use crate::reporter::{Log, Reporter};
use fet_io::input::input;

/// Maximum number of requests in one message: a gradient and the next request.
const MOST_TOGETHER: usize = 2;

/// Activity of a party without a request.
const WAITS: &str = "waits for the primary";

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
}

/// Commands of `fet party`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum PartyCommand {
    /// Remove a party's files of finished or old runs, but never its privacy accounts.
    Prune(prune::PruneArguments),
}

/// Serves until `stop` is set.
pub fn serve(arguments: &PartyArguments, stop: &AtomicBool) -> anyhow::Result<()> {
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
    let reporter = Reporter::new(&file.party, arguments.log);
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
    let party = Arc::new(ServingParty::new(setup, file.most_programs, service.closer()));
    let (look, shown) = (service.watch(), Arc::clone(&party));
    let (name, run, primary) =
        (file.party.clone(), roster.file.run.clone(), roster.primary().name.to_string());
    let mut observer = Observer::new(&primary, &run, wait);
    let _mirror = Mirror::start(&state, move || {
        let link = look();
        for (event, message) in observer.observe(&link, std::time::Instant::now()) {
            reporter.tell(event, message);
        }
        PartyStatus {
            party: name.clone(),
            run: run.clone(),
            doing: shown.doing(),
            links: vec![LinkStatus::from_state(&primary, &link, true)],
            written: 0,
        }
    });
    service.serve_each(file.most_programs, &*party, stop);
    if let denied @ Connection::Denied { .. } = service.state().connection {
        return Err(input(format!("{}: {denied}", file.party)));
    }
    if !stop.load(Ordering::Relaxed) {
        return Err(Unreached(format!("{}: the connection to the server has ended", file.party)).into());
    }
    party.setup.reporter.tell("stopped", "stopped");
    Ok(())
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

/// Party that serves several programs of the primary at once.
struct ServingParty {
    setup: PartySetup,
    /// Maximum number of programs.
    most: usize,
    /// Closes the lane of the program with this instance id.
    close: Box<dyn Fn(u64) + Send + Sync>,
    open: Mutex<Vec<OpenProgram>>,
    /// Signals that a program has ended.
    ended: Condvar,
}

/// Program of the primary that the party serves.
struct OpenProgram {
    instance: u64,
    /// Run that the program trains.
    trains: Option<RunId>,
    /// Current activity, for `fet status`.
    does: String,
}

impl ServingParty {
    fn new(setup: PartySetup, most: usize, close: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { setup, most, close: Box::new(close), open: Mutex::default(), ended: Condvar::new() }
    }

    fn open(&self) -> MutexGuard<'_, Vec<OpenProgram>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current activity, for `fet status`.
    fn doing(&self) -> String {
        let open = self.open();
        let busy: Vec<&str> =
            open.iter().map(|program| program.does.as_str()).filter(|does| *does != WAITS).collect();
        if busy.is_empty() { WAITS.to_string() } else { busy.join("; ") }
    }

    /// Begins the training of a run in a program. The program takes the place of another one that trains the
    /// same run, and of all trainings if the run needs the accounts of its noise for itself.
    ///
    /// Waits until the other programs have ended their current answers.
    fn train(&self, instance: u64, run: &RunId) {
        let alone = self.setup.trains_alone;
        let is_in_the_way = |program: &OpenProgram| {
            let trains = program.trains.as_ref();
            program.instance != instance && trains.is_some_and(|trains| alone || trains == run)
        };
        let mut open = self.open();
        for other in open.iter().filter(|program| is_in_the_way(program)) {
            (self.close)(other.instance);
            self.setup
                .reporter
                .tell("closed", "another command of the primary takes over; the former one ends");
        }
        while open.iter().any(is_in_the_way) {
            open = self.ended.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(own) = open.iter_mut().find(|program| program.instance == instance) {
            own.trains = Some(run.clone());
        }
    }
}

impl fet_net::Programs for ServingParty {
    fn begins(&self, peer: &Peer, is_above: bool) -> impl fet_net::Answer {
        Serving::begin(self, peer, is_above)
    }

    fn refused(&self, peer: &Peer, ours: u16) {
        let (program, theirs) = (Greeting::read(&peer.about).program, peer.version);
        self.setup.reporter.tell(
            "refused",
            format_args!(
                "refused {program}: it uses version {theirs} of the protocol, this program uses version {ours}"
            ),
        );
    }
}

/// Service of one program of the primary.
struct Serving<'a> {
    party: &'a ServingParty,
    setup: &'a PartySetup,
    instance: u64,
    secondary: Option<Secondary>,
    purpose: JoinPurpose,
    /// Id of the run that the primary has joined for.
    run: Option<RunId>,
    /// Reason why the party refuses to join: the number of programs, or a difference between the primary's and this party's settings
    /// of the common data.
    refuses: Option<String>,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // The session writes its accounts before another one may begin.
        self.secondary = None;
        self.party.open().retain(|program| program.instance != self.instance);
        self.party.ended.notify_all();
    }
}

impl<'a> Serving<'a> {
    fn begin(party: &'a ServingParty, peer: &Peer, is_above: bool) -> Self {
        let setup = &party.setup;
        let about = Greeting::read(&peer.about);
        party.open().push(OpenProgram { instance: peer.instance_id, trains: None, does: WAITS.into() });
        let purpose = match about.purpose {
            JoinPurpose::Run => "training",
            JoinPurpose::Predictions => "predictions",
        };
        setup
            .reporter
            .tell("joined", format_args!("the primary has joined for {purpose}: {}", about.program));
        let crowded = is_above.then(|| {
            format!(
                "the party serves {} programs of the primary already, the limit of `most_programs` in its file: end one of \
                 them, or ask the party's operator to raise the limit",
                party.most
            )
        });
        let refuses = crowded.or_else(|| difference(setup, &about));
        if let Some(reason) = &refuses {
            setup.reporter.tell("refused", reason);
        }
        let run = RunId::parse(&about.run);
        let instance = peer.instance_id;
        Self { party, setup, instance, secondary: None, purpose: about.purpose, run, refuses }
    }

    fn does(&self, what: String) {
        if let Some(own) = self.party.open().iter_mut().find(|program| program.instance == self.instance) {
            own.does = what;
        }
    }

    fn tell(&self, event: &str, message: impl Display) {
        self.setup.reporter.tell(event, message);
    }

    fn reply(&mut self, request: Request) -> Result<Answer, Failure> {
        // A Join request starts from the beginning, because the primary's or another party's program was
        // restarted.
        if let Request::Join(_) = request {
            if let Some(reason) = &self.refuses {
                self.tell("refused", format_args!("refused Join: {reason}"));
                return Ok(Err(Refusal::new(reason)));
            }
            let Some(run) = &self.run else {
                return Ok(Err(Refusal::new(
                    "`run` in the greeting must be a run id, 32 hexadecimal digits",
                )));
            };
            self.secondary = None;
            if self.purpose == JoinPurpose::Run {
                self.party.train(self.instance, run);
            }
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
            let reason = "no run is under way at the party for this command: the first request must be Join";
            self.setup.reporter.tell("refused", format_args!("refused {name}: no run is under way"));
            return Ok(Err(Refusal::new(reason)));
        };
        match secondary.ask(request) {
            Ok(reply) => {
                if let Some(rows) = linked {
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
                Ok(request) => self.reply(request).unwrap_or_else(|failure| Err(Refusal::new(failure))),
                Err(error) => Err(Refusal::new(error)),
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
        self.does(WAITS.into());
        answers
    }
}
