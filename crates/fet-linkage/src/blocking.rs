//! Blocking of bit vectors by locality-sensitive hashing: only pairs that agree in some sample of bits are compared.
//!
//! Each of L tables groups records by θ bits that are drawn at random. Two vectors that differ in a share d of their bits
//! meet in one table with probability (1 - d)^θ, in any with 1 - (1 - (1 - d)^θ)^L: the recall of a pair, which
//! [`Blocking::recall`] states. A query that meets fewer than K records is compared with all of them.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::bits::{BitTable, get};
use crate::neighbours::Neighbours;
use crate::search::Measure;
use crate::top::Top;

/// The number of tables, and of bits that each samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// L.
    pub tables: usize,
    /// θ.
    pub sampled: usize,
}

impl Blocking {
    /// The probability that two vectors are compared that differ in the share `differing` of their bits.
    pub fn recall(self, differing: f64) -> f64 {
        let one = (1.0 - differing).powi(self.sampled as i32);
        1.0 - (1.0 - one).powi(self.tables as i32)
    }

    /// The fewest tables that compare such vectors with probability `recall`.
    pub fn tables_for(sampled: usize, differing: f64, recall: f64) -> usize {
        let one = (1.0 - differing).powi(sampled as i32);
        if one >= 1.0 { 1 } else { ((1.0 - recall).ln() / (1.0 - one).ln()).ceil().max(1.0) as usize }
    }

    /// The `take` records most like each query among those it meets. Also tells how many pairs were compared.
    ///
    /// # Panics
    /// If there are fewer than `take` records.
    pub fn search(
        self,
        queries: &BitTable,
        records: &BitTable,
        take: usize,
        measure: Measure,
        seed: u64,
        done: &(dyn Fn(usize) + Sync),
    ) -> (Neighbours, u64) {
        assert!(take <= records.rows(), "{take} of {} records", records.rows());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let bits = records.bits();
        let samples: Vec<Vec<usize>> = (0..self.tables)
            .map(|_| index::sample(&mut rng, bits, self.sampled.min(bits)).into_vec())
            .collect();
        let hash = |row: &[u64], sample: &[usize]| {
            sample.chunks(64).fold(0u64, |hash, part| {
                let bits = part.iter().fold(0u64, |bits, &at| bits << 1 | u64::from(get(row, at)));
                crate::mix(hash ^ bits)
            })
        };
        let tables: Vec<HashMap<u64, Vec<u32>>> = samples
            .par_iter()
            .map(|sample| {
                let mut table: HashMap<u64, Vec<u32>> = HashMap::new();
                for row in 0..records.rows() {
                    table.entry(hash(records.row(row), sample)).or_default().push(row as u32);
                }
                table
            })
            .collect();
        let ones: Vec<u32> = (0..records.rows()).map(|row| records.ones(row)).collect();
        let found: Vec<(Vec<(f32, u32)>, u64)> = (0..queries.rows())
            .into_par_iter()
            .map_init(
                || (vec![u32::MAX; records.rows()], Vec::new()),
                |(seen, met): &mut (Vec<u32>, Vec<u32>), query| {
                    let row = queries.row(query);
                    met.clear();
                    for (table, sample) in tables.iter().zip(&samples) {
                        for &record in table.get(&hash(row, sample)).map_or(&[][..], Vec::as_slice) {
                            if std::mem::replace(&mut seen[record as usize], query as u32) != query as u32 {
                                met.push(record);
                            }
                        }
                    }
                    if met.len() < take {
                        met.clear();
                        met.extend(0..records.rows() as u32);
                    }
                    let own: u32 = queries.ones(query);
                    let mut top = Top::new(take);
                    for &record in met.iter() {
                        let other = records.row(record as usize);
                        let common = row.iter().zip(other).map(|(a, b)| (a & b).count_ones()).sum();
                        top.offer(measure.score(common, own, ones[record as usize]), record);
                    }
                    let mut best = Vec::with_capacity(take);
                    top.drain_sorted(|score, record| best.push((score, record)));
                    done(1);
                    (best, met.len() as u64)
                },
            )
            .collect();
        let compared = found.iter().map(|(_, compared)| compared).sum();
        let all = || found.iter().flat_map(|(best, _)| best);
        let indices = all().map(|&(_, record)| record).collect();
        (Neighbours { take, indices, scores: all().map(|&(score, _)| score).collect() }, compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngExt};

    #[test]
    fn pairs_meet_as_often_as_stated() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (rows, bits, flips) = (4_000, 512, 51);
        let queries = BitTable::from_words(bits, (0..rows * bits / 64).map(|_| rng.next_u64()).collect());
        let mut records = queries.clone();
        for row in 0..rows {
            for at in index::sample(&mut rng, bits, flips) {
                records.row_mut(row)[at / 64] ^= 1 << (at % 64);
            }
        }
        let blocking = Blocking { tables: 12, sampled: 20 };
        let (found, compared) =
            blocking.search(&queries, &records, 1, Measure::Hamming, rng.random(), &|_| ());
        let met = (0..rows).filter(|&row| found.row(row)[0] == row as u32).count();
        // A query that meets nobody is compared with everyone, and finds its own then too: those are left out.
        let stated = blocking.recall(flips as f64 / bits as f64);
        assert!((0.79..0.81).contains(&stated), "{stated}");
        assert!(met as f64 >= stated * rows as f64, "{met}");
        let lonely = rows as f64 * (1.0 - stated);
        // Chance meetings are rare (2^-20 a pair and table): what was compared is the own pair, or all.
        // α = 1e-6: five standard deviations of the number of the lonely.
        let spread = 5.0 * (lonely * stated).sqrt();
        let expected = lonely * rows as f64;
        assert!((compared as f64 - expected).abs() < spread * rows as f64 + 2.0 * rows as f64, "{compared}");
        assert_eq!(Blocking::tables_for(20, 0.1, 0.8), 13);
    }
}
