//! Comparison of plain texts, the unprotected baseline.
//!
//! The similarity of two records is the weighted mean Jaro-Winkler similarity of their normalised fields. A
//! field that is empty on either side counts as half a match, since it neither supports nor contradicts a
//! match. An entirely empty record has similarity 0 with every record. The search compares distinct values
//! once, however many records have them.

use std::collections::HashMap;

use rapidfuzz::distance::jaro_winkler;
use rayon::prelude::*;

use crate::neighbours::Neighbours;
use crate::text::normalise;
use crate::top::Top;

/// Distinct values of a column, and the value of each row. `u32::MAX` marks an empty cell.
struct Column {
    values: Vec<Vec<char>>,
    of: Vec<u32>,
}

impl Column {
    fn new<T: AsRef<str>>(cells: &[T], fields: usize, field: usize) -> Self {
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut values = Vec::new();
        let of = cells.iter().skip(field).step_by(fields).map(|cell| {
            let normal = normalise(cell.as_ref());
            if normal.is_empty() {
                return u32::MAX;
            }
            *known.entry(normal).or_insert_with_key(|normal| {
                values.push(normal.chars().collect());
                values.len() as u32 - 1
            })
        });
        let of = of.collect();
        Self { values, of }
    }
}

/// Similarity of two fields if one of them is empty.
const UNKNOWN: f32 = 0.5;

/// Returns the `take` most similar records of each query record. Cells are given row by row, one for each
/// weight.
///
/// # Panics
/// If there are fewer than `take` records.
pub fn search<T: AsRef<str> + Sync>(
    queries: &[T],
    records: &[T],
    weights: &[f64],
    take: usize,
    done: &(dyn Fn(usize) + Sync),
) -> Neighbours {
    let fields = weights.len();
    let rows = records.len() / fields;
    assert!(take <= rows, "{take} of {rows} records");
    let columns: Vec<(Column, Column)> = (0..fields)
        .map(|field| (Column::new(queries, fields, field), Column::new(records, fields, field)))
        .collect();
    let total: f64 = weights.iter().sum();
    let weights: Vec<f32> = weights.iter().map(|weight| (weight / total) as f32).collect();
    let found: Vec<Vec<(f32, u32)>> = (0..queries.len() / fields)
        .into_par_iter()
        .map_init(
            || (vec![0.0f32; rows], Vec::new()),
            |(scores, cache): &mut (Vec<f32>, Vec<f32>), query| {
                scores.fill(0.0);
                let mut known = false;
                for ((queries, records), weight) in columns.iter().zip(&weights) {
                    let value = queries.of[query];
                    if value == u32::MAX {
                        scores.iter_mut().for_each(|score| *score += weight * UNKNOWN);
                        continue;
                    }
                    known = true;
                    let batch =
                        jaro_winkler::BatchComparator::new(queries.values[value as usize].iter().copied());
                    cache.clear();
                    cache.extend(
                        records.values.iter().map(|other| batch.similarity(other.iter().copied()) as f32),
                    );
                    for (score, &other) in scores.iter_mut().zip(&records.of) {
                        *score += weight * if other == u32::MAX { UNKNOWN } else { cache[other as usize] };
                    }
                }
                let mut top = Top::new(take);
                for (record, &score) in scores.iter().enumerate() {
                    let empty = !known || columns.iter().all(|(_, records)| records.of[record] == u32::MAX);
                    top.offer(if empty { 0.0 } else { score }, record as u32);
                }
                done(1);
                top.into_sorted()
            },
        )
        .collect();
    Neighbours::from_rows(take, found)
}
