//! A chain of blocks over all sequences of a batch, in parallel.
//!
//! The first block computes LN₁, queries, keys and values once for each distinct record of the batch, even if the record
//! belongs to several sequences.

mod records;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

pub use self::records::ChainInput;
pub(crate) use self::records::gather;
use self::records::{PARTS, gather_projected, project_records, records_back};
use crate::attention;
use crate::block::{
    self, Block, BlockGradient, BlockWeights, Gradients, Masks, Scratch, Trace, TransposedBlock,
    masks_of_a_chain,
};
use crate::buffer::Buffer;
use crate::dropout::Dropout;
use crate::scratch::ScratchPool;
use crate::shape::Shape;

static POOL: ScratchPool<Scratch> = ScratchPool::new();

/// Activations of a forward pass, kept for the backward pass.
#[derive(Debug)]
pub struct Tape {
    dropout: Option<Dropout>,
    /// Queries, keys and values of each distinct record in the first block, [U, 3H].
    projected: Buffer,
    blocks: Vec<BlockTape>,
}

#[derive(Debug)]
struct BlockTape {
    input: Buffer,
    projected: Buffer,
    weights: Buffer,
    context: Buffer,
    middle: Buffer,
    hidden: Buffer,
}

/// The gradients of a chain.
#[derive(Debug)]
pub struct ChainGradient {
    /// Gradient of the distinct records, [U, H].
    pub records: Buffer,
    /// Gradient of the mask, [B, K], if there is one.
    pub mask: Option<Vec<f32>>,
    /// Gradients of each block's parameters.
    pub blocks: Vec<BlockGradient>,
}

impl BlockTape {
    fn new(shape: &Shape, sequences: usize, first: bool) -> Self {
        let tokens = sequences * shape.positions;
        let own = |length: usize| Buffer::any(if first { 0 } else { length });
        Self {
            input: own(tokens * shape.width),
            projected: own(3 * tokens * shape.width),
            weights: Buffer::any(sequences * shape.weights()),
            context: Buffer::any(tokens * shape.width),
            middle: Buffer::any(tokens * shape.width),
            hidden: Buffer::any(2 * tokens * shape.width),
        }
    }

    fn split_mut(&mut self) -> [&mut [f32]; 6] {
        [
            &mut self.input,
            &mut self.projected,
            &mut self.weights,
            &mut self.context,
            &mut self.middle,
            &mut self.hidden,
        ]
    }
}

/// The chain's result.
#[derive(Debug)]
pub struct Forward {
    /// [B, K, H].
    pub values: Vec<f32>,
    /// Input of [`backward`], if the caller requested it.
    pub tape: Option<Tape>,
    /// The stream of random numbers after the masks.
    pub rng: Option<ChaCha8Rng>,
}

