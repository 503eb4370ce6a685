//! One block, for one sequence: x ← x + Drop(MHA(LN₁ x, +M)); x ← x + FFN(LN₂ x).

use crate::dropout::{Dropout, Numbers, add_dropped, drop_into, words};
use crate::matrix::{Into, View, ViewMut, multiply, transposed};
use crate::parameters::{AttentionGradient, AttentionWeights, FeedForwardGradient, FeedForwardWeights};
use crate::rows::{NormGradient, NormInput, NormScratch, add_rows, normalise, sized};
use crate::shape::Shape;
use crate::{attention, feed_forward};

/// The parameters of one block.
#[derive(Debug, Clone, Copy)]
pub struct BlockWeights<'a> {
    /// LN₁ and attention.
    pub attention: AttentionWeights<'a>,
    /// LN₂ and the feed-forward layer.
    pub feed_forward: FeedForwardWeights<'a>,
}

/// Their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockGradient {
    /// LN₁ and attention.
    pub attention: AttentionGradient,
    /// LN₂ and the feed-forward layer.
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

/// A block with the sizes of its sequences.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) weights: &'a BlockWeights<'a>,
}

/// A block and its transposed weights, computed once for the backward pass of all sequences.
pub(crate) struct TransposedBlock<'a> {
    block: Block<'a>,
    /// [3H, H].
    projection: Vec<f32>,
    /// [H, H].
    output: Vec<f32>,
    /// [2H, H].
    hidden: Vec<f32>,
    /// [H, 2H].
    contraction: Vec<f32>,
}

/// Activations of one sequence in one block, kept for the backward pass.
pub(crate) struct Trace<'a> {
    /// x before the block, [K, H]; not used by the first block, whose input the chain can make again.
    pub(crate) input: &'a mut [f32],
    /// Queries, keys and values, [K, 3H]; not used by the first block, which gathers those of the records.
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

/// Destination of the activations that [`Block::forward`] keeps.
pub(crate) struct Saved<'a> {
    pub(crate) weights: &'a mut [f32],
    pub(crate) context: &'a mut [f32],
    pub(crate) middle: &'a mut [f32],
    pub(crate) hidden: &'a mut [f32],
}

/// Position of a block's dropout masks in the random stream, with the index and number of sequences.
#[derive(Clone, Copy)]
pub(crate) struct Masks<'a> {
    pub(crate) dropout: &'a Dropout,
    pub(crate) block: usize,
    pub(crate) sequence: usize,
    pub(crate) sequences: usize,
}

/// Sizes of the masks of one block, in the model's drawing order.
fn masks_of_a_block(shape: &Shape, sequences: usize) -> [usize; 3] {
    let rows = sequences * shape.positions;
    [rows * shape.heads * shape.positions, rows * shape.width, rows * 2 * shape.width]
}

/// Sizes of all masks of a chain, in the model's drawing order.
pub(crate) fn masks_of_a_chain(shape: &Shape, sequences: usize, blocks: usize) -> Vec<usize> {
    masks_of_a_block(shape, sequences).repeat(blocks)
}

impl Masks<'_> {
    fn before(&self, shape: &Shape, index: usize) -> u128 {
        let sizes = masks_of_a_block(shape, self.sequences);
        self.block as u128 * words(&sizes) + words(&sizes[..index])
    }

    /// The numbers of mask `index` (1: after attention, 2: within the feed-forward layer) for this sequence.
    fn draw(&self, shape: &Shape, index: usize, numbers: &mut Numbers) {
        let count = shape.positions * shape.width * index;
        self.dropout.draw(self.before(shape, index), self.sequence * count, numbers, count);
    }
}

/// Scratch memory of a block.
#[derive(Default)]
pub(crate) struct Scratch {
    attention: attention::Scratch,
    feed_forward: feed_forward::Scratch,
    normed: Vec<f32>,
    narrow: Vec<f32>,
    context: Vec<f32>,
    numbers: Numbers,
    gathered: Vec<f32>,
}

