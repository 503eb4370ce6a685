//! Rows of the primary as its model takes them, and tensors in the form of messages.

use burn::tensor::{Device, Tensor};
use fet_core::message::Block;
use fet_core::method::PrimaryBatch;
use fet_core::objective::Objective;
use fet_core::parameters::host;
use fet_eval::class_weights::ClassWeights;

use super::Trainer;
use crate::gather::gather;
use crate::prepare::PreparedParty;

/// Returns rows of the primary's records, without labels.
pub(super) fn unlabelled(records: &PreparedParty, rows: &[usize], device: &Device) -> PrimaryBatch {
    PrimaryBatch {
        keys: gather(&records.scaled.keys, rows, device),
        features: gather(&records.scaled.features, rows, device),
        labels: Vec::new(),
        weights: Vec::new(),
    }
}

/// Returns rows of the primary's records with scaled labels and weights.
fn labelled(
    objective: Objective,
    labels: &[f64],
    weights: Option<&ClassWeights>,
    records: PrimaryBatch,
    rows: &[usize],
) -> PrimaryBatch {
    let weight =
        |weights: &ClassWeights| rows.iter().map(|&row| weights.of(labels[row] as usize) as f32).collect();
    PrimaryBatch {
        labels: rows.iter().map(|&row| objective.scale(labels[row])).collect(),
        weights: weights.map(weight).unwrap_or_default(),
        ..records
    }
}

/// Converts a tensor to the form of a message.
pub(super) fn block(tensor: Tensor<3>) -> Block {
    let shape = tensor.dims();
    Block::new(shape, host(tensor)).expect("a tensor fills its shape")
}

impl Trainer {
    /// Lets the primary's half fit the parts that need all training rows at once.
    pub(super) fn begin_primary(&mut self) {
        let rows = self.schedule.split().train.clone();
        let device = self.device.clone().without_autodiff();
        let Self { objective, labels, weights, records, primary, .. } = self;
        primary.begin(&mut || {
            labelled(*objective, labels, weights.as_ref(), unlabelled(records, &rows, &device), &rows)
        });
    }

    /// Returns training rows with their labels.
    pub(super) fn batch(&self, rows: &[usize]) -> PrimaryBatch {
        let records = unlabelled(&self.records, rows, &self.device);
        labelled(self.objective, &self.labels, self.weights.as_ref(), records, rows)
    }
}
