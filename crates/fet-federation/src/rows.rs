//! Rows of host tables as tensors, and batches of whole lanes.
//!
//! Numeric libraries compute many values at a time and the last few by another path, which rounds
//! differently. A row's value would then depend on the number of rows in its batch. Batches of evaluations
//! and predictions are therefore padded with copies of their last row, so that a row's prediction does not
//! depend on the other rows.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::data::Matrix;

/// Largest number of values computed at a time: 512 bits of 32-bit numbers.
const LANES: usize = 16;

/// Returns the given rows of a table as a tensor.
pub(crate) fn gather(table: &Matrix<f32>, rows: &[usize], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = rows.iter().flat_map(|&row| table.row(row)).copied().collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), table.columns()]), device)
}

/// Returns the rows, padded to whole lanes.
pub(crate) fn filled(rows: &[usize]) -> Vec<usize> {
    let mut all = rows.to_vec();
    if let Some(&last) = rows.last() {
        all.resize(rows.len().next_multiple_of(LANES), last);
    }
    all
}

/// Returns the tensor, padded to whole lanes in the same way as [`filled`] pads rows.
pub(crate) fn fill<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let rows = tensor.dims()[0];
    let more = rows.next_multiple_of(LANES) - rows;
    if more == 0 || rows == 0 {
        return tensor;
    }
    let last = tensor.clone().narrow(0, rows - 1, 1).repeat_dim(0, more);
    Tensor::cat(vec![tensor, last], 0)
}
