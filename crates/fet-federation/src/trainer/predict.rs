//! Predictions for new records of the primary, by the best model of every party.

use burn::tensor::Tensor;
use fet_core::data::{Features, Matrix, PartyTable};
use fet_core::message::{Request, Round};
use fet_core::method::Memory;
use fet_core::parameters::host;

use super::batch::unlabelled;
use super::{RunError, Trainer};
use crate::gather::gather;
use crate::lanes::{fill, filled};
use crate::prepare::PreparedParty;

/// New records of the primary, prepared and linked with every active party.
#[derive(Debug, Clone)]
pub struct NewRecords {
    records: PreparedParty,
    /// Linked parties, from 0, and the similarities that each party sent.
    parties: Vec<(usize, Option<Matrix<f32>>)>,
}

impl NewRecords {
    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.records.raw_keys.rows()
    }

    /// Returns the secondaries that the records are linked with, from 0.
    pub fn parties(&self) -> Vec<usize> {
        self.parties.iter().map(|(party, _)| *party).collect()
    }

    /// Returns the same links with other features of the primary, prepared in the same way.
    pub fn with_features(&self, features: Features) -> Result<Self, RunError> {
        let mut other = self.clone();
        other.records.replace_features(features)?;
        Ok(other)
    }

    /// Returns the same links, with the keys of record `order[i]` as the model's keys of record i.
    #[must_use]
    pub fn with_keys_in_order(&self, order: &[usize]) -> Self {
        let mut other = self.clone();
        other.records.scaled.keys = self.records.scaled.keys.select_rows(order);
        other
    }
}

impl Trainer {
    /// Returns the current model's outputs for some rows; they do not depend on the other rows.
    pub(super) fn predicted(
        &self,
        records: &PreparedParty,
        rows: &[usize],
        memory: Option<Memory>,
    ) -> Tensor<2> {
        let device = self.device.clone().without_autodiff();
        let memory = memory.map(|memory| Memory {
            tensor: fill(memory.tensor),
            similarities: memory.similarities.into_iter().map(fill).collect(),
            ..memory
        });
        let output = self.primary.predict(&unlabelled(records, &filled(rows), &device), memory);
        output.narrow(0, 0, rows.len())
    }

    /// Returns the best model's activated outputs for new records of the primary, [n, outputs]: a
    /// probability, the values before the softmax, or a label scaled by [`fet_core::objective::Objective`].
    /// The secondaries link the new keys and represent their neighbours; the run itself stays unchanged.
    pub fn predict(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let (current, available) = (self.primary.learner().parameters().clone(), self.available.clone());
        if !self.best.segments().is_empty() {
            self.primary.learner_mut().load(&self.best)?;
        }
        let outputs = self.link_new(table).and_then(|new| self.outputs(&new, &new.parties()));
        self.available = available;
        self.primary.learner_mut().load(&current)?;
        outputs
    }

    /// Prepares new records and links them with every party, for a finished model ([`Trainer::serving`]). The
    /// records replace earlier new records at the parties.
    pub fn link_new(&mut self, table: PartyTable) -> Result<NewRecords, RunError> {
        let records = self.records.scaled.preparing.apply(table)?;
        let mut parties = Vec::new();
        for party in self.here() {
            let linked = self.link_with(party, &records.raw_keys, Request::Predict)?;
            self.available[party] = linked.available;
            let similarities = linked.similarities.map(|mut values| {
                self.similarities[party].as_ref().inspect(|run| run.standard.apply(&mut values));
                values
            });
            parties.push((party, similarities));
        }
        Ok(NewRecords { records, parties })
    }

    /// Returns the current model's outputs for the records that were linked last, from the parts of only
    /// these secondaries (from 0, ascending). Without secondaries, the model gets a memory of zeros, the sum
    /// over no party.
    pub fn outputs(&mut self, new: &NewRecords, parties: &[usize]) -> Result<Matrix<f32>, RunError> {
        let device = self.device.clone().without_autodiff();
        let all: Vec<usize> = (0..new.rows()).collect();
        let mut outputs = Vec::with_capacity(all.len() * self.objective.outputs);
        for (batch, rows) in all.chunks(self.settings.evaluation_batch_size).enumerate() {
            let round = Round::Predict { batch: batch as u32 };
            let asked = if parties.is_empty() { new.parties() } else { parties.to_vec() };
            let similarities = new.parties.iter().filter(|(party, _)| asked.contains(party));
            let similar = similarities
                .filter_map(|(_, all)| all.as_ref())
                .map(|all| gather(all, rows, &device))
                .collect();
            let memory = match asked.is_empty() {
                true => None,
                false => {
                    let memory = self.ask_with(round, rows, &asked, similar)?.0;
                    let nobody = parties.is_empty();
                    let tensor = if nobody { memory.tensor.zeros_like() } else { memory.tensor };
                    Some(Memory { tensor, ..memory })
                }
            };
            outputs.extend(host(self.predicted(&new.records, rows, memory)));
        }
        Ok(Matrix::new(self.objective.outputs, outputs))
    }
}
