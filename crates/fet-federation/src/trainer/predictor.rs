//! Predictions for new records of the primary, by a finished model and parties that serve theirs.

use fet_core::data::{Matrix, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::message::{LifetimeState, Parts};
use fet_core::party::Party;
use fet_core::privacy::{Spent, Tally};

use super::core::{Components, CoreSetup, Machine, PrimaryCore, RecordShape};
use super::error::RunError;
use super::links::NewRecords;
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
        })
    }

    /// Returns the state of each secondary's lifetime account when the party joined; `None` for a party without an account.
    pub fn standings(&self) -> Vec<Option<LifetimeState>> {
        self.core.standings()
    }

    /// Returns the model's activated outputs for new records of the primary, [n, outputs]: a probability, the
    /// values before the softmax, or a label scaled by [`fet_core::objective::LabelScale`]. The secondaries link
    /// the new keys and represent their neighbours.
    pub fn predict(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let new = self.link_new(table)?;
        self.outputs(&new, &new.parties())
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
        self.core.outputs(new, parties)
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
