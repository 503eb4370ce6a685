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
use crate::search::{Index, Measure};
use crate::top::Top;

/// The number of tables, and of bits that each samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// L.
    pub tables: usize,
    /// θ.
    pub sampled: usize,
}

/// What hashing a row for a table, looking at a row that is met, and comparing with one cost, in pairs of a sequential search over
/// 1,024 bits (4.7 ns), as `examples/speed.rs` measures them.
const HASHED: f64 = 50.0;
const LOOKED: f64 = 1.0;
const COMPARED: f64 = 4.5;
/// A query that is expected to meet no more than so many times K records may well meet fewer than K.
const AMPLE: f64 = 4.0;
/// Bytes that a record takes in a table.
const ENTRY: f64 = 24.0;

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

    /// Whether this is expected to take less time than comparing all pairs for the `take` best, and not much more memory than the
    /// vectors.
    pub fn pays(self, queries: &BitTable, records: &BitTable, take: usize) -> bool {
        let memory = self.tables as f64 * records.rows() as f64 * ENTRY;
        self.cost(queries, records, take) < 1.0 && memory < 4.0 * 8.0 * records.words().len() as f64
    }

    /// How many times as long this is expected to take as comparing all pairs, by the bits that the vectors have.
    ///
    /// A pair of other records agrees in a bit with probability p² + (1 - p)², where p is the share of bits set.
    pub fn cost(self, queries: &BitTable, records: &BitTable, take: usize) -> f64 {
        let rows = (queries.rows() + records.rows()) as f64;
        let ones = |table: &BitTable| (0..table.rows()).map(|row| f64::from(table.ones(row))).sum::<f64>();
        let share = (ones(queries) + ones(records)) / (rows * records.bits() as f64).max(1.0);
        let agree = (share * share + (1.0 - share) * (1.0 - share)).powi(self.sampled as i32);
        let (pairs, tables) = (queries.rows() as f64 * records.rows() as f64, self.tables as f64);
        let met = (1.0 - (1.0 - agree).powf(tables)) * pairs;
        let width = records.width() as f64 / 16.0;
        let blocked = tables * rows * HASHED + tables * agree * pairs * LOOKED + met * COMPARED * width;
        let all = (pairs * width).max(1.0);
        // Who meets too few is compared with all.
        let few = met < AMPLE * take as f64 * queries.rows() as f64;
        blocked / all + if few { 1.0 } else { 0.0 }
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
                        return (Vec::new(), records.rows() as u64);
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
        let mut all = Neighbours { take, indices: Vec::new(), scores: Vec::new() };
        let lonely: Vec<usize> = (0..queries.rows()).filter(|&query| found[query].0.len() < take).collect();
        let words = lonely.iter().flat_map(|&query| queries.row(query)).copied().collect();
        // Those together, by the search that is quick for all pairs.
        let rest = (!lonely.is_empty())
            .then(|| Index::new(records).search(&BitTable::from_words(bits, words), take, measure, done));
        let mut next = 0;
        for (best, _) in &found {
            if let (true, Some(rest)) = (best.len() < take, &rest) {
                all.indices.extend(rest.row(next));
                all.scores.extend(rest.scores(next));
                next += 1;
            } else {
                all.indices.extend(best.iter().map(|&(_, record)| record));
                all.scores.extend(best.iter().map(|&(score, _)| score));
            }
        }
        (all, compared)
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

    /// Vectors of which a share of the bits are set.
    fn table(rows: usize, seed: u64) -> BitTable {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        BitTable::from_words(1_024, (0..rows * 16).map(|_| rng.next_u64() & rng.next_u64()).collect())
    }

    #[test]
    fn blocking_is_said_to_pay_only_where_a_query_meets_enough_and_not_all() {
        let (queries, records) = (table(2_000, 1), table(2_000, 2));
        let cost = |tables, sampled, take| Blocking { tables, sampled }.cost(&queries, &records, take);
        // Of 2,000 records a query meets 2,000 · 0.625^8 = 47 in one table.
        assert!(cost(1, 8, 5) < 1.0);
        assert!(cost(1, 8, 20) > 1.0, "47 are not ample for 20");
        assert!(cost(50, 24, 5) > 1.0, "50 tables at 0.625^24 meet one or two");
        assert!(cost(50, 8, 5) > 1.0, "50 tables at 0.625^8 meet most");
        assert!(!Blocking { tables: 100_000, sampled: 8 }.pays(&queries, &records, 5), "memory");
    }

    #[test]
    fn who_meets_too_few_is_compared_with_all() {
        let (queries, records) = (table(300, 1), table(300, 2));
        let (found, compared) = Blocking { tables: 1, sampled: 60 }.search(
            &queries,
            &records,
            7,
            Measure::Correlation(1_024),
            3,
            &|_| (),
        );
        let all = Index::new(&records).search(&queries, 7, Measure::Correlation(1_024), &|_| ());
        assert_eq!((found.indices, found.scores), (all.indices, all.scores));
        assert_eq!(compared, 300 * 300);
    }
}
