//! The primary's side of the network: links to all parties of a roster.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fet_core::experiment::Experiment;
use fet_core::message::LifetimeState;
use fet_core::party::Party;
use fet_core::rng::OwnSeed;
use fet_federation::lifetime::KnownAges;
use fet_net::{CallError, Caller, Keys, Local, Peer};

use super::greeting::{Greeting, JoinPurpose, instructions};
use super::keys;
use super::linking_progress::{PACE, ProgressDisplay, showing};
use super::remote::{self, PartyLink, PartyLinks, Remote};
use super::roster::{Roster, Unreached};
use super::run_id::RunId;
use super::run_monitor::RunMonitor;
use super::status::{LinkStatus, Mirror, PartyStatus};
use fet_io::input::input;

/// Parties elsewhere. They join only when the run needs them, so the primary reports its own problems first.
pub struct Elsewhere {
    roster: Roster,
    keys: Arc<Keys>,
    /// File of the primary's key. While it is locked, no other command changes `ages`.
    key: PathBuf,
    /// File with the ages of the parties' lifetime accounts, next to the primary's key; it outlives runs.
    ages: PathBuf,
    /// Known ages before the parties were asked to join the run.
    before: RefCell<Option<KnownAges>>,
    purpose: JoinPurpose,
    stop: Arc<AtomicBool>,
    /// True if the run leaves out parties that do not join.
    drops: bool,
    monitor: Option<Arc<RunMonitor>>,
    network: OnceCell<PartyNetwork>,
}

impl Elsewhere {
    /// Reads a roster and the primary's key. Setting `stop` ends the wait for the parties.
    ///
    /// # Errors
    /// Returns an error if a file is invalid, or the key is not the primary's.
    pub fn new(
        roster: &Path,
        key: &Path,
        purpose: JoinPurpose,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let roster = Roster::read(roster)?;
        let keys = Arc::new(keys::read(key)?);
        if keys.public() != roster.primary().identity {
            return Err(input(format!(
                "{}: is the key of {}; the roster's primary is {}",
                key.display(),
                keys.public(),
                roster.primary().identity
            )));
        }
        let mut ages = key.as_os_str().to_os_string();
        ages.push(".lifetimes.json");
        let stop = Arc::clone(stop);
        Ok(Self {
            roster,
            keys,
            key: key.to_path_buf(),
            ages: ages.into(),
            before: RefCell::new(None),
            purpose,
            stop,
            drops: false,
            monitor: None,
            network: OnceCell::new(),
        })
    }

    /// Returns the seed of the primary's own randomness.
    ///
    /// The seed derives from the primary's key, so that every run with this key gives the same answer for the
    /// same label.
    pub fn own_seed(&self) -> OwnSeed {
        OwnSeed::new(*self.keys.secret("own randomness"))
    }

    /// Sets the maximum wait for each party, in seconds.
    #[must_use]
    pub fn waiting(mut self, seconds: u64) -> Self {
        self.roster.file.wait = seconds;
        self
    }

    /// Serves metrics of the run on this address.
    ///
    /// # Errors
    /// Fails if other machines reach the address, or if it is taken.
    pub fn monitored(mut self, address: SocketAddr) -> anyhow::Result<Self> {
        self.monitor = Some(Arc::new(RunMonitor::start(address)?));
        Ok(self)
    }

    /// Leaves out parties that do not join, unless no party joins.
    #[must_use]
    pub fn dropping(mut self) -> Self {
        self.drops = true;
        self
    }

    /// Returns true if all randomness derives from the experiment's seed, as in a simulation.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.roster.file.rehearsal
    }

    /// Waits until the parties have joined for this experiment and the run in `folder`, and returns the links
    /// to them.
    pub(crate) fn join(&self, experiment: &Experiment, folder: &Path) -> anyhow::Result<&PartyNetwork> {
        if let Some(network) = self.network.get() {
            self.before.replace(Some(KnownAges::read(&self.ages).map_err(input)?));
            return Ok(network);
        }
        let run = match self.purpose {
            JoinPurpose::Predictions => RunId::finished(folder)?,
            JoinPurpose::Run => match RunId::continued(folder)? {
                Some(run) => run,
                None => RunId::draw()?,
            },
        };
        let about = Greeting {
            rehearsal: self.is_rehearsal(),
            ..Greeting::of_primary(self.purpose, &run, experiment)
        };
        let mut network = PartyNetwork::connect(&self.roster, &self.keys, run, &about, &self.stop)?;
        network.wait(self.drops)?;
        self.before.replace(Some(KnownAges::read(&self.ages).map_err(input)?));
        if let Some(monitor) = &self.monitor {
            monitor.progress().joined(&network.links);
            network.monitor = Some(Arc::clone(monitor));
        }
        Ok(self.network.get_or_init(|| network))
    }

    /// Stores the ages of the parties' lifetime accounts; refuses an account that is younger than before the party was
    /// asked to join.
    pub(crate) fn see(&self, standings: &[Option<LifetimeState>]) -> anyhow::Result<()> {
        // Without the lock, a command at the same time could overwrite what this one has seen.
        let _lock = File::open(&self.key).and_then(|key| key.lock().map(|()| key));
        let before = self.before.borrow();
        let mut known = KnownAges::read(&self.ages).map_err(input)?;
        let mut old = Vec::new();
        let joined = self.roster.parties().iter().zip(standings);
        for (party, LifetimeState { age, .. }) in
            joined.filter_map(|(party, standing)| Some((party, (*standing)?)))
        {
            let identity = party.identity.to_string();
            let before = before.as_ref().map_or(0, |ages| ages.of(&identity));
            if let Err(outdated) = known.see_since(before, &identity, age) {
                old.push(format!("party \"{}\": {outdated}", party.name));
            }
        }
        if let Err(error) = known.keep() {
            let path = self.ages.display();
            fet_io::note!(
                "warning: {path}: {error}; the primary could not detect an old copy of a party's state"
            );
        }
        if old.is_empty() { Ok(()) } else { Err(input(old.join("; "))) }
    }

    /// Returns the links if the parties have joined.
    pub(crate) fn joined(&self) -> Option<&PartyNetwork> {
        self.network.get()
    }
}

