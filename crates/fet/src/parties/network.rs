//! The primary's side: links to all parties of a roster.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fet_core::experiment::Experiment;
use fet_core::message::Standing;
use fet_core::party::Party;
use fet_core::rng::OwnSeed;
use fet_federation::lifetime::Known;
use fet_net::{CallError, Caller, Keys, Local, Peer};

use super::remote::{self, Link, Remote};
use super::roster::Roster;
use super::run_id::RunId;
use super::status::{LinkStatus, Mirror, Status};
use super::{About, Purpose, Unreached, keys};
use fet_io::input::input;

/// Parties elsewhere, which are joined once they are needed: what is wrong at the primary is said before.
pub struct Elsewhere {
    roster: Roster,
    keys: Arc<Keys>,
    /// The file of the ages of parties' lifetime accounts: it lies next to the primary's key and outlives runs.
    ages: PathBuf,
    purpose: Purpose,
    stop: Arc<AtomicBool>,
    /// Whether those that do not join are left out.
    drops: bool,
    network: OnceCell<Network>,
}

impl Elsewhere {
    /// The parties of a roster, for whoever has the primary's key. Setting `stop` ends the wait for them.
    ///
    /// # Errors
    /// Where a file is none of its kind, or the key is not the primary's.
    pub fn new(roster: &Path, key: &Path, purpose: Purpose, stop: &Arc<AtomicBool>) -> anyhow::Result<Self> {
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
        Ok(Self { roster, keys, ages: ages.into(), purpose, stop, drops: false, network: OnceCell::new() })
    }

    /// The seed of the primary's own randomness. It follows from the primary's key, so that every run with this key gives the same
    /// answer for the same label.
    pub fn own_seed(&self) -> OwnSeed {
        OwnSeed::new(*self.keys.secret("own randomness"))
    }

    /// The same, but that each party is waited for so many seconds.
    #[must_use]
    pub fn waiting(mut self, seconds: u64) -> Self {
        self.roster.file.wait = seconds;
        self
    }

    /// The same, but that parties which do not join are left out, unless it is all of them.
    #[must_use]
    pub fn dropping(mut self) -> Self {
        self.drops = true;
        self
    }

    /// Whether all randomness follows from the experiment's seed, as in a simulation.
    pub(crate) fn is_rehearsal(&self) -> bool {
        self.roster.file.rehearsal
    }

    /// Links to all parties, which have joined for what this experiment says, and for the run in `folder`.
    pub(crate) fn join(&self, experiment: &Experiment, folder: &Path) -> anyhow::Result<&Network> {
        if let Some(network) = self.network.get() {
            return Ok(network);
        }
        let run = match self.purpose {
            Purpose::Predictions => RunId::finished(folder)?,
            Purpose::Run => match RunId::continued(folder)? {
                Some(run) => run,
                None => RunId::draw()?,
            },
        };
        let about = About { rehearsal: self.is_rehearsal(), ..About::of(self.purpose, &run, experiment) };
        let mut network = Network::connect(&self.roster, &self.keys, run, &about, &self.stop)?;
        network.wait(self.drops)?;
        Ok(self.network.get_or_init(|| network))
    }

    /// Remembers the ages of the parties' lifetime accounts; refuses one that was older before.
    pub(crate) fn see(&self, standings: &[Option<Standing>]) -> anyhow::Result<()> {
        let mut known = Known::read(&self.ages).map_err(input)?;
        let mut seen = Ok(());
        let joined = self.roster.parties().iter().zip(standings);
        for (party, Standing { age, .. }) in
            joined.filter_map(|(party, standing)| Some((party, (*standing)?)))
        {
            let outcome = known.see(&party.identity.to_string(), age);
            seen = seen.and(outcome.map_err(|old| input(format!("party \"{}\": {old}", party.name))));
        }
        if let Err(error) = known.keep() {
            let path = self.ages.display();
            fet_io::note!("warning: {path}: {error}; an old copy of a party's state would go unnoticed");
        }
        seen
    }

    /// The same, if they have joined.
    pub(crate) fn joined(&self) -> Option<&Network> {
        self.network.get()
    }
}

/// Links to all parties of a roster.
pub(crate) struct Network {
    run: RunId,
    /// The primary's name and the run's, as the roster has them.
    names: [String; 2],
    /// Whether the roster says that it is a rehearsal.
    rehearsal: bool,
    links: Vec<Link>,
    /// Those that did not join and are left out, from 0.
    missing: Vec<usize>,
    /// What the run does, for `fet status`.
    doing: Arc<Mutex<String>>,
}

