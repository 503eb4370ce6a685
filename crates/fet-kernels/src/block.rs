//! One block, for one sequence: x ← x + Drop(MHA(LN₁ x, +M)); x ← x + FFN(LN₂ x).

use crate::dropout::{Dropout, drop_values, words};
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::parameters::{AttentionGradient, AttentionWeights, FeedForwardGradient, FeedForwardWeights};
use crate::rows::{NormGradient, add, add_rows, fill_rows, normalise, normalise_back, sized};
use crate::shape::Shape;
use crate::{attention, feed_forward};

/// The parameters of one block.
#[derive(Debug, Clone, Copy)]
pub struct BlockWeights<'a> {
    /// LN₁ and attention.
    pub attention: AttentionWeights<'a>,
    /// LN₂ and what follows it.
    pub feed_forward: FeedForwardWeights<'a>,
}

/// Their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockGradient {
    /// LN₁ and attention.
    pub attention: AttentionGradient,
    /// LN₂ and what follows it.
    pub feed_forward: FeedForwardGradient,
}

impl BlockWeights<'_> {
    /// # Panics
    /// If a parameter does not have its size.
    pub(crate) fn check(&self, width: usize) {
        self.attention.check(width);
        self.feed_forward.check(width);
    }
}

impl BlockGradient {
    pub(crate) fn zeros(width: usize) -> Self {
        Self { attention: AttentionGradient::zeros(width), feed_forward: FeedForwardGradient::zeros(width) }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.attention.add(&other.attention);
        self.feed_forward.add(&other.feed_forward);
    }
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
    feed_forward: feed_forward::Scratch,
    normed: Vec<f32>,
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

/// LN₁ and the projection of `count` rows: what the first block computes of each record by itself.
pub(crate) fn project(
    width: usize,
    weights: &AttentionWeights<'_>,
    rows: &[f32],
    normed: &mut Vec<f32>,
    out: &mut [f32],
) {
    let normed = sized(normed, rows.len());
    normalise(rows, weights.gain, weights.bias, normed);
    fill_rows(out, weights.projection_bias);
    let (left, right) = (View::new(normed, width), View::new(weights.projection, 3 * width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(out, 3 * width));
}

/// Back through [`project`]: adds to the rows' gradient and to that of the parameters.
pub(crate) fn project_back(
    width: usize,
    weights: &AttentionWeights<'_>,
    rows: &[f32],
    projected_gradient: &[f32],
    scratch: (&mut Vec<f32>, &mut Vec<f32>),
    gradient: &mut AttentionGradient,
    rows_gradient: &mut [f32],
) {
    let (normed, normed_gradient) = (sized(scratch.0, rows.len()), sized(scratch.1, rows.len()));
    normalise(rows, weights.gain, weights.bias, normed);
    let above = View::new(projected_gradient, 3 * width);
    let target = ViewMut::new(&mut gradient.projection, 3 * width);
    multiply(1.0, View::new(normed, width).transposed(), above, Into::Add, target);
    add_rows(&mut gradient.projection_bias, projected_gradient);
    let right = View::new(weights.projection, 3 * width).transposed();
    multiply(1.0, above, right, Into::Set, ViewMut::new(normed_gradient, width));
    let parameters = NormGradient { gain: &mut gradient.gain, bias: &mut gradient.bias };
    normalise_back(rows, weights.gain, normed_gradient, rows_gradient, parameters);
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
    fill_rows(attended, weights.attention.output_bias);
    let (left, right) = (View::new(trace.context, width), View::new(weights.attention.output, width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(attended, width));
    if let Some(masks) = masks {
        masks.draw(shape, 1, &mut scratch.numbers);
        drop_values(masks.dropout, &scratch.numbers, attended);
    }
    add(x, attended);
    trace.middle.copy_from_slice(x);

    let drawn = masks.map(|masks| {
        masks.draw(shape, 2, &mut scratch.numbers);
        (masks.dropout, scratch.numbers.as_slice())
    });
    let room = &mut scratch.feed_forward;
    feed_forward::forward(width, &weights.feed_forward, x, trace.hidden, drawn, room);
}

/// What the way back through one block leaves for one sequence.
pub(crate) struct Gradients<'a> {
    /// That of the block's result, [K, H], which becomes that of its input by way of the residual paths.
    pub(crate) x: &'a mut [f32],
    /// Of the mask, [K], to which it adds.
    pub(crate) mask: &'a mut [f32],
    /// Those of the parameters, to which it adds.
    pub(crate) parameters: &'a mut BlockGradient,
}

/// Back through [`forward`]; the gradient of the projection stays in the scratch.
pub(crate) fn backward(
    shape: &Shape,
    weights: &BlockWeights<'_>,
    masks: Option<Masks<'_>>,
    trace: &Trace<'_>,
    gradients: Gradients<'_>,
    scratch: &mut Scratch,
) {
    let Gradients { x: x_gradient, mask: mask_gradient, parameters: gradient } = gradients;
    let width = shape.width;
    let drawn = masks.map(|masks| {
        masks.draw(shape, 2, &mut scratch.numbers);
        (masks.dropout, scratch.numbers.as_slice())
    });
    feed_forward::backward(
        width,
        &weights.feed_forward,
        feed_forward::Saved { x: trace.middle, hidden: trace.hidden, drawn },
        feed_forward::Gradients { x: x_gradient, parameters: &mut gradient.feed_forward },
        &mut scratch.feed_forward,
    );

    let narrow = sized(&mut scratch.narrow, x_gradient.len());
    let normed = sized(&mut scratch.normed, x_gradient.len());
    let projected_gradient = sized(&mut scratch.projected_gradient, 3 * x_gradient.len());
    // `narrow` is now what came out of attention, `normed` the gradient of the heads' results.
    narrow.copy_from_slice(x_gradient);
    if let Some(masks) = masks {
        masks.draw(shape, 1, &mut scratch.numbers);
        drop_values(masks.dropout, &scratch.numbers, narrow);
    }
    let above = View::new(narrow, width);
    let target = ViewMut::new(&mut gradient.attention.output, width);
    multiply(1.0, View::new(trace.context, width).transposed(), above, Into::Add, target);
    add_rows(&mut gradient.attention.output_bias, narrow);
    let right = View::new(weights.attention.output, width).transposed();
    multiply(1.0, above, right, Into::Set, ViewMut::new(normed, width));
    let scale = masks.map_or(1.0, |masks| masks.dropout.scale());
    attention::backward(
        shape,
        attention::Saved { projected: trace.projected, scale, kept: trace.weights },
        normed,
        attention::Gradients { projected: projected_gradient, mask: mask_gradient },
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
    let (weights, gradient) = (&weights.attention, &mut gradient.attention);
    project_back(shape.width, weights, trace.input, projected_gradient, room, gradient, x_gradient);
}
