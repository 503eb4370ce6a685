//! Multi-head attention of one sequence to itself, with an additive mask over the positions attended to.
//!
//! The forward pass keeps the attention weights for the backward pass. Weights are not negative, so their sign bit records the
//! dropped ones. Rows of weights are padded to whole vectors; padded positions get no attention.

use crate::dropout::{Dropout, Gate, Numbers, passed};
use crate::math::{LANES, exp, join_lanes, larger, vectorised};
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
            let drop = draw.map(|(dropout, ..)| DropRows {
                gate: dropout.gate(),
                numbers: &numbers[(head * positions + first) * positions..],
                positions,
            });
            softmax(&logits[..kept.len()], bias, drop, kept, weights);
            let attended = if draw.is_some() { &**weights } else { &*kept };
            let attended = View::strided(attended, count, positions, padded);
            let place = first * shape.width + head * shape.head();
            let target = ViewMut::strided(&mut context[place..], count, shape.head(), shape.width);
            multiply(1.0, attended, values, Into::Set, target);
        }
    }
}

/// Dropout of some rows of weights: the random numbers, `positions` per row, and possibly more after them.
#[derive(Clone, Copy)]
struct DropRows<'a> {
    gate: Gate,
    numbers: &'a [u16],
    positions: usize,
}

/// Softmax of each row of logits + bias, and dropout.
///
/// `kept` gets the weights, with the sign bit marking dropped ones, and `weights` those after dropout. Without dropout, `weights` stays
/// as it is. Padded weights are zeros of any sign.
fn softmax(logits: &[f32], bias: &[f32], drop: Option<DropRows<'_>>, kept: &mut [f32], weights: &mut [f32]) {
    let padded = bias.len();
    let rows = logits.chunks_exact(padded).zip(kept.chunks_exact_mut(padded));
    vectorised(
        #[inline(always)]
        move || {
            for (index, (row, kept)) in rows.enumerate() {
                let scale = exponentials(row, bias, kept);
                let Some(DropRows { gate, numbers, positions }) = drop else {
                    kept.iter_mut().for_each(|weight| *weight *= scale);
                    continue;
                };
                let numbers = &numbers[index * positions..];
                let weights = &mut weights[index * padded..(index + 1) * padded];
                // Whole vectors are faster; padded weights then take numbers of the next row, which do not change a zero.
                if numbers.len() < padded {
                    kept.iter_mut().for_each(|weight| *weight *= scale);
                    drop_row(gate, &numbers[..positions], kept, weights);
                    continue;
                }
                for ((kept, out), &number) in kept.iter_mut().zip(weights).zip(numbers) {
                    let weight = *kept * scale;
                    *out = gate.pass(number, weight);
                    *kept = gate.sign(number, weight);
                }
            }
        },
    );
}

/// exp(logit + bias - their maximum); returns the reciprocal of the sum.
#[inline(always)]
fn exponentials(row: &[f32], bias: &[f32], out: &mut [f32]) -> f32 {
    let (row, bias, out) =
        (row.as_chunks::<LANES>().0, bias.as_chunks::<LANES>().0, out.as_chunks_mut::<LANES>().0);
    let mut top = [f32::NEG_INFINITY; LANES];
    for (row, bias) in row.iter().zip(bias) {
        for lane in 0..LANES {
            top[lane] = larger(top[lane], row[lane] + bias[lane]);
        }
    }
    let top = join_lanes(top, larger);
    let mut total = [0.0; LANES];
    for ((row, bias), out) in row.iter().zip(bias).zip(out) {
        for lane in 0..LANES {
            out[lane] = exp(row[lane] + bias[lane] - top);
            total[lane] += out[lane];
        }
    }
    1.0 / join_lanes(total, |a, b| a + b)
}

/// Marks and scales one weight of a row for each of the `numbers`.
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
        for row in logits.chunks_exact_mut(padded) {
            row[positions..].fill(0.0);
        }
        softmax_back(kept, logits, weights, bias);
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
/// dropped weights; `total`, one row, gains the sum over all rows. The padding of `slopes` must be zero.
fn softmax_back(kept: SignedWeights<'_>, slopes: &mut [f32], weights: &mut [f32], total: &mut [f32]) {
    let padded = total.len();
    let SignedWeights { values: kept, scale } = kept;
    vectorised(
        #[inline(always)]
        move || {
            let total = total.as_chunks_mut::<LANES>().0;
            let rows = kept.chunks_exact(padded).zip(slopes.chunks_exact_mut(padded));
            for ((kept, slopes), weights) in rows.zip(weights.chunks_exact_mut(padded)) {
                let (kept, slopes) = (kept.as_chunks::<LANES>().0, slopes.as_chunks_mut::<LANES>().0);
                let weights = weights.as_chunks_mut::<LANES>().0;
                let mut mean = [0.0; LANES];
                for ((kept, slopes), weights) in kept.iter().zip(&*slopes).zip(&mut *weights) {
                    let now = kept.map(|kept| passed(scale, kept));
                    *weights = now;
                    for lane in 0..LANES {
                        mean[lane] += now[lane] * slopes[lane];
                    }
                }
                let mean = join_lanes(mean, |a, b| a + b);
                for (((kept, slopes), weights), total) in
                    kept.iter().zip(slopes).zip(&*weights).zip(&mut *total)
                {
                    let slope: [f32; LANES] =
                        std::array::from_fn(|lane| weights[lane] * slopes[lane] - kept[lane].abs() * mean);
                    *slopes = slope;
                    for lane in 0..LANES {
                        total[lane] += slope[lane];
                    }
                }
            }
        },
    );
}
