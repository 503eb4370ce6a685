//! Rows of the primary as its model takes them, and tensors as they are sent.

use burn::tensor::{Device, Tensor};
use fet_core::message::Block;
use fet_core::method::PrimaryBatch;
use fet_core::parameters::host;

use crate::gather::gather;
use crate::prepare::PreparedParty;

/// Rows of the primary's records, without labels.
pub(super) fn unlabelled(records: &PreparedParty, rows: &[usize], device: &Device) -> PrimaryBatch {
    PrimaryBatch {
        keys: gather(&records.scaled.keys, rows, device),
        features: gather(&records.scaled.features, rows, device),
        labels: Vec::new(),
        weights: Vec::new(),
    }
}

/// A tensor as it is sent.
pub(super) fn block(tensor: Tensor<3>) -> Block {
    let shape = tensor.dims();
    Block::new(shape, host(tensor)).expect("a tensor fills its shape")
}
