//! All parties in one process: makes each party's own data and settings from one experiment.
//!
//! Only this module sees the tables of several parties. Each party gets its own table, its own copy of the
//! settings and its own seed. The parties then communicate only by messages.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fet_core::data::{Folders, PartyTable, VerticalData};
use fet_core::experiment::{Experiment, Randomness, Wire};
use fet_core::message::{Reply, Request};
use fet_core::party::{AsBytes, Failure, Party};
use fet_core::policy::Policy;
use fet_core::registry::Violation;
use fet_core::rng::OwnSeed;
use fet_io::memory;
use fet_privacy::identity::{Identities, Identity};

use crate::data::{divided, read};
use crate::federation::PartyIndex;
use crate::prepare::PrimaryData;
use crate::release::{NamedRelease, OneTimeReleases, OwnPlaces};
use crate::releasing::with_releases;
use crate::secondary::{FinishedModel, PartyConfig, Secondary, Store, WarnOperator, has_entries};
use crate::trainer::{Beginning, Machine, RunError, SavedModel, Trainer};

/// A simulation: its experiment, its device, and the storage of its parties' states.
#[derive(Clone)]
pub struct Simulation<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The device and threads that all parties share.
    pub machine: &'a Machine,
    /// Folder with a folder for each party's state; `None` keeps the state in memory.
    pub folder: Option<&'a Path>,
    /// Parties that dropped out of an interrupted run, from 0.
    pub dropped_out: Vec<usize>,
    /// Number of this run among several runs of the same settings. Each run draws its own noise and keys; 0
    /// is the reported run.
    pub run: u64,
    /// The primary's own seed in a run that begins; `None` draws a new one. With a seed that outlives the
    /// run, a second run on the same labels repeats the answers of the first.
    pub primary: Option<OwnSeed>,
    /// Finished models that training starts from; `None` to start from initial weights.
    pub start: Option<Start>,
    /// Receives the parties' warnings.
    pub tell: WarnOperator,
}

/// The models of a finished run that another run starts from.
#[derive(Debug, Clone)]
pub struct Start {
    /// The primary's model.
    pub primary: SavedModel,
    /// The model of each secondary; `None` if the party dropped out of that run, so that its model begins
    /// with initial weights.
    pub parties: Vec<Option<FinishedModel>>,
}

impl<'a> Simulation<'a> {
    /// Makes a simulation whose parties keep their state in memory and whose warnings are discarded.
    pub fn new(experiment: &'a Experiment, machine: &'a Machine) -> Self {
        Self {
            experiment,
            machine,
            folder: None,
            dropped_out: Vec::new(),
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

    /// Reads the experiment's data, with the column that determines its split.
    pub fn read(&self, folders: &Folders) -> Result<VerticalData, RunError> {
        read(self.experiment, folders)
    }

    /// Returns the primary's data, split as the experiment requires, and the secondaries' tables. With a
    /// release, the primary's data include its columns, and there are no secondaries.
    pub fn divided(&self, data: VerticalData) -> Result<(PrimaryData, Vec<PartyTable>), RunError> {
        let Some(named) = NamedRelease::build(self.experiment.release.as_ref())? else {
            return Ok(divided(self.experiment, data)?);
        };
        let component = named.component.as_ref();
        let names: Vec<&str> = data.secondaries.iter().map(|table| table.name.as_str()).collect();
        component.check_parties(&names)?;
        let places = |needs| OwnPlaces::new(self.experiment, &data, needs, &self.seed(0)?);
        let places = component.needs().map(places).transpose()?;
        let kept = (1..).zip(&data.secondaries).map(|(number, table)| {
            let folder = self.folder.map(|folder| Self::party_folder(folder, number));
            let offered = |own: &OwnPlaces| own.offered(table, PartyIndex::new(number - 1));
            let places = places.as_ref().map(offered).transpose()?;
            let advice = component.advice(table, places.as_ref());
            advice.into_iter().for_each(|warning| (self.tell)(warning));
            let table = (table, places.as_ref());
            match folder.map(|folder| named.kept(table, &folder)).transpose()?.flatten() {
                Some(kept) => Ok(kept),
                None => Ok(named.make(table, &self.seed(number)?)?),
            }
        });
        let kept = kept.collect::<Result<Vec<_>, RunError>>()?;
        let releases = OneTimeReleases::new(self.experiment, component, kept)
            .with_labels(places.as_ref().and_then(OwnPlaces::label_privacy));
        Ok((with_releases(self.experiment, &named, data, releases)?, Vec::new()))
    }

    /// Makes the trainer from tables that are already loaded; all parties agree to the terms and link.
    pub fn start(&self, data: VerticalData) -> Result<Trainer, RunError> {
        let (primary, tables) = self.divided(data)?;
        self.begin(primary, tables)
    }

    fn begin(&self, primary: PrimaryData, tables: Vec<PartyTable>) -> Result<Trainer, RunError> {
        let parties = self.secondaries(tables)?.into_iter().map(|party| self.wired(party)).collect();
        self.trainer(primary, parties)
    }

    /// Makes the primary's side, with the parties as the primary reaches them.
    pub fn trainer(&self, primary: PrimaryData, parties: Vec<Box<dyn Party>>) -> Result<Trainer, RunError> {
        let model = self.start.as_ref().map(|start| start.primary.clone());
        let beginning = Beginning { dropped_out: self.dropped_out.clone(), own: self.seed(0)?, model };
        self.check_links(primary.labels.len(), parties.len())?;
        memory::caught(|| Trainer::begin(self.experiment, primary, parties, self.machine, beginning))?
    }

    /// Refuses links that do not fit in memory: each link takes an index and a similarity.
    fn check_links(&self, rows: usize, parties: usize) -> Result<(), Violation> {
        let neighbours = self.experiment.linker.build(&())?.about().neighbours;
        memory::check(rows as u128 * neighbours as u128 * parties as u128, 8).map_err(|error| {
            let rule =
                format!("must leave memory for the links of {rows} records and {parties} parties ({error})");
            Violation::new("linker.neighbours", rule, neighbours)
        })
    }

    /// Returns the storage of a party's state, below `folder` or in memory. `number` is a secondary's number
    /// from 1, or 0 for the primary; the primary stores only its seed there.
    pub fn store(folder: Option<&Path>, number: usize) -> Store {
        let own = folder.map(|folder| Self::party_folder(folder, number));
        own.map_or_else(|| Store::Memory(Vec::new()), Store::folder)
    }

    /// Returns the folder of a party's own files, below `folder`: a secondary, from 1, or the primary (0).
    pub fn party_folder(folder: &Path, number: usize) -> PathBuf {
        let name = if number == 0 { "primary".to_string() } else { format!("party{number}") };
        folder.join(name)
    }

    /// Returns the seed of a party's own randomness: the primary (0) or a secondary, from 1.
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
            // The primary's seed is always the first that is saved.
            Randomness::Own => {
                let begun = number == 0 && self.folder.is_some_and(has_entries);
                match &self.primary {
                    Some(seed) if number == 0 && !begun => Ok(seed.clone()),
                    _ => Ok(Self::store(self.folder, number).own_seed(begun)?),
                }
            }
        }
    }

