//! One block, for one sequence: x ← x + Drop(MHA(LN₁ x, +M)); x ← x + FFN(LN₂ x).

use crate::attention;
use crate::dropout::{Dropout, words};
use crate::math::{gelu, gelu_with_slope, vectorised};
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::rows::{NormGradient, add, add_rows, add_to_rows, fill_rows, normalise, normalise_back};

/// The sizes of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// H.
    pub width: usize,
    /// Attention heads; they divide H.
    pub heads: usize,
    /// K, the length of a sequence.
    pub positions: usize,
}

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident: $size:expr;)*) => {
        /// The parameters of one block; matrices are [inputs, outputs], row by row.
        #[derive(Debug, Clone, Copy)]
        pub struct BlockWeights<'a> { $($(#[$doc])* pub $name: &'a [f32],)* }

        /// Their gradients.
        #[derive(Debug, Clone, PartialEq)]
        pub struct BlockGradient { $($(#[$doc])* pub $name: Vec<f32>,)* }

        impl BlockWeights<'_> {
            /// # Panics
            /// If a parameter does not have its size.
            pub(crate) fn check(&self, width: usize) {
                $(assert_eq!(self.$name.len(), $size(width), stringify!($name));)*
            }
        }

        impl BlockGradient {
            pub(crate) fn zeros(width: usize) -> Self {
                Self { $($name: vec![0.0; $size(width)],)* }
            }

            pub(crate) fn add(&mut self, other: &Self) {
                $(add(&mut self.$name, &other.$name);)*
            }
        }
    };
}

parameters! {
    /// LN₁, [H].
    attention_gain: |h| h;
    /// LN₁, [H].
    attention_bias: |h| h;
    /// Queries, keys and values, [H, 3H].
    projection: |h| 3 * h * h;
    /// Queries, keys and values, [3H].
    projection_bias: |h| 3 * h;
    /// What follows the heads, [H, H].
    output: |h| h * h;
    /// What follows the heads, [H].
    output_bias: |h| h;
    /// LN₂, [H].
    feed_forward_gain: |h| h;
    /// LN₂, [H].
    feed_forward_bias: |h| h;
    /// [H, 2H].
    hidden: |h| 2 * h * h;
    /// [2H].
    hidden_bias: |h| 2 * h;
    /// [2H, H].
    contraction: |h| 2 * h * h;
    /// [H].
    contraction_bias: |h| h;
}

/// What one sequence leaves behind in one block for the way back.
pub(crate) struct Trace<'a> {
    /// x before the block, [K, H]; not used by the first block, whose input the chain can make again.
    pub(crate) input: &'a mut [f32],
    /// Queries, keys and values, [K, 3H].
    pub(crate) projected: &'a mut [f32],
    /// Attention weights, [heads, K, padded].
    pub(crate) weights: &'a mut [f32],
    /// The heads' results, [K, H].
    pub(crate) context: &'a mut [f32],
    /// x between attention and feed-forward, [K, H].
    pub(crate) middle: &'a mut [f32],
    /// The feed-forward layer before its GELU, [K, 2H].
    pub(crate) hidden: &'a mut [f32],
}

/// Where a block's dropout masks lie in the stream, and which sequence of how many is meant.
#[derive(Clone, Copy)]
pub(crate) struct Masks<'a> {
    pub(crate) dropout: &'a Dropout,
    pub(crate) block: usize,
    pub(crate) sequence: usize,
    pub(crate) sequences: usize,
}

/// The masks of one block, in the order in which the model draws them.
fn masks_of_a_block(shape: &Shape, sequences: usize) -> [usize; 3] {
    let rows = sequences * shape.positions;
    [rows * shape.heads * shape.positions, rows * shape.width, rows * 2 * shape.width]
}

/// All masks of a chain, in the order in which the model draws them.
pub(crate) fn masks_of_a_chain(shape: &Shape, sequences: usize, blocks: usize) -> Vec<usize> {
    masks_of_a_block(shape, sequences).repeat(blocks)
}

impl Masks<'_> {
    fn before(&self, shape: &Shape, index: usize) -> u128 {
        let sizes = masks_of_a_block(shape, self.sequences);
        self.block as u128 * words(&sizes) + words(&sizes[..index])
    }

    /// The numbers of mask `index` (1: after attention, 2: within the feed-forward layer) for this sequence.
    fn draw(&self, shape: &Shape, index: usize, numbers: &mut Vec<u16>) {
        let count = shape.positions * shape.width * index;
        self.dropout.draw(self.before(shape, index), self.sequence * count, numbers, count);
    }
}

/// What a block works in.
#[derive(Default)]
pub(crate) struct Scratch {
    attention: attention::Scratch,
    normed: Vec<f32>,
    wide: Vec<f32>,
    wide_gradient: Vec<f32>,
    narrow: Vec<f32>,
    projected_gradient: Vec<f32>,
    numbers: Vec<u16>,
}