impl Scratch {
    /// Borrows memory for gathered projections; the caller returns it.
    pub(crate) fn take_gathered(&mut self) -> Vec<f32> {
        std::mem::take(&mut self.gathered)
    }

    /// Returns the borrowed memory, if any.
    pub(crate) fn return_gathered(&mut self, gathered: Vec<f32>) {
        if !gathered.is_empty() {
            self.gathered = gathered;
        }
    }

    /// Memory for normalised rows.
    pub(crate) fn normed(&mut self) -> &mut Vec<f32> {
        &mut self.normed
    }
}

/// Gradients of one sequence from the backward pass of one block.
pub(crate) struct Gradients<'a> {
    /// Gradient of the block's result, [K, H]; the residual paths turn it into the gradient of the input.
    pub(crate) x: &'a mut [f32],
    /// Gradient of queries, keys and values, [K, 3H]; overwritten.
    pub(crate) projected: &'a mut [f32],
    /// Gradient of the mask, [K]; accumulated.
    pub(crate) mask: &'a mut [f32],
    /// Gradients of the parameters; accumulated.
    pub(crate) parameters: &'a mut BlockGradient,
}

/// Applies LN₁ and the projection to some rows; the first block does this once per record.
pub(crate) fn project(weights: &AttentionWeights<'_>, rows: &[f32], normed: &mut Vec<f32>, out: &mut [f32]) {
    let width = weights.gain.len();
    let normed = sized(normed, rows.len());
    normalise(rows, weights.gain, weights.bias, normed);
    let (left, right) = (View::new(normed, width), View::new(weights.projection, 3 * width));
    multiply(1.0, left, right, Into::Row(weights.projection_bias), ViewMut::new(out, 3 * width));
}

impl Block<'_> {
    /// The block after its projection: `x` [K, H] becomes its result.
    pub(crate) fn forward(
        &self,
        x: &mut [f32],
        input: attention::Input<'_>,
        masks: Option<Masks<'_>>,
        saved: Saved<'_>,
        scratch: &mut Scratch,
    ) {
        let Self { shape, weights } = *self;
        let width = shape.width;
        let draw = masks.map(|masks| (masks.dropout, masks.before(shape, 0), masks.sequence));
        let output = attention::Output { weights: saved.weights, context: &mut *saved.context };
        attention::forward(shape, input, draw, output, &mut scratch.attention);
        let attended = sized(&mut scratch.narrow, x.len());
        let (left, right) = (View::new(saved.context, width), View::new(weights.attention.output, width));
        multiply(1.0, left, right, Into::Row(weights.attention.output_bias), ViewMut::new(attended, width));
        let drawn = masks.map(|masks| {
            masks.draw(shape, 1, &mut scratch.numbers);
            (masks.dropout, &*scratch.numbers)
        });
        add_dropped(x, attended, drawn, saved.middle);

        let drawn = masks.map(|masks| {
            masks.draw(shape, 2, &mut scratch.numbers);
            (masks.dropout, &*scratch.numbers)
        });
        feed_forward::forward(&weights.feed_forward, x, saved.hidden, drawn, &mut scratch.feed_forward);
    }
}

impl<'a> TransposedBlock<'a> {
    pub(crate) fn new(block: Block<'a>) -> Self {
        let (width, weights) = (block.shape.width, block.weights);
        Self {
            block,
            projection: transposed(weights.attention.projection, 3 * width),
            output: transposed(weights.attention.output, width),
            hidden: transposed(weights.feed_forward.hidden, 2 * width),
            contraction: transposed(weights.feed_forward.contraction, width),
        }
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.block.shape
    }

