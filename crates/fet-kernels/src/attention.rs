//! Multi-head attention of one sequence to itself, with an additive mask over the positions attended to.
//!
//! The forward pass keeps the attention weights for the backward pass. Weights are not negative, so their sign bit records the
//! dropped ones. Rows of weights are padded to whole vectors; padded positions get no attention.

use crate::dropout::{Dropout, Gate, Numbers, passed};
use crate::math::{LANES, exp, largest, sum, vectorised};
use crate::matrix::{Into, View, ViewMut, multiply, pack};
use crate::parameters::Qkv;
use crate::shape::Shape;

/// Logit of padded positions, which the softmax turns into 0.
const NOWHERE: f32 = -1e30;

/// Number of rows of weights per step; they fit in the first-level cache.
const ROWS: usize = 24;

/// Scratch memory of attention.
#[derive(Default)]
pub(crate) struct Scratch {
    logits: Vec<f32>,
    weights: Vec<f32>,
    mask: Vec<f32>,
    /// Keys or values of a head, as columns.
    transposed: Vec<f32>,
    numbers: Numbers,
}

impl Shape {
    /// The length of a row of weights, padding included.
    pub(crate) fn padded(&self) -> usize {
        self.positions.next_multiple_of(LANES)
    }

    /// Number of weights of one sequence in one block, padding included.
    pub(crate) fn weights(&self) -> usize {
        self.heads * self.positions * self.padded()
    }

    fn head(&self) -> usize {
        self.width / self.heads
    }

    fn factor(&self) -> f32 {
        1.0 / (self.head() as f32).sqrt()
    }
}

/// Queries, keys or values of one head in rows [3H].
fn of_head<'a>(shape: &Shape, projected: &'a [f32], part: Qkv, head: usize) -> View<'a> {
    let stride = 3 * shape.width;
    let all = View::strided(projected, shape.positions, stride, stride);
    all.columns(part.columns(shape.width).start + head * shape.head(), shape.head())
}

fn of_head_mut<'a>(shape: &Shape, projected: &'a mut [f32], part: Qkv, head: usize) -> ViewMut<'a> {
    let start = part.columns(shape.width).start + head * shape.head();
    ViewMut::strided(&mut projected[start..], shape.positions, shape.head(), 3 * shape.width)
}

/// The random numbers of one sequence's weights: dropout, the words before them, and the sequence's place.
pub(crate) type Draw<'a> = Option<(&'a Dropout, u128, usize)>;

/// Input of attention.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// Queries, keys and values, [K, 3H].
    pub(crate) projected: &'a [f32],
    /// Term added to the logits of each position, [K].
    pub(crate) mask: Option<&'a [f32]>,
}

/// Results of attention.
pub(crate) struct Output<'a> {
    /// Attention weights, [heads, K, padded]; the sign bit marks dropped ones.
    pub(crate) weights: &'a mut [f32],
    /// Weighted sums of the values, [K, H], heads side by side.
    pub(crate) context: &'a mut [f32],
}

