//! All parties in one process: what each would bring along to a run, made from one experiment.
//!
//! The only place that sees the tables of several parties. Each party gets its own table, its own copy of the settings and a
//! seed of its own; from then on they meet only through messages.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fet_core::data::{DatasetContext, PartyTable, VerticalData};
use fet_core::experiment::{Experiment, Wire};
use fet_core::message::{Reply, Request};
use fet_core::party::{AsBytes, Failure, Party};
use fet_core::rng::OwnSeed;

use crate::prepare::divide;
use crate::secondary::{Own, Secondary, Store, Tell};
use crate::trainer::{Machine, RunError, Trainer};

/// Where a simulation runs, and where its parties keep their state.
#[derive(Clone)]
pub struct Simulation<'a> {
    /// What is run.
    pub experiment: &'a Experiment,
    /// What all parties compute on.
    pub machine: &'a Machine,
    /// The folder in which each party has a folder of its own for its state; nothing to keep it in memory.
    pub folder: Option<&'a Path>,
    /// Which parties are gone, from 0, as an interrupted run says.
    pub gone: Vec<usize>,
    /// Where parties tell their operators what is odd.
    pub tell: Tell,
}

impl<'a> Simulation<'a> {
    /// A simulation whose parties keep their state in memory and tell nobody anything.
    pub fn new(experiment: &'a Experiment, machine: &'a Machine) -> Self {
        Self { experiment, machine, folder: None, gone: Vec::new(), tell: Arc::new(|_| ()) }
    }

    /// Loads the data that the experiment names, from `folder` on, and has all parties agree and link.
    pub fn load(&self, folder: &Path) -> Result<Trainer, RunError> {
        let context = DatasetContext { folder, seed: self.experiment.seed };
        self.start(self.experiment.data.build(&context)?.load()?)
    }

    /// The same on tables that are already there.
    pub fn start(&self, data: VerticalData) -> Result<Trainer, RunError> {
        let (primary, tables) = divide(data);
        let parties = self.secondaries(tables)?.into_iter().map(|party| self.wired(party)).collect();
        Trainer::new(self.experiment, primary, parties, self.gone.clone(), self.machine)
    }

    /// The secondaries, which have joined nothing yet; none for a method of the primary alone.
    pub fn secondaries(&self, tables: Vec<PartyTable>) -> Result<Vec<Secondary>, RunError> {
        if !self.experiment.method.build(&())?.plan().secondaries {
            return Ok(Vec::new());
        }
        let party = |(index, table): (usize, PartyTable)| {
            let number = index + 1;
            Secondary::new(Own {
                table,
                settings: self.experiment.common(),
                seed: OwnSeed::simulated(self.experiment.seed, number),
                device: self.machine.device.clone(),
                computation: self.experiment.train.computation(self.machine.on_host),
                store: self.folder.map_or_else(
                    || Store::Memory(Vec::new()),
                    |folder| Store::Folder(folder.join(format!("party{number}"))),
                ),
                tell: Arc::clone(&self.tell),
            })
        };
        Ok(tables.into_iter().enumerate().map(party).collect())
    }

    /// A party as `train.wire` has the primary meet it.
    pub fn wired(&self, party: impl Party + 'static) -> Box<dyn Party> {
        match self.experiment.train.wire {
            Wire::Direct => Box::new(party),
            Wire::Bytes => Box::new(AsBytes(party)),
        }
    }
}

/// A party that someone in the same process can look into while a run goes on, to measure what an attack finds, or to
/// test. The primary's side holds a clone of it and sees no more than of any other.
#[derive(Debug, Clone)]
pub struct Watched {
    name: String,
    party: Arc<Mutex<Secondary>>,
}

impl Watched {
    /// A party that can be looked into.
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
