//! Batches of whole lanes.
//!
//! Libraries compute many values at a time and the last few by another path, which rounds otherwise: a row's figure would
//! depend on how many rows are beside it. The batches of evaluations and predictions are filled up with copies of their last
//! row, so that a row is predicted the same in any company.

use burn::tensor::Tensor;

/// The values that are computed at a time, at most: 512 bits of 32-bit numbers.
const LANES: usize = 16;

/// The rows, filled up to whole lanes.
pub(crate) fn filled(rows: &[usize]) -> Vec<usize> {
    let mut all = rows.to_vec();
    if let Some(&last) = rows.last() {
        all.resize(rows.len().next_multiple_of(LANES), last);
    }
    all
}

/// A tensor with as many rows, filled up alike.
pub(crate) fn fill<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let rows = tensor.dims()[0];
    let more = rows.next_multiple_of(LANES) - rows;
    if more == 0 || rows == 0 {
        return tensor;
    }
    let last = tensor.clone().narrow(0, rows - 1, 1).repeat_dim(0, more);
    Tensor::cat(vec![tensor, last], 0)
}
