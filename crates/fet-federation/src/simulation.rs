//! All parties in one process: makes each party's own data and settings from one experiment.
//!
//! This is the only place that sees the tables of several parties. Each party gets its own table, its own copy of the
//! settings and its own seed; after that they communicate only by messages.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fet_core::data::{Folders, PartyTable, VerticalData};
use fet_core::experiment::{Experiment, Randomness, Wire};
use fet_core::message::{Reply, Request};
use fet_core::party::{AsBytes, Failure, Party};
use fet_core::policy::Policy;
use fet_core::registry::Violation;
use fet_core::rng::OwnSeed;
use fet_io::memory;
use fet_privacy::identity::Identity;

use crate::data::{divided, read};
use crate::prepare::PrimaryData;
use crate::secondary::{Finished, Own, Secondary, Store, Tell, has_entries};
use crate::trainer::{Beginning, Machine, RunError, SavedModel, Trainer};

/// A simulation: its experiment, its device, and where its parties keep their state.
#[derive(Clone)]
pub struct Simulation<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The device and threads that all parties share.
    pub machine: &'a Machine,
    /// The folder in which each party has its own folder for its state; `None` keeps the state in memory.
    pub folder: Option<&'a Path>,
    /// The parties that an interrupted run had lost, from 0.
    pub gone: Vec<usize>,
    /// Which of several runs of the same settings this is: noise and keys are drawn anew for each; 0 is the reported one.
    pub run: u64,
    /// The primary's own seed in a run that begins, if it is not drawn: one that outlives the run, so that a second run on the same
    /// labels repeats the answers of the first.
    pub primary: Option<OwnSeed>,
    /// The finished models that training goes on from; nothing where it begins anew.
    pub start: Option<Start>,
    /// Receives the warnings of the parties.
    pub tell: Tell,
}

/// The models of a finished run that another run goes on from.
#[derive(Debug, Clone)]
pub struct Start {
    /// The primary's.
    pub primary: SavedModel,
    /// Each secondary's; nothing where that run lost the party, whose model then begins anew.
    pub parties: Vec<Option<Finished>>,
}

impl<'a> Simulation<'a> {
    /// A simulation whose parties keep their state in memory and whose warnings are dropped.
    pub fn new(experiment: &'a Experiment, machine: &'a Machine) -> Self {
        Self {
            experiment,
            machine,
            folder: None,
            gone: Vec::new(),
            run: 0,
            primary: None,
            start: None,
            tell: Arc::new(|_| ()),
        }
    }

    /// Loads the experiment's data from `folders`; then all parties agree to the terms and link.
    pub fn load(&self, folders: &Folders) -> Result<Trainer, RunError> {
        let (primary, tables) = self.divided(self.read(folders)?)?;
        self.begin(primary, tables)
    }

    /// Reads the experiment's data, with the column that its split goes by.
    pub fn read(&self, folders: &Folders) -> Result<VerticalData, RunError> {
        read(self.experiment, folders)
    }

    /// The primary's data, split as the experiment says, and the secondaries' tables.
    pub fn divided(&self, data: VerticalData) -> Result<(PrimaryData, Vec<PartyTable>), RunError> {
        Ok(divided(self.experiment, data)?)
    }

    /// The same on tables that are already loaded.
    pub fn start(&self, data: VerticalData) -> Result<Trainer, RunError> {
        let (primary, tables) = self.divided(data)?;
        self.begin(primary, tables)
    }

    fn begin(&self, primary: PrimaryData, tables: Vec<PartyTable>) -> Result<Trainer, RunError> {
        let parties = self.secondaries(tables)?.into_iter().map(|party| self.wired(party)).collect();
        self.trainer(primary, parties)
    }

    /// The primary's side, with the parties as it reaches them.
    pub fn trainer(&self, primary: PrimaryData, parties: Vec<Box<dyn Party>>) -> Result<Trainer, RunError> {
        let model = self.start.as_ref().map(|start| start.primary.clone());
        let beginning = Beginning { gone: self.gone.clone(), own: self.seed(0)?, model };
        self.check_links(primary.labels.len(), parties.len())?;
        memory::caught(|| Trainer::begin(self.experiment, primary, parties, self.machine, beginning))?
    }