/// Applies a chain.
///
/// # Panics
/// If sizes do not fit.
pub fn forward(
    shape: &Shape,
    blocks: &[BlockWeights<'_>],
    input: ChainInput<'_>,
    dropout: Option<Dropout>,
    taped: bool,
) -> Forward {
    check(shape, blocks, &input);
    let sequences = input.slots.len() / shape.positions;
    let length = shape.positions * shape.width;
    let projected = project_records(shape, &blocks[0].attention, input.records);
    let pass =
        ChainPass { shape, blocks, input, projected: &projected, sequences, dropout: dropout.as_ref() };
    let mut values = Buffer::any(sequences * length);
    let mut tapes = Vec::new();
    if taped {
        tapes = (0..blocks.len()).map(|index| BlockTape::new(shape, sequences, index == 0)).collect();
        values.par_chunks_mut(length).zip(traces(&mut tapes, sequences)).enumerate().for_each_init(
            || POOL.borrow(),
            |scratch, (sequence, (x, mut traces))| {
                pass.load_records(sequence, x);
                for (index, trace) in traces.iter_mut().enumerate() {
                    pass.step(sequence, index, x, trace, scratch);
                }
            },
        );
    } else {
        let init = || (POOL.borrow(), [BlockTape::new(shape, 1, false)]);
        values.par_chunks_mut(length).enumerate().for_each_init(init, |(scratch, tape), (sequence, x)| {
            pass.load_records(sequence, x);
            for index in 0..blocks.len() {
                let mut trace = traces(tape, 1).pop().and_then(|mut one| one.pop()).expect("one sequence");
                pass.step(sequence, index, x, &mut trace, scratch);
            }
        });
    }
    let rng =
        dropout.as_ref().map(|dropout| dropout.after(&masks_of_a_chain(shape, sequences, blocks.len())));
    Forward {
        values: values.into_vec(),
        tape: taped.then_some(Tape { dropout, projected, blocks: tapes }),
        rng,
    }
}

/// Backward pass from the gradient [B, K, H] of a chain's result.
///
/// # Panics
/// If the tape is not that of the same chain and input.
pub fn backward(
    shape: &Shape,
    blocks: &[BlockWeights<'_>],
    input: ChainInput<'_>,
    mut tape: Tape,
    gradient: Vec<f32>,
) -> ChainGradient {
    let mut gradient = Buffer::from(gradient);
    check(shape, blocks, &input);
    let sequences = input.slots.len() / shape.positions;
    let length = shape.positions * shape.width;
    assert_eq!(gradient.len(), sequences * length, "the gradient of the chain's result");
    assert_eq!(tape.blocks.len(), blocks.len(), "the tape of this chain");
    let dropout = tape.dropout.clone();
    let mut mask_gradient = vec![0.0f32; sequences * shape.positions];
    let mut projected_gradient = Buffer::any(3 * sequences * length);
    let part_size = sequences.div_ceil(PARTS);
    let transposed: Vec<TransposedBlock<'_>> =
        blocks.iter().map(|weights| TransposedBlock::new(Block { shape, weights })).collect();
    let mut each = traces(&mut tape.blocks, sequences);
    let parts: Vec<Vec<BlockGradient>> = gradient
        .par_chunks_mut(part_size * length)
        .zip(projected_gradient.par_chunks_mut(3 * part_size * length))
        .zip(mask_gradient.par_chunks_mut(part_size * shape.positions))
        .zip(each.par_chunks_mut(part_size))
        .enumerate()
        .map(|(index, (((x, projected), mask), traces))| {
            let mut total = zeros(shape, blocks);
            let mut scratch = POOL.borrow();
            let mut gathered = scratch.take_gathered();
            let rows = x.chunks_exact_mut(length).zip(projected.chunks_exact_mut(3 * length));
            let rows = rows.zip(mask.chunks_exact_mut(shape.positions)).zip(traces);
            for (within, (((x, projected), mask), traces)) in rows.enumerate() {
                let sequence = index * part_size + within;
                for (block, transposed) in transposed.iter().enumerate().rev() {
                    let (trace, gradient) = (&traces[block], &mut total[block]);
                    let masks = dropout.as_ref();
                    let masks = masks.map(|dropout| Masks { dropout, block, sequence, sequences });
                    // The other blocks use the memory of the first block's gradient.
                    let gradients = Gradients {
                        x: &mut *x,
                        projected: &mut *projected,
                        mask: &mut *mask,
                        parameters: &mut *gradient,
                    };
                    let passed = if block == 0 {
                        let place = sequence * shape.positions..(sequence + 1) * shape.positions;
                        gather_projected(shape, &tape.projected, &input.slots[place], &mut gathered)
                    } else {
                        &*trace.projected
                    };
                    transposed.backward(masks, trace, passed, gradients, &mut scratch);
                    if block > 0 {
                        let gradient = &mut gradient.attention;
                        transposed.input_back(trace.input, projected, x, gradient, &mut scratch);
                    }
                }
            }
            scratch.return_gathered(gathered);
            total
        })
        .collect();
    drop(each);
    let mut total = zeros(shape, blocks);
    total.par_iter_mut().enumerate().for_each(|(block, sum)| {
        parts.iter().for_each(|part| sum.add(&part[block]));
    });
    let sum = &mut total[0].attention;
    let records = records_back(&transposed[0], &input, &gradient, &projected_gradient, sum);
    ChainGradient { records, mask: input.mask.map(|_| mask_gradient), blocks: total }
}

fn check(shape: &Shape, blocks: &[BlockWeights<'_>], input: &ChainInput<'_>) {
    assert!(shape.width > 0 && shape.width.is_multiple_of(shape.heads), "{shape:?}");
    assert!(!blocks.is_empty(), "a chain of no blocks");
    blocks.iter().for_each(|block| block.check(shape.width));
    assert!(!input.slots.is_empty() && input.slots.len().is_multiple_of(shape.positions), "whole sequences");
    assert!(input.records.len().is_multiple_of(shape.width), "whole records");
    let records = input.records.len() / shape.width;
    assert!(input.slots.iter().all(|&slot| (slot as usize) < records), "slots name records");
    assert!(input.mask.is_none_or(|mask| mask.len() == input.slots.len()), "a mask for each position");
}

fn zeros(shape: &Shape, blocks: &[BlockWeights<'_>]) -> Vec<BlockGradient> {
    blocks.iter().map(|_| BlockGradient::zeros(shape.width)).collect()
}

/// For each sequence, its trace in each block.
fn traces(tapes: &mut [BlockTape], sequences: usize) -> Vec<Vec<Trace<'_>>> {
    let mut each: Vec<Vec<Trace<'_>>> = (0..sequences).map(|_| Vec::with_capacity(tapes.len())).collect();
    for tape in tapes {
        let mut rest = tape.split_mut().map(|all| {
            let length = all.len() / sequences;
            (all, length)
        });
        for traces in &mut each {
            let [input, projected, weights, context, middle, hidden] =
                rest.each_mut().map(|(rest, length)| {
                    let (part, after) = std::mem::take(rest).split_at_mut(*length);
                    *rest = after;
                    part
                });
            traces.push(Trace { input, projected, weights, context, middle, hidden });
        }
    }
    each
}

/// State that the passes of all sequences share.
struct ChainPass<'a> {
    shape: &'a Shape,
    blocks: &'a [BlockWeights<'a>],
    input: ChainInput<'a>,
    projected: &'a [f32],
    sequences: usize,
    dropout: Option<&'a Dropout>,
}

impl ChainPass<'_> {
    fn slots(&self, sequence: usize) -> &[u32] {
        &self.input.slots[sequence * self.shape.positions..(sequence + 1) * self.shape.positions]
    }

    /// The sequence's records, [K, H].
    fn load_records(&self, sequence: usize, x: &mut [f32]) {
        gather(self.input.records, self.slots(sequence), self.shape.width, x);
    }

    /// Applies block `index` to `x`.
    fn step(
        &self,
        sequence: usize,
        index: usize,
        x: &mut [f32],
        trace: &mut Trace<'_>,
        scratch: &mut Scratch,
    ) {
        let (shape, weights) = (self.shape, &self.blocks[index]);
        let mut gathered = Vec::new();
        let projected = if index == 0 {
            gathered = scratch.take_gathered();
            gather_projected(shape, self.projected, self.slots(sequence), &mut gathered)
        } else {
            trace.input.copy_from_slice(x);
            block::project(&weights.attention, x, scratch.normed(), trace.projected);
            &*trace.projected
        };
        let positions = sequence * shape.positions..(sequence + 1) * shape.positions;
        let mask = self.input.mask.map(|mask| &mask[positions]);
        let sequences = self.sequences;
        let masks = self.dropout.map(|dropout| Masks { dropout, block: index, sequence, sequences });
        let saved = block::Saved {
            weights: &mut *trace.weights,
            context: &mut *trace.context,
            middle: &mut *trace.middle,
            hidden: &mut *trace.hidden,
        };
        let input = attention::Input { projected, mask };
        Block { shape, weights }.forward(x, input, masks, saved, scratch);
        scratch.return_gathered(gathered);
    }
}
