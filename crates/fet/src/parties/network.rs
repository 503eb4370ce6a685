//! The primary's side: links to all parties of a roster.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fet_core::party::Party;
use fet_net::{Caller, Local, Settings};

use super::remote::{Link, Remote};
use super::roster::Roster;
use super::{About, Purpose, Unreached, keys};
use crate::input::input;

/// Links to all parties of a roster.
pub struct Network {
    links: Vec<Link>,
}

impl Network {
    /// Reaches the server of a roster as its primary, and waits until every party has joined. Setting `stop` ends the wait.
    ///
    /// # Errors
    /// A roster or key that cannot be used, a server that cannot be reached, a party that does not join in time.
    pub fn join(roster: &Path, key: &Path, purpose: Purpose, stop: &Arc<AtomicBool>) -> anyhow::Result<Self> {
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
        let local = Local::new(keys, About::of(purpose));
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
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
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
        let failed: Vec<String> = joined
            .into_iter()
            .filter_map(|(name, joined)| Some(format!("party \"{name}\": {}", joined.err()?)))
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(Unreached(failed.join("; ")).into()) }
    }
}
