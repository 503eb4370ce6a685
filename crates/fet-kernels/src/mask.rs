//! Dynamic mask: a perceptron on the keys of a sequence's K records, with one number for each position.

use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::chain::gather;
use crate::matrix::Into;
use crate::perceptron::{PerceptronGradient, PerceptronWeights, Saved, Scratch, TransposedPerceptron};
use crate::rows::sized;
use crate::scratch::ScratchPool;

/// Number of sequences per step; it does not depend on the number of threads.
const SEQUENCES: usize = 16;

/// Keys of one step's sequences, and the perceptron's scratch memory.
static POOL: ScratchPool<(Vec<f32>, Scratch)> = ScratchPool::new();

/// Input of a mask.
#[derive(Debug, Clone, Copy)]
pub struct MaskInput<'a> {
    /// The keys of distinct records, [U, m].
    pub keys: &'a [f32],
    /// m.
    pub key_columns: usize,
    /// Index of the record at each position, [B·K].
    pub slots: &'a [u32],
    /// K.
    pub positions: usize,
}

/// Activations of a forward pass, kept for the backward pass.
#[derive(Debug)]
pub struct MaskTape {
    hidden: Buffer,
}

/// The mask [B, K], and its tape.
///
/// # Panics
/// If sizes do not fit.
pub fn mask(weights: &PerceptronWeights<'_>, input: MaskInput<'_>) -> (Vec<f32>, MaskTape) {
    let MaskInput { keys, key_columns, slots, positions } = input;
    weights.check(positions * key_columns, positions);
    let sequences = slots.len() / positions;
    let mut values = vec![0.0f32; slots.len()];
    let mut hidden = Buffer::any(sequences * weights.wide());
    let parts = values
        .par_chunks_mut(SEQUENCES * positions)
        .zip(hidden.par_chunks_mut(SEQUENCES * weights.wide()))
        .zip(slots.par_chunks(SEQUENCES * positions));
    parts.for_each_init(
        || POOL.borrow(),
        |borrowed, ((out, hidden), slots)| {
            let (x, scratch) = &mut **borrowed;
            let x = sized(x, slots.len() * key_columns);
            gather(keys, slots, key_columns, x);
            weights.forward(x, hidden, out, Into::Row(weights.output_bias), scratch);
        },
    );
    (values, MaskTape { hidden })
}

/// Computes the gradient of the mask's parameters from the gradient of the mask, [B, K].
///
/// # Panics
/// If the tape is not that of the same mask.
pub fn mask_back(
    weights: &PerceptronWeights<'_>,
    input: MaskInput<'_>,
    tape: &MaskTape,
    gradient: &[f32],
) -> PerceptronGradient {
    let MaskInput { keys, key_columns, slots, positions } = input;
    let transposed = TransposedPerceptron::new(weights);
    let parts: Vec<PerceptronGradient> = gradient
        .par_chunks(SEQUENCES * positions)
        .zip(tape.hidden.par_chunks(SEQUENCES * weights.wide()))
        .zip(slots.par_chunks(SEQUENCES * positions))
        .map_init(
            || POOL.borrow(),
            |borrowed, ((above, hidden), slots)| {
                let (x, scratch) = &mut **borrowed;
                let x = sized(x, slots.len() * key_columns);
                gather(keys, slots, key_columns, x);
                let mut found = PerceptronGradient::zeros(weights);
                transposed.backward(Saved { x, hidden }, above, &mut found, None, scratch);
                found
            },
        )
        .collect();
    let mut total = PerceptronGradient::zeros(weights);
    total.add_all(&parts.iter().collect::<Vec<_>>());
    total
}