    /// Refuses links that do not fit in memory: an index and a similarity for each.
    fn check_links(&self, rows: usize, parties: usize) -> Result<(), Violation> {
        let neighbours = self.experiment.linker.build(&())?.about().neighbours;
        memory::check(rows as u128 * neighbours as u128 * parties as u128, 8).map_err(|error| {
            let rule =
                format!("must leave memory for the links of {rows} records and {parties} parties ({error})");
            Violation::new("linker.neighbours", rule, neighbours)
        })
    }

    /// Where a party keeps its state, below `folder` or in memory: the primary (0), whose place holds its seed alone, or a
    /// secondary, from 1.
    pub fn store(folder: Option<&Path>, number: usize) -> Store {
        let name = if number == 0 { "primary".to_string() } else { format!("party{number}") };
        folder.map_or_else(|| Store::Memory(Vec::new()), |folder| Store::folder(folder.join(name)))
    }

    /// The seed of a party's own randomness: of the primary (0) or of a secondary, from 1.
    fn seed(&self, number: usize) -> Result<OwnSeed, RunError> {
        match self.experiment.train.randomness {
            Randomness::Experiment => {
                let seed = OwnSeed::simulated(self.experiment.seed, number);
                Ok(if self.run == 0 {
                    seed
                } else {
                    OwnSeed::repeating(*seed.secret(&format!("run {}", self.run)))
                })
            }
            // The primary's seed is the first that is put in its place.
            Randomness::Own => {
                let begun = number == 0 && self.folder.is_some_and(has_entries);
                match &self.primary {
                    Some(seed) if number == 0 && !begun => Ok(seed.clone()),
                    _ => Ok(Self::store(self.folder, number).own_seed(begun)?),
                }
            }
        }
    }

    /// The secondaries, before they join; none if the method uses the primary alone.
    pub fn secondaries(&self, tables: Vec<PartyTable>) -> Result<Vec<Secondary>, RunError> {
        let models = tables.iter().map(|_| None).collect();
        self.serving(tables, models)
    }

    /// The same, where each serves its finished model if it has one.
    pub fn serving(
        &self,
        tables: Vec<PartyTable>,
        models: Vec<Option<Finished>>,
    ) -> Result<Vec<Secondary>, RunError> {
        if !self.experiment.method.build(&())?.plan().secondaries {
            return Ok(Vec::new());
        }
        let seeds: Vec<OwnSeed> =
            (1..=tables.len()).map(|number| self.seed(number)).collect::<Result<_, _>>()?;
        let identity = |seed: &OwnSeed| Identity::from_secret(*seed.secret("identity"));
        let roster: Arc<[_]> = seeds.iter().map(|seed| identity(seed).public()).collect();
        let evaluation_cache = self.experiment.train.evaluation_cache_of(tables.len());
        let party = |(((index, table), seed), model): (((usize, PartyTable), OwnSeed), Option<Finished>)| {
            Secondary::new(Own {
                file: table.name.clone(),
                table,
                settings: self.experiment.common(),
                identity: identity(&seed),
                seed,
                roster: Arc::clone(&roster),
                // They are the user's own.
                policy: Policy { predictions: true, most_predictions: 0, ..self.experiment.policy.clone() },
                device: self.machine.device.clone(),
                computation: self.experiment.train.computation(self.machine.on_host),
                evaluation_cache,
                store: Self::store(self.folder, index + 1),
                lifetime: None,
                model,
                start: self.start.as_ref().and_then(|start| start.parties.get(index)).cloned().flatten(),
                tell: Arc::clone(&self.tell),
            })
        };
        Ok(tables.into_iter().enumerate().zip(seeds).zip(models).map(party).collect())
    }

    /// A party as the primary reaches it: directly or through bytes, as `train.wire` says.
    pub fn wired(&self, party: impl Party + 'static) -> Box<dyn Party> {
        match self.experiment.train.wire {
            Wire::Direct => Box::new(party),
            Wire::Bytes => Box::new(AsBytes(party)),
        }
    }
}

/// A party that code in the same process can inspect during a run, for tests and for measuring attacks. The primary's
/// side holds a clone and sees no more of it than of any other party.
#[derive(Debug, Clone)]
pub struct Watched {
    name: String,
    party: Arc<Mutex<Secondary>>,
}

impl Watched {
    /// Makes a party inspectable.
    pub fn new(party: Secondary) -> Self {
        Self { name: party.name().to_string(), party: Arc::new(Mutex::new(party)) }
    }

    /// The party itself.
    pub fn look(&self) -> MutexGuard<'_, Secondary> {
        self.party.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Party for Watched {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        self.look().ask(request)
    }
}
