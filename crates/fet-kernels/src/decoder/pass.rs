//! Forward and backward pass of one part of the samples through a decoder's blocks.

use crate::attention::SignedWeights;
use crate::buffer::Buffer;
use crate::dropout::{Dropout, Numbers, add_dropped, drop_into, words};
use crate::feed_forward;
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::parameters::{AttentionGradient, AttentionWeights, FeedForwardGradient, FeedForwardWeights, Qkv};
use crate::rows::{NormScratch, normalise, sized};
use crate::shape::Shape;

use super::layers::{Projection, drop_heads, leave, leave_back, stacked, stacked_mut};
use super::memory;

/// The parameters of one block.
#[derive(Debug, Clone, Copy)]
pub struct DecoderBlockWeights<'a> {
    /// LN₁ and self-attention.
    pub itself: AttentionWeights<'a>,
    /// LN₂ and attention to the memory.
    pub memory: AttentionWeights<'a>,
    /// LN₃ and the feed-forward layer.
    pub feed_forward: FeedForwardWeights<'a>,
}

/// Their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderBlockGradient {
    /// LN₁ and self-attention. Gradients of queries and keys are zero, because a single position does not use them.
    pub itself: AttentionGradient,
    /// LN₂ and attention to the memory. The gradient of the keys' bias is zero, because it cancels in the softmax.
    pub memory: AttentionGradient,
    /// LN₃ and the feed-forward layer.
    pub feed_forward: FeedForwardGradient,
}

impl DecoderBlockGradient {
    pub(super) fn zeros(width: usize) -> Self {
        Self {
            itself: AttentionGradient::zeros(width),
            memory: AttentionGradient::zeros(width),
            feed_forward: FeedForwardGradient::zeros(width),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.itself.add(&other.itself);
        self.memory.add(&other.memory);
        self.feed_forward.add(&other.feed_forward);
    }
}

/// Input of a decoder.
#[derive(Debug, Clone, Copy)]
pub struct DecoderInput<'a> {
    /// One position for each sample, [B, H].
    pub x: &'a [f32],
    /// Memory of each sample, [B, K, H].
    pub memory: &'a [f32],
    /// Term added to the logits of each position of the memory, [B, K]; not trained.
    pub mask: Option<&'a [f32]>,
}

/// Activations of a part of n samples in one block.
#[derive(Debug)]
pub(super) struct Trace {
    /// x before the block, [n, H].
    input: Buffer,
    /// Values of self-attention, scaled by dropout, [n, H].
    values: Buffer,
    /// x between self-attention and attention to the memory, [n, H].
    between: Buffer,
    /// Queries divided by √d, [n, H].
    queries: Buffer,
    /// Queries multiplied by W_K, [n, heads, H].
    absorbed: Buffer,
    /// Attention weights, [n, heads, K]; the sign bit marks dropped ones.
    weights: Buffer,
    /// Weighted sums of the memory, [n, heads, H].
    context: Buffer,
    /// Sums of the weights, [n, heads].
    total: Buffer,
    /// The heads' results, [n, H].
    attended: Buffer,
    /// x before the feed-forward layer, [n, H].
    middle: Buffer,
    /// Feed-forward layer before its GELU, [n, 2H].
    hidden: Buffer,
}

impl Trace {
    fn new(shape: &Shape, n: usize) -> Self {
        let Shape { width, heads, positions } = *shape;
        Self {
            input: Buffer::any(n * width),
            values: Buffer::any(n * width),
            between: Buffer::any(n * width),
            queries: Buffer::any(n * width),
            absorbed: Buffer::any(n * heads * width),
            weights: Buffer::any(n * heads * positions),
            context: Buffer::any(n * heads * width),
            total: Buffer::any(n * heads),
            attended: Buffer::any(n * width),
            middle: Buffer::any(n * width),
            hidden: Buffer::any(2 * n * width),
        }
    }
}

/// Sizes of the masks of one block, in the model's drawing order.
pub(super) fn masks(shape: &Shape, samples: usize) -> [usize; 5] {
    let Shape { width, heads, positions } = *shape;
    [samples * heads, samples * width, samples * heads * positions, samples * width, 2 * samples * width]
}

/// Scratch memory of a part.
#[derive(Default)]
pub(super) struct Scratch {
    feed_forward: feed_forward::Scratch,
    memory: memory::Scratch,
    normed: Vec<f32>,
    narrow: Vec<f32>,
    other: Vec<f32>,
    numbers: Numbers,
}

/// Gradients of a part of n samples from the backward pass of one block.
pub(super) struct Gradients<'a> {
    /// Gradient of the block's result, [n, H]; it becomes the gradient of `x`.
    pub(super) x: &'a mut [f32],
    /// Gradient of the memory, [n, K, H]; the last block overwrites it, the others add to it.
    pub(super) memory: &'a mut [f32],
    /// Gradients of the parameters; accumulated.
    pub(super) parameters: &'a mut DecoderBlockGradient,
}

