//! A decoder: one position for each sample, which attends to itself and to the sample's memory.
//!
//! x ← x + Drop(SelfAttn(LN₁ x)); x ← x + Drop(Attn(LN₂ x, memory)); x ← x + FFN(LN₃ x), block after block. A single
//! position's attention to itself is its own value; the memory is never projected (W_K is folded into the query, W_V
//! comes after the weighted sum; see `Attention::to_memory` in `fet-core`).

mod memory;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::block::Shape;
use crate::buffer::Buffer;
use crate::dropout::{Dropout, drop_values, words};
use crate::feed_forward;
use crate::matrix::{Into, View, ViewMut, multiply};
use crate::parameters::{AttentionGradient, AttentionWeights, FeedForwardGradient, FeedForwardWeights};
use crate::rows::{NormGradient, add, add_rows, fill_rows, normalise, normalise_back, sized};

/// Samples are worked on in so many portions, whatever the number of threads.
const PORTIONS: usize = 8;

/// The parameters of one block.
#[derive(Debug, Clone, Copy)]
pub struct DecoderBlockWeights<'a> {
    /// LN₁ and attention to itself.
    pub itself: AttentionWeights<'a>,
    /// LN₂ and attention to the memory.
    pub memory: AttentionWeights<'a>,
    /// LN₃ and what follows it.
    pub feed_forward: FeedForwardWeights<'a>,
}

/// Their gradients.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderBlockGradient {
    /// LN₁ and attention to itself; nothing comes to queries and keys, of which a single position makes no use.
    pub itself: AttentionGradient,
    /// LN₂ and attention to the memory; nothing comes to the bias of the keys, which the softmax does not see.
    pub memory: AttentionGradient,
    /// LN₃ and what follows it.
    pub feed_forward: FeedForwardGradient,
}

/// What a decoder is applied to.
#[derive(Debug, Clone, Copy)]
pub struct DecoderInput<'a> {
    /// One position for each sample, [B, H].
    pub x: &'a [f32],
    /// What each attends to, [B, K, H].
    pub memory: &'a [f32],
    /// Added to the logits of each position of the memory, [B, K]; it is not trained.
    pub mask: Option<&'a [f32]>,
}

/// The decoder's result.
#[derive(Debug)]
pub struct DecoderForward {
    /// [B, H].
    pub values: Vec<f32>,
    /// What [`decode_back`] wants, where it was asked for.
    pub tape: Option<DecoderTape>,
    /// The stream of random numbers after the masks.
    pub rng: Option<ChaCha8Rng>,
}

/// What a forward pass leaves for the way back.
#[derive(Debug)]
pub struct DecoderTape {
    dropout: Option<Dropout>,
    portions: Vec<Vec<Trace>>,
}

/// The gradients of a decoder.
#[derive(Debug)]
pub struct DecoderGradient {
    /// Of the samples' positions, [B, H].
    pub x: Vec<f32>,
    /// Of the memory, [B, K, H].
    pub memory: Vec<f32>,
    /// Of each block's parameters.
    pub blocks: Vec<DecoderBlockGradient>,
}

/// What a portion of n samples leaves behind in one block.
#[derive(Debug)]
struct Trace {
    /// x before the block, [n, H].
    input: Buffer,
    /// Its values, scaled by dropout, [n, H].
    values: Buffer,
    /// x between the attentions, [n, H].
    between: Buffer,
    /// Queries over √d, [n, H].
    queries: Buffer,
    /// Queries by way of W_K, [n, heads, H].
    absorbed: Buffer,
    /// Attention weights, [n, heads, K]; the sign says which dropout lets through.
    weights: Buffer,
    /// Weighted sums of the memory, [n, heads, H].
    context: Buffer,
    /// Sums of the weights, [n, heads].
    total: Buffer,
    /// The heads' results, [n, H].
    attended: Buffer,
    /// x before the feed-forward layer, [n, H].
    middle: Buffer,
    /// That layer before its GELU, [n, 2H].
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

impl DecoderBlockGradient {
    fn zeros(width: usize) -> Self {
        Self {
            itself: AttentionGradient::zeros(width),
            memory: AttentionGradient::zeros(width),
            feed_forward: FeedForwardGradient::zeros(width),
        }
    }

