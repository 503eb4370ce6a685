//! A decoder: one position for each sample, which attends to itself and to the sample's memory.
//!
//! x ← x + Drop(SelfAttn(LN₁ x)); x ← x + Drop(Attn(LN₂ x, memory)); x ← x + FFN(LN₃ x), block after block. A single
//! position's attention to itself equals its value. The decoder never projects the memory: W_K is folded into the query, and
//! W_V follows the weighted sum (see `Attention::to_memory` in `fet-core`).

mod layers;
mod memory;
mod pass;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

pub use self::pass::{DecoderBlockGradient, DecoderBlockWeights, DecoderInput};
use self::pass::{DecoderPass, Gradients, Scratch, Trace, masks};
use crate::buffer::Buffer;
use crate::dropout::Dropout;
use crate::scratch::ScratchPool;
use crate::shape::Shape;

/// Number of samples per part in a pass without a tape.
const EVALUATED: usize = 16;
/// Number of parts of a batch; it does not depend on the number of threads.
const PARTS: usize = 8;

static POOL: ScratchPool<Scratch> = ScratchPool::new();

/// The decoder's result.
#[derive(Debug)]
pub struct DecoderForward {
    /// [B, H].
    pub values: Vec<f32>,
    /// Input of [`decode_back`], if the caller requested it.
    pub tape: Option<DecoderTape>,
    /// The stream of random numbers after the masks.
    pub rng: Option<ChaCha8Rng>,
}

/// Activations of a forward pass, kept for the backward pass.
#[derive(Debug)]
pub struct DecoderTape {
    dropout: Option<Dropout>,
    parts: Vec<Vec<Trace>>,
}

/// The gradients of a decoder.
#[derive(Debug)]
pub struct DecoderGradient {
    /// Gradient of the samples' positions, [B, H].
    pub x: Vec<f32>,
    /// Gradient of the memory, [B, K, H].
    pub memory: Vec<f32>,
    /// Gradients of each block's parameters.
    pub blocks: Vec<DecoderBlockGradient>,
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
    // Without a tape, a part and its memory fit in cache.
    let part_size = if taped { samples.div_ceil(PARTS) } else { EVALUATED };
    let mut values = input.x.to_vec();
    let pass = DecoderPass { shape, blocks, input, samples, dropout: dropout.as_ref() };
    let traces: Vec<Vec<Trace>> = values
        .par_chunks_mut(part_size * shape.width)
        .enumerate()
        .map_init(
            || POOL.borrow(),
            |scratch, (index, x)| {
                let through = blocks
                    .iter()
                    .enumerate()
                    .map(|(block, weights)| pass.forward(block, weights, index * part_size, x, scratch));
                // Without a tape, the start of the next block drops the trace of the last.
                if taped { through.collect() } else { through.fold(Vec::new(), |none, _| none) }
            },
        )
        .collect();
    let rng = dropout.as_ref().map(|dropout| dropout.after(&masks(shape, samples).repeat(blocks.len())));
    DecoderForward { values, tape: taped.then_some(DecoderTape { dropout, parts: traces }), rng }
}

/// Backward pass from the gradient [B, H] of a decoder's result.
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
    let part_size = samples.div_ceil(PARTS);
    let mut x = gradient;
    let mut memory = Buffer::any(input.memory.len());
    let pass = DecoderPass { shape, blocks, input, samples, dropout: tape.dropout.as_ref() };
    let parts: Vec<Vec<DecoderBlockGradient>> = x
        .par_chunks_mut(part_size * shape.width)
        .zip(memory.par_chunks_mut(part_size * shape.positions * shape.width))
        .zip(&tape.parts)
        .enumerate()
        .map_init(
            || POOL.borrow(),
            |scratch, (index, ((x, memory), traces))| {
                let mut total: Vec<_> =
                    blocks.iter().map(|_| DecoderBlockGradient::zeros(shape.width)).collect();
                for (block, trace) in traces.iter().enumerate().rev() {
                    let parameters = &mut total[block];
                    let gradients = Gradients { x: &mut *x, memory: &mut *memory, parameters };
                    pass.backward(block, trace, index * part_size, gradients, scratch);
                }
                total
            },
        )
        .collect();
    let mut total: Vec<_> = blocks.iter().map(|_| DecoderBlockGradient::zeros(shape.width)).collect();
    total.par_iter_mut().enumerate().for_each(|(block, sum)| {
        parts.iter().for_each(|part| sum.add(&part[block]));
    });
    DecoderGradient { x, memory: memory.into_vec(), blocks: total }
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
