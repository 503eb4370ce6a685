//! `fet party`: serves as a secondary, which waits for the primary and answers its requests, run after run,
//! until it is stopped.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fet_core::message::{Answer, LARGEST_FRAME, Request, decode, encode_behind, frames};
use fet_core::party::{Failure, Party, Refusal};
use fet_federation::secondary::Secondary;
use fet_net::{Connection, Local, Peer, Service};

use super::greeting::{self, Greeting, JoinPurpose};
use super::observer::Observer;
use super::owner::{Owner, OwnerSession, Subject};
use super::remote;
use super::roster::Unreached;
use super::run_id::RunId;
use super::setup::{PartyFiles, PartySetup, Unable, private_folder};
use super::status::{self, LinkStatus, Mirror, PartyStatus};
use super::{approve, check, prune};
use crate::lock;
use crate::reporter::{Log, Reporter};
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
    /// Print what a run would release, as `fet party check` does, instead of serving.
    #[arg(long)]
    pub check: bool,
    /// Form of log messages.
    #[arg(long, value_enum, default_value_t)]
    pub log: Log,
}

/// Commands of `fet party`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum PartyCommand {
    /// Print what a run with the present settings would release from the party's table.
    ///
    /// The command needs no network, and nothing leaves the party.
    Check(check::CheckArguments),
    /// Approve runs with the present settings.
    ///
    /// With `approval.required` in its file the party joins only approved runs. The party may be running.
    Approve(approve::ApproveArguments),
    /// Revoke approvals; a run under such an approval ends at its next request.
    Revoke(approve::RevokeArguments),
    /// List the approvals with their use.
    Approvals(approve::ApprovalsArguments),
    /// Remove a party's files of finished or old runs, but never its privacy accounts.
    Prune(prune::PruneArguments),
}

/// Obeys a command that does not serve, and returns the text to print.
pub fn obey(command: &PartyCommand) -> anyhow::Result<String> {
    match command {
        PartyCommand::Check(arguments) => check::check(arguments),
        PartyCommand::Approve(arguments) => approve::approve(arguments),
        PartyCommand::Revoke(arguments) => approve::revoke(arguments),
        PartyCommand::Approvals(arguments) => approve::approvals(arguments),
        PartyCommand::Prune(arguments) => prune::prune(arguments),
    }
}

/// Serves until `stop` is set.
pub fn serve(arguments: &PartyArguments, stop: &AtomicBool) -> anyhow::Result<()> {
    let Some(path) = &arguments.file else { return Err(input("name the party's own file")) };
    let bad = |problem: String| input(format!("{}: {problem}", path.display()));
    let files = PartyFiles::read(path)?;
    let reporter = Reporter::new(&files.file.party, arguments.log);
    let setup = files.setup(reporter.clone())?;
    let state = files.state();
    let PartyFiles { file, roster, index, keys, .. } = files;
    private_folder(&state)
        .map_err(|error| bad(format!("`state`: cannot create the folder {} ({error})", state.display())))?;
    let Some(_lock) = lock::take(&state)? else {
        return Err(bad(format!("another process is using the state in {}", state.display())));
    };
    status::clear(&state);
    setup.check_table(&state).map_err(bad)?;
    let subject = Subject::new(&setup, roster.primary())?;
    let owner = Owner::open(subject, file.approval.required, reporter.clone(), &roster.fingerprint());
    let owner = owner.map_err(bad)?;
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
    let stopped = reporter.clone();
    let doing = Arc::new(Mutex::new("waits for the primary".to_string()));
    let (look, what) = (service.watch(), Arc::clone(&doing));
    let (party, run, primary) =
        (file.party.clone(), roster.file.run.clone(), roster.primary().name.to_string());
    let mut observer = Observer::new(&primary, &run, wait);
    let _mirror = Mirror::start(&state, move || {
        let link = look();
        for (event, message) in observer.observe(&link, std::time::Instant::now()) {
            reporter.tell(event, message);
        }
        PartyStatus {
            party: party.clone(),
            run: run.clone(),
            doing: what.lock().unwrap_or_else(PoisonError::into_inner).clone(),
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
        session: None,
        owner: Arc::clone(&owner),
    };
    service.serve(&mut serving, stop);
    drop(serving);
    owner.stopped();
    if let denied @ Connection::Denied { .. } = service.state().connection {
        return Err(input(format!("{}: {denied}", file.party)));
    }
    if !stop.load(Ordering::Relaxed) {
        return Err(Unreached(format!("{}: the connection to the server has ended", file.party)).into());
    }
    stopped.tell("stopped", "stopped");
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
    /// The owner's view of the session; it is dropped after `secondary`.
    session: Option<OwnerSession>,
    owner: Arc<Owner>,
}

impl Serving {
    fn does(&self, what: String) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn tell(&self, event: &str, message: impl Display) {
        self.setup.reporter.tell(event, message);
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
        // The former session ends after its secondary, which completes the lifetime account.
        (self.secondary, self.session) = (None, None);
        self.session = Some(self.owner.session(self.run.as_ref(), self.purpose, &about.program));
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
                Ok(request) => self.reply_as_permitted(request),
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
        self.does("waits for the primary".into());
        answers
    }

    fn refused(&mut self, peer: &Peer, ours: u16) {
        let (program, theirs) = (Greeting::read(&peer.about).program, peer.version);
        let reason = format!("it uses version {theirs} of the protocol, this program uses version {ours}");
        self.tell("refused", format_args!("refused {program}: {reason}"));
        self.owner.refused_program(&program, &reason);
    }
}
