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

/// New records of the primary, prepared and linked with every party that is left.
#[derive(Debug, Clone)]
pub struct NewRecords {
    records: PreparedParty,
    /// What each of these parties, from 0, told of its links.
    parties: Vec<(usize, Option<Matrix<f32>>)>,
}

impl NewRecords {
    /// The number of records.
    pub fn rows(&self) -> usize {
        self.records.raw_keys.rows()
    }

    /// The secondaries that they are linked with, from 0.
    pub fn parties(&self) -> Vec<usize> {
        self.parties.iter().map(|(party, _)| *party).collect()
    }

    /// The same links with other features of the primary, prepared alike.
    pub fn with_features(&self, features: Features) -> Result<Self, RunError> {
        let mut other = self.clone();
        other.records.replace_features(features)?;
        Ok(other)
    }

    /// The same links, where the model sees for record i the keys of record `order[i]`.
    #[must_use]
    pub fn with_keys_in_order(&self, order: &[usize]) -> Self {
        let mut other = self.clone();
        other.records.scaled.keys = self.records.scaled.keys.select_rows(order);
        other
    }
}

impl Trainer {
    /// The present model's outputs for some rows, whatever rows are beside them.
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

    /// The best model's activated outputs for new records of the primary, [n, outputs]: a probability, the values
    /// before the softmax, or a label scaled by [`fet_core::objective::Objective`]. The secondaries link the new keys and
    /// represent their neighbours; the run itself stays as it is.
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

    /// Prepares new records and links them with every party; of a finished model ([`Trainer::serving`]). They replace those
    /// before at the parties.
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

    /// The present model's outputs for the records that were linked last, from the parts of these secondaries alone (from 0,
    /// ascending). From none of them it gets what the sum over nobody is: zeros.
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