/// Forward pass.
pub(crate) fn forward(
    shape: &Shape,
    input: Input<'_>,
    draw: Draw<'_>,
    output: Output<'_>,
    scratch: &mut Scratch,
) {
    let Input { projected, mask } = input;
    let Output { weights: kept, context } = output;
    let (positions, padded) = (shape.positions, shape.padded());
    let Scratch { logits, weights, mask: bias, transposed, numbers } = scratch;
    let rows = ROWS.min(positions);
    logits.clear();
    logits.resize(rows * padded, NOWHERE);
    weights.clear();
    weights.resize(rows * padded, 0.0);
    bias.clear();
    bias.resize(padded, NOWHERE);
    match mask {
        Some(mask) => bias[..positions].copy_from_slice(mask),
        None => bias[..positions].fill(0.0),
    }
    if let Some((dropout, before, sequence)) = draw {
        let count = shape.heads * positions * positions;
        dropout.draw(before, sequence * count, numbers, count);
    }
    for head in 0..shape.heads {
        pack(of_head(shape, projected, Qkv::Keys, head).transposed(), transposed);
        let keys = View::new(&transposed[..shape.head() * positions], positions);
        let queries = of_head(shape, projected, Qkv::Queries, head);
        let values = of_head(shape, projected, Qkv::Values, head);
        let kept = &mut kept[head * positions * padded..(head + 1) * positions * padded];
        for (first, kept) in (0..positions).step_by(rows).zip(kept.chunks_mut(rows * padded)) {
            let count = kept.len() / padded;
            let target = ViewMut::strided(logits, count, positions, padded);
            multiply(shape.factor(), queries.rows(first, count), keys, Into::Set, target);
            softmax(padded, &logits[..kept.len()], bias, kept);
            let attended = match draw {
                Some((dropout, ..)) => {
                    let place = (head * positions + first) * positions;
                    let numbers = &numbers[place..place + count * positions];
                    drop_weights(dropout, numbers, (positions, padded), kept, weights);
                    &*weights
                }
                None => &*kept,
            };
            let attended = View::strided(attended, count, positions, padded);
            let place = first * shape.width + head * shape.head();
            let target = ViewMut::strided(&mut context[place..], count, shape.head(), shape.width);
            multiply(1.0, attended, values, Into::Set, target);
        }
    }
}

/// Softmax of each row of logits + bias.
fn softmax(padded: usize, logits: &[f32], bias: &[f32], weights: &mut [f32]) {
    #[inline(always)]
    fn of_row(row: &[f32], bias: &[f32], out: &mut [f32]) {
        let top = largest([row, bias], |[logit, more]| logit + more);
        for ((out, logit), more) in out.iter_mut().zip(row).zip(bias) {
            *out = exp(logit + more - top);
        }
        let scale = 1.0 / sum([out], |[weight]| weight);
        for value in out.iter_mut() {
            *value *= scale;
        }
    }
    vectorised(
        #[inline(always)]
        move || {
            for (row, out) in logits.chunks_exact(padded).zip(weights.chunks_exact_mut(padded)) {
                of_row(row, &bias[..padded], out);
            }
        },
    );
}

/// Marks in `kept` which weights are dropped, and writes those that stay, scaled, to `weights`.
fn drop_weights(
    dropout: &Dropout,
    numbers: &[u16],
    (positions, padded): (usize, usize),
    kept: &mut [f32],
    weights: &mut [f32],
) {
    let gate = dropout.gate();
    vectorised(
        #[inline(always)]
        move || {
            let rows = numbers.chunks_exact(positions).zip(kept.chunks_exact_mut(padded));
            for ((numbers, kept), out) in rows.zip(weights.chunks_exact_mut(padded)) {
                drop_row(gate, numbers, kept, out);
            }
        },
    );
}

/// Marks and scales the weights of one row; `numbers` and weights have the same length.
#[inline(always)]
pub(crate) fn drop_row(gate: Gate, numbers: &[u16], kept: &mut [f32], out: &mut [f32]) {
    for ((&number, kept), out) in numbers.iter().zip(kept).zip(out) {
        *out = gate.pass(number, *kept);
        *kept = gate.sign(number, *kept);
    }
}

/// Results of the forward pass that the backward pass reads.
#[derive(Clone, Copy)]
pub(crate) struct Saved<'a> {
    /// Queries, keys and values, [K, 3H].
    pub(crate) projected: &'a [f32],
    /// Attention weights, [heads, K, padded].
    pub(crate) weights: SignedWeights<'a>,
}

/// Attention weights whose sign bit marks the dropped ones.
#[derive(Clone, Copy)]
pub(crate) struct SignedWeights<'a> {
    pub(crate) values: &'a [f32],
    /// Dropout's factor for the kept weights.
    pub(crate) scale: f32,
}

impl SignedWeights<'_> {
    /// Weights `start..start + count`.
    pub(crate) fn part(&self, start: usize, count: usize) -> Self {
        Self { values: &self.values[start..start + count], scale: self.scale }
    }
}

