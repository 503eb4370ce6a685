//! The primary's side: links to all parties of a roster.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fet_core::experiment::Experiment;
use fet_core::party::Party;
use fet_net::{CallError, Caller, Local, Settings};

use super::remote::{Link, Remote};
use super::roster::Roster;
use super::{About, Purpose, Unreached, keys};
use crate::input::input;

/// Parties elsewhere, which are joined once they are needed: what is wrong at the primary is said before.
pub struct Elsewhere {
    roster: PathBuf,
    key: PathBuf,
    purpose: Purpose,
    stop: Arc<AtomicBool>,
    network: OnceCell<Network>,
}

impl Elsewhere {
    /// The parties of a roster, for whoever has the primary's key. Setting `stop` ends the wait for them.
    pub fn new(roster: &Path, key: &Path, purpose: Purpose, stop: &Arc<AtomicBool>) -> Self {
        let (roster, key) = (roster.to_path_buf(), key.to_path_buf());
        Self { roster, key, purpose, stop: Arc::clone(stop), network: OnceCell::new() }
    }

    /// Whether all randomness follows from the experiment's seed, as in a simulation.
    pub(crate) fn is_rehearsal(&self) -> anyhow::Result<bool> {
        Ok(Roster::read(&self.roster)?.file.rehearsal)
    }

    /// Links to all parties, which have joined for what this experiment says.
    pub(crate) fn join(&self, experiment: &Experiment) -> anyhow::Result<&Network> {
        if let Some(network) = self.network.get() {
            return Ok(network);
        }
        let about = About::of(self.purpose, Some(experiment));
        let network = Network::join(&self.roster, &self.key, about, &self.stop)?;
        Ok(self.network.get_or_init(|| network))
    }

    /// The same, if they have joined.
    pub(crate) fn joined(&self) -> Option<&Network> {
        self.network.get()
    }
}

/// Links to all parties of a roster.
pub(crate) struct Network {
    links: Vec<Link>,
}

impl Network {
    /// Reaches the server of a roster as its primary, and waits until every party has joined.
    fn join(roster: &Path, key: &Path, about: String, stop: &Arc<AtomicBool>) -> anyhow::Result<Self> {
        let roster = Roster::read(roster)?;
        let keys = keys::read(key)?;
        if keys.public() != roster.primary().identity {
            return Err(input(format!(
                "{}: is the key of {}; the roster's primary is {}",
                key.display(),
                keys.public(),
                roster.primary().identity
            )));
        }
        let wait = Duration::from_secs(roster.file.wait);
        let local = Local::new(keys, about);
        let hub = super::connect(&roster, &local.keys, wait)?;
        let mut links = Vec::new();
        for (place, party) in roster.parties().iter().enumerate() {
            let route = roster.route(place);
            let transport = hub.to_party(&route).map_err(input)?;
            let caller = Caller::new(transport, local.clone(), route, party.identity, Settings::default());
            links.push(Link::new(party.name.to_string(), caller, wait, Arc::clone(stop)));
        }
        let network = Self { links };
        network.wait()?;
        Ok(network)
    }

    /// How many parties there are besides the primary.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// The parties, by their names in the experiment, in the order of the roster.
    pub(crate) fn parties(&self, names: Vec<String>) -> Vec<Box<dyn Party>> {
        let remote =
            |(link, name): (&Link, String)| Box::new(Remote { name, link: link.clone() }) as Box<dyn Party>;
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

    fn wait(&self) -> anyhow::Result<()> {
        fet_files::note!(
            "waiting for {}",
            self.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ")
        );
        let joined = std::thread::scope(|scope| {
            let join = |link: &'_ Link| {
                let link = link.clone();
                scope.spawn(move || {
                    let joined = link.join();
                    if joined.is_ok() {
                        fet_files::note!("party \"{}\" has joined", link.name);
                    }
                    (link.name.clone(), joined)
                })
            };
            let threads: Vec<_> = self.links.iter().map(join).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect::<Vec<_>>()
        });
        let fatal = joined.iter().any(|(_, joined)| matches!(joined, Err(CallError::Version { .. })));
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
