//! Predictions for new records of the primary, by a finished model and parties that serve theirs.

use fet_core::data::{Matrix, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::message::{LifetimeState, Parts};
use fet_core::party::Party;
use fet_core::privacy::{Spent, Tally};

use super::core::{Components, CoreSetup, Machine, PrimaryCore, RecordShape};
use super::error::RunError;
use super::links::NewRecords;
use super::memory_cache::MemoryCache;
use super::progress::Warnings;
use super::saved_model::SavedModel;
use crate::federation::Federation;
use crate::prepare::{Preparing, Uniform};
use crate::schedule::{self, Schedule};

/// The primary's side of predictions by a finished model. All active secondaries have joined and serve their
/// finished models.
pub struct Predictor {
    core: PrimaryCore,
    /// Preparation of the primary's records.
    preparing: Preparing,
    /// Standardisation of each secondary's similarities, if the method uses them.
    similarity_scales: Vec<Option<Uniform>>,
    cache: MemoryCache,
    /// Number of records that were predicted from the cache.
    known_records: u64,
}

impl Predictor {
    /// Makes the primary's side of predictions by a finished model, with parties that serve their models; the
    /// parties agree to the terms. Parties that dropped out of the run (from 0) are not used.
    pub fn new(
        experiment: &Experiment,
        saved: &SavedModel,
        parties: Vec<Box<dyn Party>>,
        dropped: Vec<usize>,
        machine: &Machine,
    ) -> Result<Self, RunError> {
        let plan = experiment.method.build(&())?.plan();
        // The terms name the number of records of the run, so that all parties calibrate as in the run.
        let split = schedule::split(&Parts::default(), saved.rows(), experiment.seed)?;
        let schedule = Schedule::new(experiment.seed, &experiment.train, &plan, split, parties.len());
        let components = Components::build(experiment, schedule.split(), parties.len())?;
        let [key_columns, feature_columns] = saved.columns();
        let objective = saved.objective();
        let shape = RecordShape { key_columns, feature_columns, objective };
        let mut model = components.model(experiment, shape, machine)?;
        model.learner_mut().load(saved.parameters())?;
        let mut core = PrimaryCore::join(CoreSetup {
            experiment,
            components,
            model,
            schedule,
            objective,
            class_names: saved.class_names().to_vec(),
            federation: Federation::new(parties, dropped, machine.party_threads),
            device: machine.device.clone().autodiff(),
            parts: Parts::default(),
            standardise: saved.standardise(),
            warnings: Warnings::default(),
        })?;
        for (own, learned) in core.encodings.iter_mut().zip(saved.encodings()) {
            own.clone_from(learned);
        }
        core.agree_on_keys()?;
        Ok(Self {
            core,
            preparing: saved.preparing().clone(),
            similarity_scales: saved.similarity_scales().to_vec(),
            cache: MemoryCache::new(0),
            known_records: 0,
        })
    }

    /// Returns the state of each secondary's lifetime account when the party joined; `None` for a party without an account.
    pub fn standings(&self) -> Vec<Option<LifetimeState>> {
        self.core.standings()
    }

    /// Keeps the aggregated representations of this many new records at most, by their keys, in place of those kept so
    /// far. [`Predictor::predict`] then asks the secondaries only if one of its records has another key.
    ///
    /// The linker must link each record by its key alone.
    pub fn keep(&mut self, records: usize) {
        self.cache = MemoryCache::new(records);
    }

    /// Returns the number of records that [`Predictor::predict`] predicted without the secondaries.
    pub fn known_records(&self) -> u64 {
        self.known_records
    }

    /// Returns the model's activated outputs for new records of the primary, [n, outputs]: a probability, the
    /// values before the softmax, or a label scaled by [`fet_core::objective::LabelScale`]. The secondaries link
    /// the new keys and represent their neighbours.
    pub fn predict(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let records = self.preparing.apply(table)?;
        if let Some(known) = self.cache.get(&records.raw_keys) {
            self.known_records += records.raw_keys.rows() as u64;
            return self.core.outputs_of_known(&records, &known);
        }
        let new = self.core.link_new(records, &self.similarity_scales)?;
        let (cache, keys) = (&mut self.cache, &new.records.raw_keys);
        self.core.outputs(&new, &new.parties(), &mut |rows, memory| cache.keep(keys, rows, memory))
    }

    /// Prepares new records and links them with every party. The records replace earlier new records at the
    /// parties.
    pub fn link_new(&mut self, table: PartyTable) -> Result<NewRecords, RunError> {
        self.core.link_new(self.preparing.apply(table)?, &self.similarity_scales)
    }

    /// Returns the model's outputs for the records that were linked last, from the parts of only these
    /// secondaries (from 0, ascending). Without secondaries, the model gets a memory of zeros, the sum over no
    /// party.
    pub fn outputs(&mut self, new: &NewRecords, parties: &[usize]) -> Result<Matrix<f32>, RunError> {
        self.core.outputs(new, parties, &mut |_, _| {})
    }

    /// Returns the privacy spent by the predictions so far, in addition to that of the run; `None` without a privacy
    /// mechanism.
    pub fn spent(&self) -> Option<Spent> {
        let (privacy, planned) = (self.core.components.privacy.as_ref(), self.core.components.planned());
        let made = Tally::of_all(&self.core.releases.tallies);
        let apart = |(active, count): (usize, u64)| {
            (0..count).map(move |_| {
                let mut one = Tally::default();
                one.add(active, 1);
                one
            })
        };
        // Each batch of a frozen party is one more pass.
        let made =
            if privacy.freezes_secondaries() { made.iter().flat_map(apart).collect() } else { vec![made] };
        (!privacy.is_identity() && !self.core.federation.is_empty()).then(|| privacy.spent(planned, &made))
    }
}
