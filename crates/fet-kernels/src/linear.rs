//! y = W x + b for rows of a batch: the output layer of a model.

use crate::buffer::Buffer;
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::rows::add_rows;

/// `x` [n, I] → [n, O], by `weight` [I, O] and `bias`, O values.
///
/// # Panics
/// If sizes do not fit.
pub fn linear(x: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
    let outputs = bias.len();
    let inputs = weight.len() / outputs;
    let mut out = vec![0.0; x.len() / inputs * outputs];
    let right = View::new(weight, outputs);
    multiply(1.0, View::new(x, inputs), right, Into::Row(bias), ViewMut::new(&mut out, outputs));
    out
}

/// Computes the gradients of weight, bias and `x` from the gradient of the result.
///
/// # Panics
/// If sizes do not fit.
pub fn linear_back(
    x: &[f32],
    weight: &[f32],
    gradient: &[f32],
    outputs: usize,
) -> (Buffer, Buffer, Vec<f32>) {
    let inputs = weight.len() / outputs;
    let (mut to_weight, mut to_bias) = (Buffer::zeros(weight.len()), Buffer::zeros(outputs));
    let above = View::new(gradient, outputs);
    multiply(1.0, View::new(x, inputs).transposed(), above, Into::Set, ViewMut::new(&mut to_weight, outputs));
    add_rows(&mut to_bias, gradient);
    let mut below = vec![0.0; x.len()];
    let right = View::new(weight, outputs).transposed();
    multiply(1.0, above, right, Into::Set, ViewMut::new(&mut below, inputs));
    (to_weight, to_bias, below)
}