/// Links to all parties of a roster.
pub(crate) struct PartyNetwork {
    run: RunId,
    /// Names of the primary and of the run in the roster.
    names: [String; 2],
    /// True if the roster declares a rehearsal.
    rehearsal: bool,
    links: Vec<PartyLink>,
    /// Numbers of the parties that did not join and are left out, from 0.
    missing: Vec<usize>,
    /// Current activity of the run, for `fet status`.
    doing: Arc<Mutex<String>>,
    monitor: Option<Arc<RunMonitor>>,
}

impl PartyNetwork {
    /// Connects to the server of a roster as its primary.
    fn connect(
        roster: &Roster,
        keys: &Arc<Keys>,
        run: RunId,
        about: &Greeting,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let wait = Duration::from_secs(roster.file.wait);
        let local = Local::new(Arc::clone(keys), about.text());
        let hub = roster.connect(keys, stop, &|message| fet_io::note!("{message}"))?;
        let mut links = Vec::new();
        for (place, party) in roster.parties().iter().enumerate() {
            let route = roster.route(place);
            let transport = hub.to_party(&route).map_err(input)?;
            let settings = remote::settings(wait);
            let caller = Caller::new(transport, local.clone(), route, party.identity, settings);
            links.push(PartyLink::new(party.name.to_string(), caller, wait, Arc::clone(stop)));
        }
        let names = [roster.primary().name.to_string(), roster.file.run.clone()];
        let rehearsal = roster.file.rehearsal;
        Ok(Self { run, names, rehearsal, links, missing: Vec::new(), doing: Arc::default(), monitor: None })
    }

    /// Returns the parties' id of the run.
    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// Writes the state of the links into the folder of the run until the returned value is dropped.
    pub(crate) fn mirror(&self, folder: &Path) -> Mirror {
        let (names, links, doing) = (self.names.clone(), self.links.clone(), Arc::clone(&self.doing));
        Mirror::start(folder, move || {
            let [party, run] = names.clone();
            let links =
                links.iter().map(|link| LinkStatus::from_state(&link.name, &link.state(), false)).collect();
            let doing = doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            PartyStatus { party, run, doing, links, written: 0 }
        })
    }

    /// Does `work`, and writes a line twice a minute while the work waits for links of parties.
    pub(crate) fn showing_links<T>(&self, work: impl FnOnce() -> T) -> T {
        showing(PACE, &mut AwaitedLinks(&self.links), work)
    }

    /// Sets the current activity of the run.
    pub(crate) fn does(&self, what: String) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// Sets the number of finished epochs, for the monitor of the run.
    pub(crate) fn finished(&self, epoch: usize, of: usize) {
        if let Some(monitor) = &self.monitor {
            monitor.progress().finished(epoch, of);
        }
    }

    /// Returns the numbers of the parties that did not join and are left out, from 0.
    pub(crate) fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Returns the number of parties without the primary.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the parties by their names in the experiment, in the order of the roster.
    pub(crate) fn parties(&self, names: Vec<String>) -> Vec<Box<dyn Party>> {
        let remote =
            |(link, name): (&PartyLink, String)| Box::new(Remote::new(name, link.clone())) as Box<dyn Party>;
        self.links.iter().zip(names).map(remote).collect()
    }

    /// Returns the links to the parties that joined.
    pub(crate) fn party_links(&self) -> PartyLinks {
        let joined = self.links.iter().enumerate().filter(|(place, _)| !self.missing.contains(place));
        PartyLinks::new(joined.map(|(_, link)| link.clone()).collect())
    }

