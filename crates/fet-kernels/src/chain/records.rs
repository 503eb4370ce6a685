//! First block's computations per distinct record: forward, distribution to positions, and backward.

use rayon::prelude::*;

use crate::block::{self, TransposedBlock};
use crate::buffer::Buffer;
use crate::parameters::{AttentionGradient, AttentionWeights};
use crate::rows::{NormScratch, add};
use crate::shape::Shape;

/// Number of parts of a sum over sequences; it does not depend on the number of threads.
pub(super) const PARTS: usize = 8;

/// Number of distinct records per projection step.
const RECORDS_AT_A_TIME: usize = 256;

/// Input of a chain.
#[derive(Debug, Clone, Copy)]
pub struct ChainInput<'a> {
    /// Distinct records, [U, H].
    pub records: &'a [f32],
    /// Index of the record at each position, [B·K].
    pub slots: &'a [u32],
    /// Added to the logits of each position, [B, K].
    pub mask: Option<&'a [f32]>,
}

/// Gathers the rows of a table at these indices.
pub(crate) fn gather(table: &[f32], slots: &[u32], width: usize, out: &mut [f32]) {
    for (row, &slot) in out.chunks_exact_mut(width).zip(slots) {
        row.copy_from_slice(&table[slot as usize * width..(slot as usize + 1) * width]);
    }
}

/// The first block's queries, keys and values of a sequence, [K, 3H].
pub(super) fn gather_projected<'a>(
    shape: &Shape,
    projected: &[f32],
    slots: &[u32],
    gathered: &'a mut Vec<f32>,
) -> &'a [f32] {
    let width = 3 * shape.width;
    gathered.resize(slots.len() * width, 0.0);
    gather(projected, slots, width, gathered);
    gathered
}

/// First block's queries, keys and values of each distinct record, [U, 3H].
pub(super) fn project_records(shape: &Shape, weights: &AttentionWeights<'_>, records: &[f32]) -> Buffer {
    let width = shape.width;
    let mut projected = Buffer::any(3 * records.len());
    records
        .par_chunks(RECORDS_AT_A_TIME * width)
        .zip(projected.par_chunks_mut(3 * RECORDS_AT_A_TIME * width))
        .for_each_init(Vec::new, |normed, (rows, out)| block::project(weights, rows, normed, out));
    projected
}

/// Sums the gradients at the positions into gradients of the records, directly and through the first projection.
pub(super) fn records_back(
    first: &TransposedBlock<'_>,
    input: &ChainInput<'_>,
    direct: &[f32],
    projected: &[f32],
    total: &mut AttentionGradient,
) -> Buffer {
    let width = first.shape().width;
    let count = input.records.len() / width;
    let places = Places::new(input.slots, count);
    let mut gradient = Buffer::any(count * width);
    let part_size = count.div_ceil(PARTS);
    let parts: Vec<AttentionGradient> = gradient
        .par_chunks_mut(part_size * width)
        .zip(input.records.par_chunks(part_size * width))
        .enumerate()
        .map(|(index, (gradient, records))| {
            let mut above = Buffer::any(3 * gradient.len());
            let rows = gradient.chunks_exact_mut(width).zip(above.chunks_exact_mut(3 * width));
            for (within, (gradient, above)) in rows.enumerate() {
                let direct = |place: u32| &direct[place as usize * width..(place as usize + 1) * width];
                let projected =
                    |place: u32| &projected[3 * place as usize * width..3 * (place as usize + 1) * width];
                let [one, others @ ..] = places.of_record(index * part_size + within) else {
                    gradient.fill(0.0);
                    above.fill(0.0);
                    continue;
                };
                gradient.copy_from_slice(direct(*one));
                above.copy_from_slice(projected(*one));
                for &place in others {
                    add(gradient, direct(place));
                    add(above, projected(place));
                }
            }
            let mut parameters = AttentionGradient::zeros(width);
            let (mut normed, mut below) = (vec![0.0; records.len()], vec![0.0; records.len()]);
            let norm_scratch = NormScratch { normed: &mut normed, gradient: &mut below };
            first.project_back(records, &above, gradient, &mut parameters, norm_scratch);
            parameters
        })
        .collect();
    parts.iter().for_each(|part| total.add(part));
    gradient
}

/// Positions of each record, ascending.
struct Places {
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl Places {
    fn new(slots: &[u32], records: usize) -> Self {
        let mut starts = vec![0u32; records + 1];
        for &slot in slots {
            starts[slot as usize + 1] += 1;
        }
        for record in 0..records {
            starts[record + 1] += starts[record];
        }
        let mut next = starts.clone();
        let mut places = vec![0u32; slots.len()];
        for (place, &slot) in slots.iter().enumerate() {
            places[next[slot as usize] as usize] = place as u32;
            next[slot as usize] += 1;
        }
        Self { starts, places }
    }

    fn of_record(&self, record: usize) -> &[u32] {
        &self.places[self.starts[record] as usize..self.starts[record + 1] as usize]
    }
}
