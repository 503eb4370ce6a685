//! `fet party`: serves as a secondary, which waits for the primary and answers its requests, run after run,
//! until it is stopped.
//!
//! One command serves one or more rosters. Rosters whose party's files name the same state share its accounts.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fet_net::{Connection, Lanes, Local, Service, State};

use super::approval::Approvals;
use super::greeting::Greeting;
use super::monitor::metrics::PartyMetrics;
use super::monitor::{Monitor, PartyNames};
use super::observer::Observer;
use super::owner::{Owner, Subject};
use super::programs::{Link, Programs};
use super::remote;
use super::roster::Unreached;
use super::serving::ServingParty;
use super::setup::{PartyFiles, PartySetup, SharedFiles, own_folder, private_folder};
use super::status::{self, LinkStatus, Mirror, PartyStatus};
#[cfg(unix)]
use super::systemd::Notifier;
use super::{approve, check, prune};
use crate::lock;
use crate::reporter::{Log, LogLevel, Reporter};
use fet_io::input::input;

/// Time between two looks for the end of the command.
const LOOK: Duration = Duration::from_millis(25);

/// Arguments of `fet party`.
#[derive(Debug, Clone, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct PartyArguments {
    /// Subcommand instead of serving.
    #[command(subcommand)]
    pub command: Option<PartyCommand>,
    /// The party's own file (TOML): its name, experiment, key, state and table. With several files, the party serves
    /// their rosters at the same time.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Print what a run would release, as `fet party check` does, instead of serving.
    #[arg(long)]
    pub check: bool,
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
pub fn serve(arguments: &PartyArguments, stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let files =
        arguments.files.iter().map(|path| PartyFiles::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    check_runs(&arguments.files, &files)?;
    let mut states: Vec<OpenState> = Vec::new();
    let mut opened = Vec::new();
    for (number, (path, files)) in arguments.files.iter().zip(files).enumerate() {
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        let at = OpenState::of(&mut states, &files.state()).map_err(bad)?;
        let name = match arguments.files.len() {
            1 => files.file.party.clone(),
            _ => format!("{} ({})", files.file.party, files.roster.file.run),
        };
        let reporter = Reporter::new(&name, arguments.log).at(arguments.log_level);
        opened.push(OpenRoster::new(path, number, files, &mut states[at], reporter)?);
    }
    let connected = opened.into_iter().map(|roster| roster.connect(stop)).collect::<anyhow::Result<Vec<_>>>();
    // A stop while the server is away is not a failure.
    if connected.is_err() && stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let connected = connected?;
    let (rosters, links): (Vec<_>, Vec<_>) = connected.into_iter().unzip();
    let mirrors: Vec<Mirror> = states.iter().map(|state| state.mirror(&rosters, &links)).collect();
    #[cfg(unix)]
    let _notifier = notifier(&states, &links, stop);
    let ended = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (roster, mut service) in rosters.iter().zip(links) {
            let ended = &ended;
            threads.push(scope.spawn(move || {
                service.serve_each(roster.party.most, &roster.party, ended);
                // The others only follow the first one that ends.
                let is_first = !ended.swap(true, Ordering::Relaxed);
                (service.state().connection, is_first)
            }));
        }
        while !stop.load(Ordering::Relaxed) && !ended.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        let stopped = !ended.swap(true, Ordering::Relaxed);
        rosters.iter().for_each(|roster| roster.monitor.stopping());
        let mut outcome = Ok(());
        for (roster, thread) in rosters.iter().zip(threads) {
            let (connection, is_first) =
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(roster.ended(connection, stopped || !is_first));
        }
        outcome
    });
    drop(mirrors);
    outcome
}

/// Starts telling the service manager about all links.
#[cfg(unix)]
fn notifier(states: &[OpenState], links: &[Service], stop: &Arc<AtomicBool>) -> Notifier {
    let looks: Vec<_> = links.iter().map(Service::watch).collect();
    let programs: Vec<_> = states.iter().map(|state| Arc::clone(&state.programs)).collect();
    let heartbeats = links.iter().map(Service::heartbeat).collect();
    Notifier::start(heartbeats, Arc::clone(stop), move || {
        let mut states: Vec<_> = looks.iter().map(|look| look()).collect();
        let is_up = |state: &State| matches!(state.connection, Connection::Up { .. });
        let worst = states.iter().position(|state| !is_up(state)).unwrap_or(0);
        let doing: Vec<_> = programs.iter().map(|programs| programs.doing()).collect();
        (states.swap_remove(worst), doing.join("; "))
    })
}