impl Scratch {
    /// Room for normalised rows.
    pub(crate) fn normed(&mut self) -> &mut Vec<f32> {
        &mut self.normed
    }

    /// The gradient of queries, keys and values that [`backward`] leaves.
    pub(crate) fn projected_gradient(&self) -> &[f32] {
        &self.projected_gradient
    }
}

fn sized(values: &mut Vec<f32>, length: usize) -> &mut [f32] {
    values.resize(length, 0.0);
    values
}

/// LN₁ and the projection of `count` rows: what the first block computes of each record by itself.
pub(crate) fn project(
    width: usize,
    weights: &BlockWeights<'_>,
    rows: &[f32],
    normed: &mut Vec<f32>,
    out: &mut [f32],
) {
    let normed = sized(normed, rows.len());
    normalise(rows, weights.attention_gain, weights.attention_bias, normed);
    fill_rows(out, weights.projection_bias);
    let (left, right) = (View::new(normed, width), View::new(weights.projection, 3 * width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(out, 3 * width));
}

/// Back through [`project`]: adds to the rows' gradient and to that of the parameters.
pub(crate) fn project_back(
    width: usize,
    weights: &BlockWeights<'_>,
    rows: &[f32],
    projected_gradient: &[f32],
    scratch: (&mut Vec<f32>, &mut Vec<f32>),
    gradient: &mut BlockGradient,
    rows_gradient: &mut [f32],
) {
    let (normed, normed_gradient) = (sized(scratch.0, rows.len()), sized(scratch.1, rows.len()));
    normalise(rows, weights.attention_gain, weights.attention_bias, normed);
    let above = View::new(projected_gradient, 3 * width);
    let target = ViewMut::new(&mut gradient.projection, 3 * width);
    multiply(1.0, View::new(normed, width).transposed(), above, Into::Add, target);
    add_rows(&mut gradient.projection_bias, projected_gradient);
    let right = View::new(weights.projection, 3 * width).transposed();
    multiply(1.0, above, right, Into::Set, ViewMut::new(normed_gradient, width));
    let parameters = NormGradient { gain: &mut gradient.attention_gain, bias: &mut gradient.attention_bias };
    normalise_back(rows, weights.attention_gain, normed_gradient, rows_gradient, parameters);
}

/// The block after its projection: `x` [K, H] becomes its result.
pub(crate) fn forward(
    shape: &Shape,
    weights: &BlockWeights<'_>,
    x: &mut [f32],
    mask: Option<&[f32]>,
    masks: Option<Masks<'_>>,
    trace: &mut Trace<'_>,
    scratch: &mut Scratch,
) {
    let width = shape.width;
    let draw = masks.map(|masks| (masks.dropout, masks.before(shape, 0), masks.sequence));
    attention::forward(
        shape,
        trace.projected,
        mask,
        draw,
        trace.weights,
        trace.context,
        &mut scratch.attention,
    );
    let attended = sized(&mut scratch.narrow, x.len());
    fill_rows(attended, weights.output_bias);
    let (left, right) = (View::new(trace.context, width), View::new(weights.output, width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(attended, width));
    if let Some(masks) = masks {
        masks.draw(shape, 1, &mut scratch.numbers);
        drop_values(masks.dropout, &scratch.numbers, attended);
    }
    add(x, attended);
    trace.middle.copy_from_slice(x);

    let normed = sized(&mut scratch.normed, x.len());
    normalise(x, weights.feed_forward_gain, weights.feed_forward_bias, normed);
    fill_rows(trace.hidden, weights.hidden_bias);
    let (left, right) = (View::new(normed, width), View::new(weights.hidden, 2 * width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(trace.hidden, 2 * width));
    let active = sized(&mut scratch.wide, 2 * x.len());
    activate(trace.hidden, active);
    if let Some(masks) = masks {
        masks.draw(shape, 2, &mut scratch.numbers);
        drop_values(masks.dropout, &scratch.numbers, active);
    }
    add_to_rows(x, weights.contraction_bias);
    let (left, right) = (View::new(active, 2 * width), View::new(weights.contraction, width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(x, width));
}

/// Back through [`forward`]: `x_gradient` [K, H] becomes the gradient of the block's input by way of the residual
/// paths; that of the projection stays in the scratch, that of the mask is added.
#[expect(clippy::too_many_arguments, reason = "the two ends of one operation, and what lies between")]
pub(crate) fn backward(
    shape: &Shape,
    weights: &BlockWeights<'_>,
    masks: Option<Masks<'_>>,
    trace: &Trace<'_>,
    x_gradient: &mut [f32],
    mask_gradient: &mut [f32],
    gradient: &mut BlockGradient,
    scratch: &mut Scratch,
) {
    let width = shape.width;
    let wide = sized(&mut scratch.wide, 2 * x_gradient.len());
    let wide_gradient = sized(&mut scratch.wide_gradient, 2 * x_gradient.len());
    let narrow = sized(&mut scratch.narrow, x_gradient.len());
    let normed = sized(&mut scratch.normed, x_gradient.len());
    let projected_gradient = sized(&mut scratch.projected_gradient, 3 * x_gradient.len());

    let above = View::new(x_gradient, width);
    let right = View::new(weights.contraction, width).transposed();
    multiply(1.0, above, right, Into::Set, ViewMut::new(wide_gradient, 2 * width));
    match masks {
        Some(masks) => {
            masks.draw(shape, 2, &mut scratch.numbers);
            activate_back(trace.hidden, Some((masks.dropout, &scratch.numbers)), wide, wide_gradient);
        }
        None => activate_back(trace.hidden, None, wide, wide_gradient),
    }
    let target = ViewMut::new(&mut gradient.contraction, width);
    multiply(1.0, View::new(wide, 2 * width).transposed(), above, Into::Add, target);
    add_rows(&mut gradient.contraction_bias, x_gradient);
    normalise(trace.middle, weights.feed_forward_gain, weights.feed_forward_bias, normed);
    let slopes = View::new(wide_gradient, 2 * width);
    let target = ViewMut::new(&mut gradient.hidden, 2 * width);
    multiply(1.0, View::new(normed, width).transposed(), slopes, Into::Add, target);
    add_rows(&mut gradient.hidden_bias, wide_gradient);
    let right = View::new(weights.hidden, 2 * width).transposed();
    multiply(1.0, slopes, right, Into::Set, ViewMut::new(narrow, width));
    let parameters =
        NormGradient { gain: &mut gradient.feed_forward_gain, bias: &mut gradient.feed_forward_bias };
    normalise_back(trace.middle, weights.feed_forward_gain, narrow, x_gradient, parameters);

    // `narrow` is now what came out of attention, `normed` the gradient of the heads' results.
    narrow.copy_from_slice(x_gradient);
    if let Some(masks) = masks {
        masks.draw(shape, 1, &mut scratch.numbers);
        drop_values(masks.dropout, &scratch.numbers, narrow);
    }
    let above = View::new(narrow, width);
    let target = ViewMut::new(&mut gradient.output, width);
    multiply(1.0, View::new(trace.context, width).transposed(), above, Into::Add, target);
    add_rows(&mut gradient.output_bias, narrow);
    let right = View::new(weights.output, width).transposed();
    multiply(1.0, above, right, Into::Set, ViewMut::new(normed, width));
    attention::backward(
        shape,
        trace.projected,
        masks.map_or(1.0, |masks| masks.dropout.scale()),
        trace.weights,
        normed,
        projected_gradient,
        mask_gradient,
        &mut scratch.attention,
    );
}

/// Back from the gradient of the projection, which [`backward`] left, to that of the block's input.
pub(crate) fn input_back(
    shape: &Shape,
    weights: &BlockWeights<'_>,
    trace: &Trace<'_>,
    x_gradient: &mut [f32],
    gradient: &mut BlockGradient,
    scratch: &mut Scratch,
) {
    let Scratch { normed, narrow, projected_gradient, .. } = scratch;
    let room = (normed, narrow);
    project_back(shape.width, weights, trace.input, projected_gradient, room, gradient, x_gradient);
}

/// Zeroes or scales each value by its number.
fn drop_values(dropout: &Dropout, numbers: &[u16], values: &mut [f32]) {
    let scale = dropout.scale();
    vectorised(
        #[inline(always)]
        || {
            for (value, &number) in values.iter_mut().zip(numbers) {
                *value = if dropout.keeps(number) { *value * scale } else { 0.0 };
            }
        },
    );
}

fn activate(hidden: &[f32], active: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for (out, &x) in active.iter_mut().zip(hidden) {
                *out = gelu(x);
            }
        },
    );
}

/// `active` becomes GELU and dropout of `hidden`; `gradient`, the gradient of that, becomes the one of `hidden`.
fn activate_back(
    hidden: &[f32],
    masks: Option<(&Dropout, &[u16])>,
    active: &mut [f32],
    gradient: &mut [f32],
) {
    vectorised(
        #[inline(always)]
        || {
            for ((&x, out), slope) in hidden.iter().zip(active.iter_mut()).zip(gradient.iter_mut()) {
                let (value, derivative) = gelu_with_slope(x);
                *out = value;
                *slope *= derivative;
            }
        },
    );
    if let Some((dropout, numbers)) = masks {
        drop_values(dropout, numbers, active);
        drop_values(dropout, numbers, gradient);
    }
}
