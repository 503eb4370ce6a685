//! Linear layers around attention, forward and backward, and dropout of whole heads.

use crate::dropout::Dropout;
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::parameters::{AttentionGradient, AttentionWeights, Qkv};
use crate::rows::{NormGradient, NormInput, NormScratch, add_rows};

/// Some columns of a part of the stacked projection.
pub(super) fn stacked<'w>(weights: &AttentionWeights<'w>, part: Qkv, start: usize, count: usize) -> View<'w> {
    let width = weights.gain.len();
    View::new(weights.projection, 3 * width).columns(part.columns(width).start + start, count)
}

pub(super) fn stacked_mut(
    gradient: &mut AttentionGradient,
    width: usize,
    part: Qkv,
    start: usize,
    count: usize,
) -> ViewMut<'_> {
    ViewMut::strided(&mut gradient.projection[part.columns(width).start + start..], width, count, 3 * width)
}

/// Projection of normalised rows to queries or values.
pub(super) struct Projection<'a> {
    pub(super) weights: &'a AttentionWeights<'a>,
    pub(super) part: Qkv,
}

impl Projection<'_> {
    pub(super) fn forward(&self, normed: &[f32], out: &mut [f32]) {
        let Self { weights, part } = *self;
        let width = weights.gain.len();
        let bias = Into::Row(&weights.projection_bias[part.columns(width)]);
        let right = stacked(weights, part, 0, width);
        multiply(1.0, View::new(normed, width), right, bias, ViewMut::new(out, width));
    }

    /// Backward pass of [`Self::forward`] and the norm before it.
    pub(super) fn backward(
        &self,
        rows: &[f32],
        above: &[f32],
        rows_gradient: &mut [f32],
        gradient: &mut AttentionGradient,
        norm_scratch: NormScratch<'_>,
    ) {
        let Self { weights, part } = *self;
        let NormScratch { normed, gradient: normed_gradient } = norm_scratch;
        let width = weights.gain.len();
        let rows = NormInput::new(rows, weights.gain, weights.bias, normed);
        let view = View::new(above, width);
        let target = stacked_mut(gradient, width, part, 0, width);
        multiply(1.0, View::new(normed, width).transposed(), view, Into::Add, target);
        add_rows(&mut gradient.projection_bias[part.columns(width)], above);
        let right = stacked(weights, part, 0, width).transposed();
        multiply(1.0, view, right, Into::Set, ViewMut::new(normed_gradient, width));
        let parameters = NormGradient { gain: &mut gradient.gain, bias: &mut gradient.bias };
        rows.back(normed_gradient, rows_gradient, parameters);
    }
}

/// Output projection after the heads.
pub(super) fn leave(heads: &[f32], weights: &AttentionWeights<'_>, out: &mut [f32]) {
    let width = weights.gain.len();
    let (left, right) = (View::new(heads, width), View::new(weights.output, width));
    multiply(1.0, left, right, Into::Row(weights.output_bias), ViewMut::new(out, width));
}

/// Backward pass of [`leave`].
pub(super) fn leave_back(
    heads: &[f32],
    weights: &AttentionWeights<'_>,
    above: &[f32],
    gradient: &mut AttentionGradient,
    heads_gradient: &mut [f32],
) {
    let width = weights.gain.len();
    let view = View::new(above, width);
    let target = ViewMut::new(&mut gradient.output, width);
    multiply(1.0, View::new(heads, width).transposed(), view, Into::Add, target);
    add_rows(&mut gradient.output_bias, above);
    let right = View::new(weights.output, width).transposed();
    multiply(1.0, view, right, Into::Set, ViewMut::new(heads_gradient, width));
}

/// Zeroes or scales each head by its random number.
pub(super) fn drop_heads(dropout: &Dropout, numbers: &[u16], head: usize, values: &mut [f32]) {
    for (values, &number) in values.chunks_exact_mut(head).zip(numbers) {
        let factor = dropout.gate().pass(number, 1.0);
        values.iter_mut().for_each(|value| *value *= factor);
    }
}