/// Gradients that the backward pass computes.
pub(crate) struct Gradients<'a> {
    /// Gradient of `projected`, [K, 3H]; overwritten.
    pub(crate) projected: &'a mut [f32],
    /// Gradient of the mask, [K]; accumulated.
    pub(crate) mask: &'a mut [f32],
}

/// Backward pass from the gradient of the context.
pub(crate) fn backward(
    shape: &Shape,
    saved: Saved<'_>,
    context_gradient: &[f32],
    gradients: Gradients<'_>,
    scratch: &mut Scratch,
) {
    let Saved { projected, weights: kept } = saved;
    let Gradients { projected: projected_gradient, mask: mask_gradient } = gradients;
    let (positions, padded) = (shape.positions, shape.padded());
    let Scratch { logits, weights, mask: bias, .. } = scratch;
    logits.resize(positions * padded, 0.0);
    weights.resize(positions * padded, 0.0);
    bias.clear();
    bias.resize(padded, 0.0);
    for head in 0..shape.heads {
        let kept = kept.part(head * positions * padded, positions * padded);
        let above = View::strided(context_gradient, positions, shape.width, shape.width)
            .columns(head * shape.head(), shape.head());
        let values = of_head(shape, projected, Qkv::Values, head);
        let target = ViewMut::strided(logits, positions, positions, padded);
        multiply(1.0, above, values.transposed(), Into::Set, target);
        softmax_back(shape, kept, logits, weights, bias);
        let attended = View::strided(weights, positions, positions, padded);
        let target = of_head_mut(shape, projected_gradient, Qkv::Values, head);
        multiply(1.0, attended.transposed(), above, Into::Set, target);
        let slopes = View::strided(logits, positions, positions, padded);
        let target = of_head_mut(shape, projected_gradient, Qkv::Queries, head);
        multiply(shape.factor(), slopes, of_head(shape, projected, Qkv::Keys, head), Into::Set, target);
        let target = of_head_mut(shape, projected_gradient, Qkv::Keys, head);
        let queries = of_head(shape, projected, Qkv::Queries, head);
        multiply(shape.factor(), slopes.transposed(), queries, Into::Set, target);
    }
    for (place, value) in mask_gradient.iter_mut().zip(bias.iter()) {
        *place += value;
    }
}

/// `slopes` holds the gradient of the dropped weights and becomes that of the logits; `weights` becomes the
/// dropped weights; `total` gains the sum over all rows.
fn softmax_back(
    shape: &Shape,
    kept: SignedWeights<'_>,
    slopes: &mut [f32],
    weights: &mut [f32],
    total: &mut [f32],
) {
    #[inline(always)]
    fn of_row(kept: &[f32], mean: f32, weights: &[f32], slopes: &mut [f32], total: &mut [f32]) {
        for (((slope, total), weight), kept) in slopes.iter_mut().zip(total).zip(weights).zip(kept) {
            *slope = weight * *slope - kept.abs() * mean;
            *total += *slope;
        }
    }
    let (positions, padded) = (shape.positions, shape.padded());
    let SignedWeights { values: kept, scale } = kept;
    vectorised(
        #[inline(always)]
        move || {
            let rows = kept.chunks_exact(padded).zip(slopes.chunks_exact_mut(padded));
            for ((kept, slopes), weights) in rows.zip(weights.chunks_exact_mut(padded)) {
                slopes[positions..].fill(0.0);
                pass_row(scale, kept, weights);
                let mean = sum([&*weights, &*slopes], |[weight, slope]| weight * slope);
                of_row(kept, mean, weights, slopes, &mut total[..padded]);
            }
        },
    );
}

/// Weights after dropout.
#[inline(always)]
pub(crate) fn pass_row(scale: f32, kept: &[f32], weights: &mut [f32]) {
    for (weight, kept) in weights.iter_mut().zip(kept) {
        *weight = passed(scale, *kept);
    }
}
