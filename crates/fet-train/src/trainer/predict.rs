//! Predictions for new records of the primary, by the best model of every party.

use fet_core::data::{Matrix, PartyTable};
use fet_core::message::{Request, Round};
use fet_core::parameters::host;

use super::batch::unlabelled;
use super::{RunError, Trainer};
use crate::gather::gather;
use crate::prepare::PreparedParty;

impl Trainer {
    /// The best model's activated outputs for new records of the primary, [n, outputs]: a probability, the values
    /// before the softmax, or a label scaled by [`fet_core::objective::Objective`]. The secondaries link the new keys and
    /// represent their neighbours; the run itself stays as it is.
    pub fn predict(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let (current, available) = (self.primary.learner().parameters().clone(), self.available.clone());
        if !self.best.segments().is_empty() {
            self.primary.learner_mut().load(&self.best)?;
        }
        let outputs = self.predict_by_current(table);
        self.available = available;
        self.primary.learner_mut().load(&current)?;
        outputs
    }

    fn predict_by_current(&mut self, table: PartyTable) -> Result<Matrix<f32>, RunError> {
        let records = self.records.scaled.preparing.apply(table)?;
        let here = self.here();
        let mut similarities = Vec::new();
        for &party in &here {
            let linked = self.link_with(party, &records.raw_keys, Request::Predict)?;
            self.available[party] = linked.available;
            similarities.push(linked.similarities.map(|mut values| {
                self.similarities[party].as_ref().inspect(|run| run.standard.apply(&mut values));
                values
            }));
        }
        self.predict_linked(&records, &here, &similarities)
    }

    fn predict_linked(
        &mut self,
        records: &PreparedParty,
        here: &[usize],
        similarities: &[Option<Matrix<f32>>],
    ) -> Result<Matrix<f32>, RunError> {
        let device = self.device.clone().without_autodiff();
        let all: Vec<usize> = (0..records.raw_keys.rows()).collect();
        let mut outputs = Vec::with_capacity(all.len() * self.objective.outputs);
        for (batch, rows) in all.chunks(self.settings.evaluation_batch_size).enumerate() {
            let round = Round::Predict { batch: batch as u32 };
            let similar = similarities.iter().flatten().map(|all| gather(all, rows, &device)).collect();
            let memory = match here.is_empty() {
                true => None,
                false => Some(self.ask_with(round, rows, here, similar)?.0),
            };
            outputs.extend(host(self.primary.predict(&unlabelled(records, rows, &device), memory)));
        }
        Ok(Matrix::new(self.objective.outputs, outputs))
    }
}