impl Network {
    /// Reaches the server of a roster as its primary.
    fn connect(
        roster: &Roster,
        keys: &Arc<Keys>,
        run: RunId,
        about: &About,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let wait = Duration::from_secs(roster.file.wait);
        let local = Local::new(Arc::clone(keys), about.text());
        let hub = super::connect(roster, keys, wait)?;
        let mut links = Vec::new();
        for (place, party) in roster.parties().iter().enumerate() {
            let route = roster.route(place);
            let transport = hub.to_party(&route).map_err(input)?;
            let settings = remote::settings(wait);
            let caller = Caller::new(transport, local.clone(), route, party.identity, settings);
            links.push(Link::new(party.name.to_string(), caller, wait, Arc::clone(stop)));
        }
        let names = [roster.primary().name.to_string(), roster.file.run.clone()];
        let rehearsal = roster.file.rehearsal;
        Ok(Self { run, names, rehearsal, links, missing: Vec::new(), doing: Arc::default() })
    }

    /// By what the parties know the run.
    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// Writes how the links stand into the folder of the run, as long as the answer lives.
    pub(crate) fn mirror(&self, folder: &Path) -> Mirror {
        let (names, links, doing) = (self.names.clone(), self.links.clone(), Arc::clone(&self.doing));
        Mirror::start(folder, move || {
            let [party, run] = names.clone();
            let links = links.iter().map(|link| LinkStatus::of(&link.name, &link.state(), false)).collect();
            let doing = doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Status { party, run, doing, links, written: 0 }
        })
    }

    /// Notes what the run does.
    pub(crate) fn does(&self, what: String) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// The parties that did not join and are left out, from 0.
    pub(crate) fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// How many parties there are besides the primary.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// The parties, by their names in the experiment, in the order of the roster.
    pub(crate) fn parties(&self, names: Vec<String>) -> Vec<Box<dyn Party>> {
        let remote =
            |(link, name): (&Link, String)| Box::new(Remote::new(name, link.clone())) as Box<dyn Party>;
        self.links.iter().zip(names).map(remote).collect()
    }

    /// A line of how the parties stand: bytes and latency.
    pub(crate) fn line(&self) -> String {
        let of = |link: &Link| {
            let state = link.state();
            let latency = state
                .latency
                .map_or_else(String::new, |latency| format!(" {:.1} ms", 1e3 * latency.as_secs_f64()));
            format!("{}{latency} {}", link.name, indicatif::HumanBytes(state.sent + state.received))
        };
        self.links.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    /// Refuses parties whose secrets follow from the experiment's seed where this primary's do not, and the other way round.
    fn check_rehearsal(&self, joined: &[Joined]) -> anyhow::Result<()> {
        let differs = |(name, joined): &Joined| {
            let theirs = About::read(&joined.as_ref().ok()?.about).rehearsal;
            (theirs != self.rehearsal).then(|| {
                format!(
                    "party \"{name}\": `rehearsal` is {theirs} in its own file, and {} in this roster; all must have the same: a \
                     rehearsal hides nothing",
                    self.rehearsal
                )
            })
        };
        let found: Vec<String> = joined.iter().filter_map(differs).collect();
        if found.is_empty() { Ok(()) } else { Err(input(found.join("; "))) }
    }

    /// Waits until every party has joined; those that do not are left out where `drops`.
    fn wait(&mut self, drops: bool) -> anyhow::Result<()> {
        fet_io::note!(
            "waiting for {}",
            self.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ")
        );
        let joined = std::thread::scope(|scope| {
            let join = |link: &'_ Link| {
                let link = link.clone();
                scope.spawn(move || {
                    let joined = link.join();
                    if let Ok(peer) = &joined {
                        greet(&link.name, &About::read(&peer.about));
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

/// A party's name, and how it joined.
type Joined = (String, Result<Peer, CallError>);

/// Says that a party has joined, and where its machine may compute other last bits.
fn greet(name: &str, about: &About) {
    fet_io::note!("party \"{name}\" has joined");
    let ours = super::instructions();
    if !about.instructions.is_empty() && about.instructions != ours {
        fet_io::note!(
            "party \"{name}\" computes with {}, this machine with {ours}: the last bits may not be those of a simulation",
            about.instructions
        );
    }
}