    /// Returns the secondaries, before they join; none if the method uses only the primary.
    pub fn secondaries(&self, tables: Vec<PartyTable>) -> Result<Vec<Secondary>, RunError> {
        let models = tables.iter().map(|_| None).collect();
        self.serving(tables, models)
    }

    /// Returns the secondaries, before they join; each serves its finished model if it has one.
    pub fn serving(
        &self,
        tables: Vec<PartyTable>,
        models: Vec<Option<FinishedModel>>,
    ) -> Result<Vec<Secondary>, RunError> {
        if !self.experiment.method.build(&())?.plan().secondaries {
            return Ok(Vec::new());
        }
        let seeds: Vec<OwnSeed> =
            (1..=tables.len()).map(|number| self.seed(number)).collect::<Result<_, _>>()?;
        let identity = |seed: &OwnSeed| Identity::from_secret(*seed.secret("identity"));
        let roster: Identities = seeds.iter().map(|seed| identity(seed).public()).collect();
        let evaluation_cache = self.experiment.train.evaluation_cache_of(tables.len());
        let party =
            |(((index, table), seed), model): (((usize, PartyTable), OwnSeed), Option<FinishedModel>)| {
                Secondary::new(PartyConfig {
                    file: table.name.clone(),
                    table,
                    settings: self.experiment.common(),
                    identity: identity(&seed),
                    seed,
                    roster: roster.clone(),
                    // The models belong to the user, who may make any number of predictions.
                    policy: Policy {
                        predictions: true,
                        most_predictions: 0,
                        ..self.experiment.policy.clone()
                    },
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

    /// Returns a party as the primary reaches it: directly or through bytes, depending on `train.wire`.
    pub fn wired(&self, party: impl Party + 'static) -> Box<dyn Party> {
        match self.experiment.train.wire {
            Wire::Direct => Box::new(party),
            Wire::Bytes => Box::new(AsBytes(party)),
        }
    }
}

/// A party that code in the same process can inspect during a run, for tests and for measuring attacks. The
/// primary's side holds a clone and sees only this party's messages, as for any other party.
#[derive(Debug, Clone)]
pub struct ObservedParty {
    name: String,
    party: Arc<Mutex<Secondary>>,
}

impl ObservedParty {
    /// Makes a party inspectable.
    pub fn new(party: Secondary) -> Self {
        Self { name: party.name().to_string(), party: Arc::new(Mutex::new(party)) }
    }

    /// Locks the party, to inspect it.
    pub fn lock(&self) -> MutexGuard<'_, Secondary> {
        self.party.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Party for ObservedParty {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        self.lock().ask(request)
    }
}