/// State that the passes of all parts share.
pub(super) struct DecoderPass<'a> {
    pub(super) shape: &'a Shape,
    pub(super) blocks: &'a [DecoderBlockWeights<'a>],
    pub(super) input: DecoderInput<'a>,
    pub(super) samples: usize,
    pub(super) dropout: Option<&'a Dropout>,
}

impl<'a> DecoderPass<'a> {
    /// Random numbers of mask `index` of `block` for `n` samples from `first`, if there is dropout.
    fn draw(
        &self,
        (block, index): (usize, usize),
        (first, n): (usize, usize),
        numbers: &mut Numbers,
    ) -> Option<&'a Dropout> {
        let dropout = self.dropout?;
        let sizes = masks(self.shape, self.samples);
        let before = block as u128 * words(&sizes) + words(&sizes[..index]);
        let each = sizes[index] / self.samples;
        dropout.draw(before, first * each, numbers, n * each);
        Some(dropout)
    }

    /// The memory of `n` samples from `first`, and their mask.
    fn memory(&self, first: usize, n: usize) -> memory::Memory<'a> {
        let Shape { width, positions, .. } = *self.shape;
        memory::Memory {
            shape: self.shape,
            values: &self.input.memory[first * positions * width..(first + n) * positions * width],
            mask: self.input.mask.map(|mask| &mask[first * positions..(first + n) * positions]),
        }
    }

    /// Applies a block to `x` [n, H], the samples from `first`.
    pub(super) fn forward(
        &self,
        block: usize,
        weights: &DecoderBlockWeights<'_>,
        first: usize,
        x: &mut [f32],
        scratch: &mut Scratch,
    ) -> Trace {
        let Shape { width, heads, .. } = *self.shape;
        let (n, head) = (x.len() / width, width / heads);
        let mut trace = Trace::new(self.shape, n);
        let Scratch { feed_forward, memory, normed, narrow, numbers, .. } = scratch;
        let (normed, narrow) = (sized(normed, x.len()), sized(narrow, x.len()));

        trace.input.copy_from_slice(x);
        let layer = &weights.itself;
        normalise(x, layer.gain, layer.bias, normed);
        Projection { weights: layer, part: Qkv::Values }.forward(normed, &mut trace.values);
        if let Some(dropout) = self.draw((block, 0), (first, n), numbers) {
            drop_heads(dropout, numbers, head, &mut trace.values);
        }
        leave(&trace.values, layer, narrow);
        let drawn = self.draw((block, 1), (first, n), numbers).map(|dropout| (dropout, &**numbers));
        add_dropped(x, narrow, drawn, &mut trace.between);

        let layer = &weights.memory;
        normalise(x, layer.gain, layer.bias, normed);
        Projection { weights: layer, part: Qkv::Queries }.forward(normed, &mut trace.queries);
        let factor = 1.0 / (head as f32).sqrt();
        trace.queries.iter_mut().for_each(|query| *query *= factor);
        for h in 0..heads {
            let queries = View::new(&trace.queries, width).columns(h * head, head);
            let target = ViewMut::strided(&mut trace.absorbed[h * width..], n, width, heads * width);
            let right = stacked(layer, Qkv::Keys, h * head, head).transposed();
            multiply(1.0, queries, right, Into::Set, target);
        }
        let drawn = self.draw((block, 2), (first, n), numbers).map(|dropout| (dropout, &**numbers));
        let saved =
            memory::Saved { kept: &mut trace.weights, context: &mut trace.context, total: &mut trace.total };
        self.memory(first, n).attend(&trace.absorbed, drawn, saved, memory);
        for h in 0..heads {
            let start = Qkv::Values.columns(width).start + h * head;
            let bias = &layer.projection_bias[start..start + head];
            let rows = trace.attended.chunks_exact_mut(width).zip(trace.total.chunks_exact(heads));
            for (row, total) in rows {
                for (place, bias) in row[h * head..(h + 1) * head].iter_mut().zip(bias) {
                    *place = total[h] * bias;
                }
            }
            let context = View::strided(&trace.context[h * width..], n, width, heads * width);
            let target = ViewMut::strided(&mut trace.attended[h * head..], n, head, width);
            multiply(1.0, context, stacked(layer, Qkv::Values, h * head, head), Into::Add, target);
        }
        leave(&trace.attended, layer, narrow);
        let drawn = self.draw((block, 3), (first, n), numbers).map(|dropout| (dropout, &**numbers));
        add_dropped(x, narrow, drawn, &mut trace.middle);

        let drawn = self.draw((block, 4), (first, n), numbers).map(|dropout| (dropout, &**numbers));
        feed_forward::forward(&weights.feed_forward, x, &mut trace.hidden, drawn, feed_forward);
        trace
    }

    /// Backward pass of [`DecoderPass::forward`].
    pub(super) fn backward(
        &self,
        block: usize,
        trace: &Trace,
        first: usize,
        gradients: Gradients<'_>,
        scratch: &mut Scratch,
    ) {
        let Gradients { x: x_gradient, memory: memory_gradient, parameters: gradient } = gradients;
        let Shape { width, heads, .. } = *self.shape;
        let (weights, last) = (&self.blocks[block], block + 1 == self.blocks.len());
        let (n, head) = (x_gradient.len() / width, width / heads);
        let Scratch { feed_forward: feed_forward_scratch, memory, normed, narrow, other, numbers } = scratch;
        let (normed, narrow, other) =
            (sized(normed, n * width), sized(narrow, n * width), sized(other, n * width));

        let drawn = self.draw((block, 4), (first, n), numbers).map(|dropout| (dropout, &**numbers));
        feed_forward::backward(
            &weights.feed_forward,
            feed_forward::TransposedWeights::lazily(&weights.feed_forward),
            feed_forward::Saved { x: &trace.middle, hidden: &trace.hidden, drawn },
            feed_forward::Gradients { x: &mut *x_gradient, parameters: &mut gradient.feed_forward },
            feed_forward_scratch,
        );

        let (layer, found) = (&weights.memory, &mut gradient.memory);
        let dropout = self.draw((block, 3), (first, n), numbers);
        drop_into(x_gradient, dropout.map(|dropout| (dropout, &**numbers)), narrow);
        leave_back(&trace.attended, layer, narrow, found, other);
        let scale = dropout.map_or(1.0, Dropout::scale);
        let (context_gradient, total_gradient) = memory.gradients(n * heads, width);
        for h in 0..heads {
            let above = View::new(other, width).columns(h * head, head);
            let target = ViewMut::strided(&mut context_gradient[h * width..], n, width, heads * width);
            let right = stacked(layer, Qkv::Values, h * head, head).transposed();
            multiply(1.0, above, right, Into::Set, target);
            let context = View::strided(&trace.context[h * width..], n, width, heads * width);
            let target = stacked_mut(found, width, Qkv::Values, h * head, head);
            multiply(1.0, context.transposed(), above, Into::Add, target);
            let place = Qkv::Values.columns(width).start + h * head;
            let bias = &layer.projection_bias[place..place + head];
            let bias_gradient = &mut found.projection_bias[place..place + head];
            for (sample, row) in other.chunks_exact(width).enumerate() {
                let row = &row[h * head..(h + 1) * head];
                let total = trace.total[sample * heads + h];
                total_gradient[sample * heads + h] = row.iter().zip(bias).map(|(a, b)| a * b).sum();
                bias_gradient.iter_mut().zip(row).for_each(|(sum, value)| *sum += total * value);
            }
        }
        let kept = SignedWeights { values: &trace.weights, scale };
        let into = if last { Into::Set } else { Into::Add };
        let absorbed_gradient =
            self.memory(first, n).attend_back(&trace.absorbed, kept, memory_gradient, into, memory);
        for h in 0..heads {
            let above = View::strided(&absorbed_gradient[h * width..], n, width, heads * width);
            let target = ViewMut::strided(&mut narrow[h * head..], n, head, width);
            multiply(1.0, above, stacked(layer, Qkv::Keys, h * head, head), Into::Set, target);
            let queries = View::new(&trace.queries, width).columns(h * head, head);
            let target = stacked_mut(found, width, Qkv::Keys, h * head, head);
            multiply(1.0, above.transposed(), queries, Into::Add, target);
        }
        let factor = 1.0 / (head as f32).sqrt();
        narrow.iter_mut().for_each(|value| *value *= factor);
        let norm_scratch = NormScratch { normed: &mut *normed, gradient: &mut *other };
        let queries = Projection { weights: layer, part: Qkv::Queries };
        queries.backward(&trace.between, narrow, x_gradient, found, norm_scratch);

        let (layer, found) = (&weights.itself, &mut gradient.itself);
        let drawn = self.draw((block, 1), (first, n), numbers).map(|dropout| (dropout, &**numbers));
        drop_into(x_gradient, drawn, narrow);
        leave_back(&trace.values, layer, narrow, found, other);
        if let Some(dropout) = self.draw((block, 0), (first, n), numbers) {
            drop_heads(dropout, numbers, head, other);
        }
        let norm_scratch = NormScratch { normed, gradient: narrow };
        let values = Projection { weights: layer, part: Qkv::Values };
        values.backward(&trace.input, other, x_gradient, found, norm_scratch);
    }
}