    fn add(&mut self, other: &Self) {
        self.itself.add(&other.itself);
        self.memory.add(&other.memory);
        self.feed_forward.add(&other.feed_forward);
    }
}

/// Applies a decoder.
///
/// # Panics
/// If sizes do not fit.
pub fn decode(
    shape: &Shape,
    blocks: &[DecoderBlockWeights<'_>],
    input: DecoderInput<'_>,
    dropout: Option<Dropout>,
    taped: bool,
) -> DecoderForward {
    let samples = check(shape, blocks, &input);
    let portion = samples.div_ceil(PORTIONS);
    let mut values = input.x.to_vec();
    let way = Way { shape, blocks, input, samples, dropout: dropout.as_ref() };
    let traces: Vec<Vec<Trace>> = values
        .par_chunks_mut(portion * shape.width)
        .enumerate()
        .map_init(Scratch::default, |scratch, (index, x)| {
            let through = blocks
                .iter()
                .enumerate()
                .map(|(block, weights)| way.forward(block, weights, index * portion, x, scratch));
            // Without a tape each trace is dropped as soon as the next block begins.
            if taped { through.collect() } else { through.fold(Vec::new(), |none, _| none) }
        })
        .collect();
    let rng = dropout.as_ref().map(|dropout| dropout.after(&masks(shape, samples).repeat(blocks.len())));
    DecoderForward { values, tape: taped.then_some(DecoderTape { dropout, portions: traces }), rng }
}

/// Back from the gradient [B, H] of a decoder's result.
///
/// # Panics
/// If the tape is not that of the same decoder and input.
pub fn decode_back(
    shape: &Shape,
    blocks: &[DecoderBlockWeights<'_>],
    input: DecoderInput<'_>,
    tape: DecoderTape,
    gradient: Vec<f32>,
) -> DecoderGradient {
    let samples = check(shape, blocks, &input);
    assert_eq!(gradient.len(), input.x.len(), "the gradient of the decoder's result");
    let portion = samples.div_ceil(PORTIONS);
    let mut x = gradient;
    let mut memory = vec![0.0f32; input.memory.len()];
    let way = Way { shape, blocks, input, samples, dropout: tape.dropout.as_ref() };
    let portions: Vec<Vec<DecoderBlockGradient>> = x
        .par_chunks_mut(portion * shape.width)
        .zip(memory.par_chunks_mut(portion * shape.positions * shape.width))
        .zip(&tape.portions)
        .enumerate()
        .map_init(Scratch::default, |scratch, (index, ((x, memory), traces))| {
            let mut total: Vec<_> = blocks.iter().map(|_| DecoderBlockGradient::zeros(shape.width)).collect();
            for (block, trace) in traces.iter().enumerate().rev() {
                way.backward(block, trace, index * portion, x, memory, &mut total[block], scratch);
            }
            total
        })
        .collect();
    let mut total: Vec<_> = blocks.iter().map(|_| DecoderBlockGradient::zeros(shape.width)).collect();
    for portion in &portions {
        total.iter_mut().zip(portion).for_each(|(sum, part)| sum.add(part));
    }
    DecoderGradient { x, memory, blocks: total }
}

/// The number of samples.
fn check(shape: &Shape, blocks: &[DecoderBlockWeights<'_>], input: &DecoderInput<'_>) -> usize {
    let Shape { width, heads, positions } = *shape;
    assert!(width > 0 && width.is_multiple_of(heads), "{shape:?}");
    assert!(!blocks.is_empty(), "a decoder of no blocks");
    for block in blocks {
        block.itself.check(width);
        block.memory.check(width);
        block.feed_forward.check(width);
    }
    let samples = input.x.len() / width;
    assert!(samples > 0 && input.x.len() == samples * width, "whole samples");
    assert_eq!(input.memory.len(), samples * positions * width, "a memory for each sample");
    assert!(input.mask.is_none_or(|mask| mask.len() == samples * positions), "a mask for each position");
    samples
}

/// The masks of one block, in the order in which the model draws them.
fn masks(shape: &Shape, samples: usize) -> [usize; 5] {
    let Shape { width, heads, positions } = *shape;
    [samples * heads, samples * width, samples * heads * positions, samples * width, 2 * samples * width]
}

/// What a portion works in.
#[derive(Default)]
struct Scratch {
    feed_forward: feed_forward::Scratch,
    memory: memory::Scratch,
    normed: Vec<f32>,
    narrow: Vec<f32>,
    other: Vec<f32>,
    numbers: Vec<u16>,
}

/// What all portions' ways through the decoder share.
struct Way<'a> {
    shape: &'a Shape,
    blocks: &'a [DecoderBlockWeights<'a>],
    input: DecoderInput<'a>,
    samples: usize,
    dropout: Option<&'a Dropout>,
}

impl<'a> Way<'a> {
    /// The numbers of mask `index` of `block` for `n` samples from `first`, where there is dropout.
    fn draw(
        &self,
        (block, index): (usize, usize),
        (first, n): (usize, usize),
        numbers: &mut Vec<u16>,
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
            values: &self.input.memory[first * positions * width..(first + n) * positions * width],
            mask: self.input.mask.map(|mask| &mask[first * positions..(first + n) * positions]),
        }
    }

    /// `x` [n, H], samples from `first`, goes through a block.
    fn forward(
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
        let part = &weights.itself;
        normalise(x, part.gain, part.bias, normed);
        affine(normed, part, 2, &mut trace.values);
        if let Some(dropout) = self.draw((block, 0), (first, n), numbers) {
            drop_heads(dropout, numbers, head, &mut trace.values);
        }
        leave(&trace.values, part, narrow);
        if let Some(dropout) = self.draw((block, 1), (first, n), numbers) {
            drop_values(dropout, numbers, narrow);
        }
        add(x, narrow);
        trace.between.copy_from_slice(x);

        let part = &weights.memory;
        normalise(x, part.gain, part.bias, normed);
        affine(normed, part, 0, &mut trace.queries);
        let factor = 1.0 / (head as f32).sqrt();
        trace.queries.iter_mut().for_each(|query| *query *= factor);
        for h in 0..heads {
            let queries = View::new(&trace.queries, width).columns(h * head, head);
            let target = ViewMut::strided(&mut trace.absorbed[h * width..], n, width, heads * width);
            multiply(1.0, queries, stacked(part, 1, h * head, head).transposed(), Into::Set, target);
        }
        let drawn = self.draw((block, 2), (first, n), numbers).map(|dropout| (dropout, numbers.as_slice()));
        let (values, kept) = (self.memory(first, n), &mut trace.weights);
        memory::attend(
            self.shape,
            values,
            &trace.absorbed,
            drawn,
            kept,
            &mut trace.context,
            &mut trace.total,
            memory,
        );
        for h in 0..heads {
            let bias = &part.projection_bias[2 * width + h * head..2 * width + (h + 1) * head];
            let rows = trace.attended.chunks_exact_mut(width).zip(trace.total.chunks_exact(heads));
            for (row, total) in rows {
                for (place, bias) in row[h * head..(h + 1) * head].iter_mut().zip(bias) {
                    *place = total[h] * bias;
                }
            }
            let context = View::strided(&trace.context[h * width..], n, width, heads * width);
            let target = ViewMut::strided(&mut trace.attended[h * head..], n, head, width);
            multiply(1.0, context, stacked(part, 2, h * head, head), Into::Add, target);
        }
        leave(&trace.attended, part, narrow);
        if let Some(dropout) = self.draw((block, 3), (first, n), numbers) {
            drop_values(dropout, numbers, narrow);
        }
        add(x, narrow);
        trace.middle.copy_from_slice(x);

        let drawn = self.draw((block, 4), (first, n), numbers).map(|dropout| (dropout, numbers.as_slice()));
        feed_forward::forward(width, &weights.feed_forward, x, &mut trace.hidden, drawn, feed_forward);
        trace
    }

    /// Back through [`Way::forward`]: the gradient of its result becomes that of `x`; that of the memory is added.
    #[expect(clippy::too_many_arguments, reason = "the two ends of one operation, and what lies between")]
    fn backward(
        &self,
        block: usize,
        trace: &Trace,
        first: usize,
        x_gradient: &mut [f32],
        memory_gradient: &mut [f32],
        gradient: &mut DecoderBlockGradient,
        scratch: &mut Scratch,
    ) {
        let Shape { width, heads, .. } = *self.shape;
        let weights = &self.blocks[block];
        let (n, head) = (x_gradient.len() / width, width / heads);
        let Scratch { feed_forward, memory, normed, narrow, other, numbers } = scratch;
        let (normed, narrow, other) =
            (sized(normed, n * width), sized(narrow, n * width), sized(other, n * width));

        let drawn = self.draw((block, 4), (first, n), numbers).map(|dropout| (dropout, numbers.as_slice()));
        feed_forward::backward(
            width,
            &weights.feed_forward,
            &trace.middle,
            &trace.hidden,
            drawn,
            x_gradient,
            &mut gradient.feed_forward,
            feed_forward,
        );

        let (part, found) = (&weights.memory, &mut gradient.memory);
        narrow.copy_from_slice(x_gradient);
        let dropout = self.draw((block, 3), (first, n), numbers);
        if let Some(dropout) = dropout {
            drop_values(dropout, numbers, narrow);
        }
        leave_back(&trace.attended, part, narrow, found, other);
        let scale = dropout.map_or(1.0, Dropout::scale);
        let (context_gradient, total_gradient) = memory.gradients(n * heads, width);
        for h in 0..heads {
            let above = View::new(other, width).columns(h * head, head);
            let target = ViewMut::strided(&mut context_gradient[h * width..], n, width, heads * width);
            multiply(1.0, above, stacked(part, 2, h * head, head).transposed(), Into::Set, target);
            let context = View::strided(&trace.context[h * width..], n, width, heads * width);
            let target = stacked_mut(found, width, 2, h * head, head);
            multiply(1.0, context.transposed(), above, Into::Add, target);
            let place = 2 * width + h * head;
            let bias = &part.projection_bias[place..place + head];
            let bias_gradient = &mut found.projection_bias[place..place + head];
            for (sample, row) in other.chunks_exact(width).enumerate() {
                let row = &row[h * head..(h + 1) * head];
                let total = trace.total[sample * heads + h];
                total_gradient[sample * heads + h] = row.iter().zip(bias).map(|(a, b)| a * b).sum();
                bias_gradient.iter_mut().zip(row).for_each(|(sum, value)| *sum += total * value);
            }
        }
        let values = self.memory(first, n);
        let absorbed_gradient = memory::attend_back(
            self.shape,
            values,
            &trace.absorbed,
            scale,
            &trace.weights,
            memory_gradient,
            memory,
        );
        for h in 0..heads {
            let above = View::strided(&absorbed_gradient[h * width..], n, width, heads * width);
            let target = ViewMut::strided(&mut narrow[h * head..], n, head, width);
            multiply(1.0, above, stacked(part, 1, h * head, head), Into::Set, target);
            let queries = View::new(&trace.queries, width).columns(h * head, head);
            let target = stacked_mut(found, width, 1, h * head, head);
            multiply(1.0, above.transposed(), queries, Into::Add, target);
        }
        let factor = 1.0 / (head as f32).sqrt();
        narrow.iter_mut().for_each(|value| *value *= factor);
        affine_back(&trace.between, part, 0, narrow, found, (normed, other), x_gradient);

        let (part, found) = (&weights.itself, &mut gradient.itself);
        narrow.copy_from_slice(x_gradient);
        if let Some(dropout) = self.draw((block, 1), (first, n), numbers) {
            drop_values(dropout, numbers, narrow);
        }
        leave_back(&trace.values, part, narrow, found, other);
        if let Some(dropout) = self.draw((block, 0), (first, n), numbers) {
            drop_heads(dropout, numbers, head, other);
        }
        affine_back(&trace.input, part, 2, other, found, (normed, narrow), x_gradient);
    }
}

/// Some columns of queries (`part` 0), keys (1) or values (2) in the stacked projection.
fn stacked<'w>(weights: &AttentionWeights<'w>, part: usize, start: usize, count: usize) -> View<'w> {
    let width = weights.gain.len();
    View::new(weights.projection, 3 * width).columns(part * width + start, count)
}