/// Refuses two files for the same run of a roster: the server could not tell their messages apart.
fn check_runs(paths: &[PathBuf], files: &[PartyFiles]) -> anyhow::Result<()> {
    for (at, later) in files.iter().enumerate() {
        let run = |files: &PartyFiles| (files.roster.file.run.clone(), files.roster.file.server.clone());
        if let Some(earlier) = files[..at].iter().position(|earlier| run(earlier) == run(later)) {
            return Err(input(format!(
                "{}: `run` of its roster must differ from that of {}; both are \"{}\"",
                paths[at].display(),
                paths[earlier].display(),
                later.roster.file.run
            )));
        }
    }
    Ok(())
}

/// State folder that this process has locked.
struct OpenState {
    folder: PathBuf,
    /// Numbers of the rosters with this state.
    rosters: Vec<usize>,
    shared: Arc<SharedFiles>,
    programs: Arc<Programs>,
    approvals: Arc<Mutex<Approvals>>,
    /// Settings of the party's table in the first file with this state.
    table: Option<String>,
    _lock: std::fs::File,
}

impl OpenState {
    /// Returns the place of the state in the list; locks and adds it if it is new.
    fn of(states: &mut Vec<Self>, folder: &Path) -> Result<usize, String> {
        private_folder(folder)
            .map_err(|error| format!("`state`: cannot create the folder {} ({error})", folder.display()))?;
        let same = |state: &Self| matches!((state.folder.canonicalize(), folder.canonicalize()), (Ok(one), Ok(other)) if one == other);
        if let Some(at) = states.iter().position(same) {
            return Ok(at);
        }
        let lock = lock::take(folder).map_err(|error| format!("`state`: {error:#}"))?;
        let Some(lock) = lock else {
            return Err(format!("another process is using the state in {}", folder.display()));
        };
        status::clear(folder);
        // The state folder may have been made by another program, for all users.
        let own = own_folder(folder);
        private_folder(&own)
            .map_err(|error| format!("`state`: cannot create the folder {} ({error})", own.display()))?;
        let approvals = Approvals::open(&own).map_err(|problem| problem.to_string())?;
        states.push(Self {
            folder: folder.to_path_buf(),
            rosters: Vec::new(),
            shared: Arc::new(SharedFiles::in_state(folder)),
            programs: Arc::default(),
            approvals: Arc::new(Mutex::new(approvals)),
            table: None,
            _lock: lock,
        });
        Ok(states.len() - 1)
    }

    /// Writes the status of all links of this state until the returned value is dropped.
    fn mirror(&self, rosters: &[ServedRoster], links: &[Service]) -> Mirror {
        let mut watched: Vec<_> = self
            .rosters
            .iter()
            .map(|&at| {
                let roster = &rosters[at];
                let observer = Observer::new(&roster.primary, &roster.run, roster.wait);
                (
                    links[at].watch(),
                    observer,
                    roster.reporter().clone(),
                    roster.primary.clone(),
                    roster.run.clone(),
                )
            })
            .collect();
        let is_one = watched.len() == 1;
        let (programs, party) = (Arc::clone(&self.programs), rosters[self.rosters[0]].name.clone());
        Mirror::start(&self.folder, move || {
            let (mut links, mut runs) = (Vec::new(), Vec::new());
            for (look, observer, reporter, primary, run) in &mut watched {
                let link = look();
                for (event, message) in observer.observe(&link, Instant::now()) {
                    reporter.tell(event, message);
                }
                let name = if is_one { primary.clone() } else { format!("{primary} of {run}") };
                links.push(LinkStatus::from_state(&name, &link, true));
                runs.push(run.clone());
            }
            PartyStatus {
                party: party.clone(),
                run: runs.join(", "),
                doing: programs.doing(),
                links,
                written: 0,
            }
        })
    }
}

/// Roster with everything that the party needs, before the connection to its server.
struct OpenRoster {
    number: usize,
    files: PartyFiles,
    setup: PartySetup,
    owner: Arc<Owner>,
    programs: Arc<Programs>,
    metrics: Arc<PartyMetrics>,
    monitor: Monitor,
}

