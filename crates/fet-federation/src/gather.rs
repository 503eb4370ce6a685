//! Converts rows of a host table to a tensor.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::data::Matrix;

/// Returns the given rows of a table as a tensor.
pub(crate) fn gather(table: &Matrix<f32>, rows: &[usize], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = rows.iter().flat_map(|&row| table.row(row)).copied().collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), table.columns()]), device)
}