fn stacked_mut(
    gradient: &mut AttentionGradient,
    width: usize,
    part: usize,
    start: usize,
    count: usize,
) -> ViewMut<'_> {
    ViewMut::strided(&mut gradient.projection[part * width + start..], width, count, 3 * width)
}

/// Queries (`part` 0) or values (2) of normed rows.
fn affine(normed: &[f32], weights: &AttentionWeights<'_>, part: usize, out: &mut [f32]) {
    let width = weights.gain.len();
    fill_rows(out, &weights.projection_bias[part * width..(part + 1) * width]);
    let right = stacked(weights, part, 0, width);
    multiply(1.0, View::new(normed, width), right, Into::Add, ViewMut::new(out, width));
}

/// Back through [`affine`] and the norm before it.
fn affine_back(
    rows: &[f32],
    weights: &AttentionWeights<'_>,
    part: usize,
    above: &[f32],
    gradient: &mut AttentionGradient,
    (normed, normed_gradient): (&mut [f32], &mut [f32]),
    rows_gradient: &mut [f32],
) {
    let width = weights.gain.len();
    normalise(rows, weights.gain, weights.bias, normed);
    let view = View::new(above, width);
    let target = stacked_mut(gradient, width, part, 0, width);
    multiply(1.0, View::new(normed, width).transposed(), view, Into::Add, target);
    add_rows(&mut gradient.projection_bias[part * width..(part + 1) * width], above);
    let right = stacked(weights, part, 0, width).transposed();
    multiply(1.0, view, right, Into::Set, ViewMut::new(normed_gradient, width));
    let parameters = NormGradient { gain: &mut gradient.gain, bias: &mut gradient.bias };
    normalise_back(rows, weights.gain, normed_gradient, rows_gradient, parameters);
}

/// What follows the heads.
fn leave(heads: &[f32], weights: &AttentionWeights<'_>, out: &mut [f32]) {
    let width = weights.gain.len();
    fill_rows(out, weights.output_bias);
    let (left, right) = (View::new(heads, width), View::new(weights.output, width));
    multiply(1.0, left, right, Into::Add, ViewMut::new(out, width));
}

/// Back through [`leave`].
fn leave_back(
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

/// Zeroes or scales each head by its number.
fn drop_heads(dropout: &Dropout, numbers: &[u16], head: usize, values: &mut [f32]) {
    for (values, &number) in values.chunks_exact_mut(head).zip(numbers) {
        let factor = if dropout.keeps(number) { dropout.scale() } else { 0.0 };
        values.iter_mut().for_each(|value| *value *= factor);
    }
}