    /// Returns a line with the latency and traffic of each party.
    pub(crate) fn line(&self) -> String {
        let of = |link: &PartyLink| {
            let state = link.state();
            let latency = state
                .latency
                .map_or_else(String::new, |latency| format!(" {:.1} ms", 1e3 * latency.as_secs_f64()));
            format!("{}{latency} {}", link.name, indicatif::HumanBytes(state.sent + state.received))
        };
        self.links.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    /// Refuses a mixture of parties that rehearse (their secrets derive from the experiment's seed) and
    /// parties that do not.
    fn check_rehearsal(&self, joined: &[Joined]) -> anyhow::Result<()> {
        let differs = |(name, joined): &Joined| {
            let theirs = Greeting::read(&joined.as_ref().ok()?.about).rehearsal;
            (theirs != self.rehearsal).then(|| {
                format!(
                    "party \"{name}\": `rehearsal` is {theirs} in its own file, but {} in this roster. All must have \
                     the same value, because a rehearsal hides nothing.",
                    self.rehearsal
                )
            })
        };
        let found: Vec<String> = joined.iter().filter_map(differs).collect();
        if found.is_empty() { Ok(()) } else { Err(input(found.join("; "))) }
    }

    /// Waits until every party has joined; if `drops`, missing parties are left out.
    fn wait(&mut self, drops: bool) -> anyhow::Result<()> {
        fet_io::note!(
            "waiting for {}",
            self.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ")
        );
        let joined = std::thread::scope(|scope| {
            let join = |link: &'_ PartyLink| {
                let link = link.clone();
                scope.spawn(move || {
                    let joined = link.join();
                    if let Ok(peer) = &joined {
                        greet(&link.name, &Greeting::read(&peer.about));
                    }
                    (link.name.clone(), joined)
                })
            };
            let threads: Vec<_> = self.links.iter().map(join).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect::<Vec<_>>()
        });
        self.check_rehearsal(&joined)?;
        let late = |joined: &Result<_, _>| matches!(joined, Err(CallError::NotJoined { .. }));
        let missing: Vec<usize> = joined
            .iter()
            .enumerate()
            .filter(|(_, (_, joined))| late(joined))
            .map(|(place, _)| place)
            .collect();
        let others = joined.iter().all(|(_, joined)| joined.is_ok() || late(joined));
        if drops && others && missing.len() < joined.len() {
            self.missing = missing;
            return Ok(());
        }
        let fatal = joined
            .iter()
            .any(|(_, joined)| matches!(joined, Err(CallError::Version { .. } | CallError::Denied(_))));
        let failed: Vec<String> = joined
            .into_iter()
            .filter_map(|(name, joined)| Some(format!("party \"{name}\": {}", joined.err()?)))
            .collect();
        match (failed.is_empty(), fatal) {
            (true, _) => Ok(()),
            (false, true) => Err(input(failed.join("; "))),
            (false, false) => Err(Unreached(failed.join("; ")).into()),
        }
    }
}

/// Shows the parties whose links the primary awaits.
struct AwaitedLinks<'a>(&'a [PartyLink]);

impl ProgressDisplay for AwaitedLinks<'_> {
    fn look(&mut self, _: Duration) {}

    fn line(&mut self, _: Duration) {
        let awaited = self.0.iter().filter_map(|link| Some((link.name.as_str(), link.links_for()?)));
        if let Some(line) = awaited_line(awaited) {
            fet_io::note!("{line}");
        }
    }
}

/// Returns a line with the parties that link, and the time for which each has linked; `None` without such a party.
fn awaited_line<'a>(parties: impl Iterator<Item = (&'a str, Duration)>) -> Option<String> {
    let parties: Vec<String> =
        parties.map(|(name, time)| format!("party \"{name}\" for {} s", time.as_secs())).collect();
    (!parties.is_empty()).then(|| format!("linking: {}", parties.join(", ")))
}

/// Name of a party, and the result of its joining.
type Joined = (String, Result<Peer, CallError>);

/// Reports that a party has joined, and warns if its machine may compute different last bits.
fn greet(name: &str, about: &Greeting) {
    fet_io::note!("party \"{name}\" has joined");
    let ours = instructions();
    if !about.instructions.is_empty() && about.instructions != ours {
        fet_io::note!(
            "party \"{name}\" computes with {}, this machine with {ours}; the last bits may differ from a simulation",
            about.instructions
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_parties_that_link() {
        let line = |parties: &[(&'static str, u64)]| {
            awaited_line(parties.iter().map(|&(name, seconds)| (name, Duration::from_secs(seconds))))
        };
        assert_eq!(line(&[]), None);
        assert_eq!(
            line(&[("streets", 41), ("weather", 7)]).as_deref(),
            Some("linking: party \"streets\" for 41 s, party \"weather\" for 7 s")
        );
    }
}