impl OpenRoster {
    /// Reads the party's table, and opens its approvals and its audit log.
    fn new(
        path: &Path,
        number: usize,
        files: PartyFiles,
        state: &mut OpenState,
        reporter: Reporter,
    ) -> anyhow::Result<Self> {
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        let setup = files.setup_with(reporter.clone(), Arc::clone(&state.shared))?;
        let table = setup.own_table();
        if let Some(known) = state.table.as_ref().filter(|known| **known != table) {
            return Err(bad(format!(
                "`data` must be that of the other file with the state {}, because the accounts there are about the people in \
                 one table; it is {table}, the other one is {known}",
                state.folder.display()
            )));
        }
        setup.check_table(&state.folder).map_err(bad)?;
        state.table = Some(table);
        state.rosters.push(number);
        let fingerprint = files.roster.fingerprint();
        let subject = Subject::new(&setup, &files.roster)?;
        let approvals = (files.file.approval.required, Arc::clone(&state.approvals));
        let owner = Owner::open(subject, approvals, reporter.clone(), &fingerprint);
        let owner = owner.map_err(bad)?;
        reporter.tell(
            "roster",
            format_args!(
                "the fingerprint of the roster is {fingerprint}; the other parties must have the same (`fet keys roster`)"
            ),
        );
        let metrics = Arc::default();
        let monitor = monitor(&files, &metrics).map_err(|error| bad(error.to_string()))?;
        if let Some(address) = monitor.address() {
            reporter.tell("monitor", format_args!("the monitor listens on http://{address}"));
        }
        let programs = Arc::clone(&state.programs);
        Ok(Self { number, files, setup, owner, programs, metrics, monitor })
    }

    /// Connects to the server.
    fn connect(self, stop: &AtomicBool) -> anyhow::Result<(ServedRoster, Service)> {
        let Self { number, files, setup, owner, programs, metrics, monitor } = self;
        let PartyFiles { file, roster, index, keys, .. } = files;
        let wait = Duration::from_secs(roster.file.wait);
        let about = Greeting { rehearsal: file.rehearsal, ..Greeting::party() };
        let local = Local::new(keys, about.text());
        let reporter = setup.reporter.clone();
        reporter.tell("connecting", format_args!("connecting to {}", roster.file.server));
        let hub = roster.connect(&local.keys, stop, &|message| reporter.tell("waiting", message))?;
        let (route, identity) = (roster.route(index), roster.primary().identity);
        let transport = hub.to_primary(&route).map_err(input)?;
        let service = Service::new(transport, local, route, identity, remote::settings(wait));
        let (primary, run) = (roster.primary().name.to_string(), roster.file.run.clone());
        reporter
            .tell("ready", format_args!("ready for {primary} in the run {run}; its key must be {identity}"));
        let party = ServingParty {
            setup,
            roster: number,
            most: file.most_programs,
            link: Arc::new(LinkOfRoster { lanes: service.lanes(), wait }),
            programs,
            owner,
            metrics,
        };
        monitor.watch(service.watch(), service.heartbeat());
        Ok((ServedRoster { party, monitor, name: file.party, primary, run, wait }, service))
    }
}

/// Starts the monitor of a party, if its file turns it on.
fn monitor(files: &PartyFiles, metrics: &Arc<PartyMetrics>) -> anyhow::Result<Monitor> {
    let PartyFiles { file, roster, .. } = files;
    let names = PartyNames {
        party: file.party.clone(),
        primary: roster.primary().name.to_string(),
        run: roster.file.run.clone(),
        server: roster.file.server.clone(),
    };
    Monitor::start(&file.monitor, names, Arc::clone(metrics), files.state(), file.policy.clone())
}

/// Roster that this process serves.
struct ServedRoster {
    party: ServingParty,
    monitor: Monitor,
    name: String,
    primary: String,
    run: String,
    wait: Duration,
}

impl ServedRoster {
    fn reporter(&self) -> &Reporter {
        &self.party.setup.reporter
    }

    /// Notes the end of the service. `stopped` is true if the user has stopped it.
    fn ended(&self, connection: Connection, stopped: bool) -> anyhow::Result<()> {
        self.party.owner.stopped();
        if let denied @ Connection::Denied { .. } = connection {
            return Err(input(format!("{}: {denied}", self.name)));
        }
        if !stopped {
            return Err(Unreached(format!("{}: the connection to the server has ended", self.name)).into());
        }
        self.reporter().tell("stopped", "stopped");
        Ok(())
    }
}

/// Link to the primary of a roster.
struct LinkOfRoster {
    lanes: Lanes,
    /// Time without a sign after which a program counts as gone.
    wait: Duration,
}

impl Link for LinkOfRoster {
    fn close(&self, instance: u64) {
        self.lanes.close(instance);
    }

    fn is_gone(&self, instance: u64) -> bool {
        self.lanes.silence(instance).is_some_and(|silence| silence > self.wait)
    }
}