    fn feed_forward(&self) -> feed_forward::TransposedWeights<'_> {
        let width = self.block.shape.width;
        feed_forward::TransposedWeights {
            hidden: View::new(&self.hidden, width),
            contraction: View::new(&self.contraction, 2 * width),
        }
    }

    /// Backward pass of [`Block::forward`] after its projection.
    pub(crate) fn backward(
        &self,
        masks: Option<Masks<'_>>,
        trace: &Trace<'_>,
        projected: &[f32],
        gradients: Gradients<'_>,
        scratch: &mut Scratch,
    ) {
        let Gradients {
            x: x_gradient,
            projected: projected_gradient,
            mask: mask_gradient,
            parameters: gradient,
        } = gradients;
        let Block { shape, weights } = self.block;
        let width = shape.width;
        let drawn = masks.map(|masks| {
            masks.draw(shape, 2, &mut scratch.numbers);
            (masks.dropout, &*scratch.numbers)
        });
        feed_forward::backward(
            &weights.feed_forward,
            self.feed_forward(),
            feed_forward::Saved { x: trace.middle, hidden: trace.hidden, drawn },
            feed_forward::Gradients { x: x_gradient, parameters: &mut gradient.feed_forward },
            &mut scratch.feed_forward,
        );

        let narrow = sized(&mut scratch.narrow, x_gradient.len());
        let normed = sized(&mut scratch.normed, x_gradient.len());
        // `narrow` is the gradient of the output of attention, `normed` that of the heads' results.
        let drawn = masks.map(|masks| {
            masks.draw(shape, 1, &mut scratch.numbers);
            (masks.dropout, &*scratch.numbers)
        });
        drop_into(x_gradient, drawn, narrow);
        // Reading this from memory in row order is much faster than by columns.
        let context = sized(&mut scratch.context, trace.context.len());
        context.copy_from_slice(trace.context);
        let above = View::new(narrow, width);
        let target = ViewMut::new(&mut gradient.attention.output, width);
        multiply(1.0, View::new(context, width).transposed(), above, Into::Add, target);
        add_rows(&mut gradient.attention.output_bias, narrow);
        multiply(1.0, above, View::new(&self.output, width), Into::Set, ViewMut::new(normed, width));
        let scale = masks.map_or(1.0, |masks| masks.dropout.scale());
        let kept = attention::SignedWeights { values: trace.weights, scale };
        attention::backward(
            shape,
            attention::Saved { projected, weights: kept },
            normed,
            attention::Gradients { projected: projected_gradient, mask: mask_gradient },
            &mut scratch.attention,
        );
    }

    /// Continues [`Self::backward`] from the gradient of the projection to the gradient of the block's input.
    pub(crate) fn input_back(
        &self,
        input: &[f32],
        projected_gradient: &[f32],
        x_gradient: &mut [f32],
        gradient: &mut AttentionGradient,
        scratch: &mut Scratch,
    ) {
        let Scratch { normed, narrow, .. } = scratch;
        let norm_scratch =
            NormScratch { normed: sized(normed, input.len()), gradient: sized(narrow, input.len()) };
        self.project_back(input, projected_gradient, x_gradient, gradient, norm_scratch);
    }

    /// Backward pass of [`project`]: adds to the gradients of the rows and of the parameters.
    pub(crate) fn project_back(
        &self,
        rows: &[f32],
        projected_gradient: &[f32],
        rows_gradient: &mut [f32],
        gradient: &mut AttentionGradient,
        norm_scratch: NormScratch<'_>,
    ) {
        let NormScratch { normed, gradient: normed_gradient } = norm_scratch;
        let (weights, width) = (&self.block.weights.attention, self.block.shape.width);
        let rows = NormInput::new(rows, weights.gain, weights.bias, normed);
        let above = View::new(projected_gradient, 3 * width);
        let target = ViewMut::new(&mut gradient.projection, 3 * width);
        multiply(1.0, View::new(normed, width).transposed(), above, Into::Add, target);
        add_rows(&mut gradient.projection_bias, projected_gradient);
        let right = View::new(&self.projection, width);
        multiply(1.0, above, right, Into::Set, ViewMut::new(normed_gradient, width));
        let parameters = NormGradient { gain: &mut gradient.gain, bias: &mut gradient.bias };
        rows.back(normed_gradient, rows_gradient, parameters);
    }
}
