//! Blocking of bit vectors by locality-sensitive hashing: compares only pairs that agree in a sample of bits.
//!
//! Each of L tables groups records by θ bits that are drawn at random. Two vectors that differ in a share d
//! of their bits meet in one table with probability `(1 - d)^θ`, and in any table with probability
//! `1 - (1 - (1 - d)^θ)^L`. This is the recall of a pair, which [`Blocking::recall`] returns. The search
//! continues with samples of fewer bits for queries that meet fewer than K records.

use rand::SeedableRng;
use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::bits::{BitTable, get};
use crate::neighbours::Neighbours;
use crate::search::{Index, Kernel, Measure};
use crate::top::Top;

/// Number of tables, and number of bits that each table samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    /// Number of tables, L.
    pub tables: usize,
    /// Number of sampled bits, θ.
    pub sampled: usize,
}

/// The two tables that are compared.
#[derive(Debug, Clone, Copy)]
pub struct FilterTables<'a> {
    /// Filters of the rows that are linked.
    pub queries: &'a BitTable,
    /// Filters of the records that may match them.
    pub records: &'a BitTable,
}

/// Cost of a row in a table (hashing, sorting and looking up), and cost of a pair that meets. The unit is one
/// pair of a full search over 1,024 bits (1.5 ns under AVX-512), as measured by `examples/speed.rs`. A pair
/// that meets costs a memory access, whatever its length.
const HASHED: f64 = 70.0;
const COMPARED: f64 = 40.0;
/// Multiple of K. A query that is expected to meet fewer records than this may meet fewer than K.
const AMPLE: f64 = 2.0;
/// Maximum number of compared words for a search without blocking: two threads take 45 s for this many.
const SOON: f64 = 1e12;
/// Number of rows of each table that are sampled to estimate how often non-matches meet.
const LOOKED_AT: usize = 500;
/// Maximum number of extra tables in each round for queries with too few candidates; fewest and most bits
/// that a table samples.
const AGAIN: usize = 4;
const FEWEST_SAMPLED: usize = 8;
const MOST_SAMPLED: usize = 96;

impl Blocking {
    /// Returns the probability that two vectors are compared if they differ in the share `differing` of their
    /// bits.
    pub fn recall(self, differing: f64) -> f64 {
        let one = (1.0 - differing).powi(self.sampled as i32);
        1.0 - (1.0 - one).powi(self.tables as i32)
    }

    /// Returns the smallest number of tables that compare such vectors with probability `recall`.
    pub fn tables_for(sampled: usize, differing: f64, recall: f64) -> usize {
        let one = (1.0 - differing).powi(sampled as i32);
        if one >= 1.0 { 1 } else { ((1.0 - recall).ln() / (1.0 - one).ln()).ceil().max(1.0) as usize }
    }

    /// Returns the blocking with the lowest expected cost among those with probability `recall` for vectors
    /// of Dice similarity `similarity`. Returns `None` if comparing all pairs is fast enough or not much
    /// slower.
    pub fn choose(tables: FilterTables<'_>, take: usize, similarity: f64, recall: f64) -> Option<Self> {
        let FilterTables { queries, records } = tables;
        if queries.rows() as f64 * records.words().len() as f64 <= SOON {
            return None;
        }
        let non_matches = NonMatches::sample(tables);
        let differing = Self::differing(queries, similarity);
        let of = |sampled| {
            let blocking = Self { tables: Self::tables_for(sampled, differing, recall), sampled };
            (blocking, non_matches.cost(blocking, take))
        };
        let all = (FEWEST_SAMPLED..=MOST_SAMPLED).step_by(2).map(of);
        let (best, cost) = all.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (cost < 0.5).then_some(best)
    }

    /// Returns the share of differing bits of two vectors of this Dice similarity. Two vectors with a set bits
    /// each have s·a bits in common at similarity s.
    pub fn differing(queries: &BitTable, similarity: f64) -> f64 {
        let ones: f64 = (0..queries.rows()).into_par_iter().map(|row| f64::from(queries.ones(row))).sum();
        let share = ones / (queries.rows().max(1) * queries.bits()) as f64;
        (2.0 * share * (1.0 - similarity)).min(1.0)
    }

    /// Returns the expected duration as a multiple of comparing all pairs for the `take` best. The estimate
    /// uses the similarities in a sample of both tables.
    pub fn cost(self, tables: FilterTables<'_>, take: usize) -> f64 {
        NonMatches::sample(tables).cost(self, take)
    }

    /// Returns the next round, for queries that meet too few records.
    fn again(self) -> Self {
        Self { tables: self.tables.min(AGAIN), sampled: self.sampled * 2 / 3 }
    }

    /// Returns the `take` most similar records of each query among the records that it meets, and the number
    /// of pairs compared.
    ///
    /// Only one table is in memory at a time. Queries that meet too few records continue with tables of fewer
    /// bits. The search compares the queries that remain at the end with all records.
    ///
    /// # Panics
    /// If there are fewer than `take` records.
    pub fn search(
        self,
        tables: FilterTables<'_>,
        take: usize,
        measure: Measure,
        seed: u64,
        done: &(dyn Fn(usize) + Sync),
    ) -> (Neighbours, u64) {
        let FilterTables { queries, records } = tables;
        assert!(take <= records.rows(), "{take} of {} records", records.rows());
        let ones = |table: &BitTable| (0..table.rows()).into_par_iter().map(|row| table.ones(row)).collect();
        let mut join = Join { queries, records, ones: [ones(queries), ones(records)], measure };
        let mut tops = vec![Top::new(take); queries.rows()];
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut compared, mut reported, mut level) = (0, 0, self);
        let sparse = |tops: &[Top]| tops.iter().filter(|top| !top.is_full()).count();
        loop {
            // After the first level, only queries with too few candidates continue.
            let active: Vec<bool> = tops.iter().map(|top| !top.is_full() || level == self).collect();
            for table in 0..level.tables {
                compared += join.table(level.sampled, &active, &mut tops, &mut rng);
                let share = if level == self { (table + 1) as f64 / level.tables as f64 } else { 1.0 };
                let now = ((tops.len() as f64 * share) as usize).min(tops.len() - sparse(&tops));
                done(now.saturating_sub(reported));
                reported = reported.max(now);
            }
            level = level.again();
            if level.sampled < FEWEST_SAMPLED || sparse(&tops) == 0 {
                break;
            }
        }
        let left: Vec<usize> = (0..tops.len()).filter(|&query| !tops[query].is_full()).collect();
        compared += (left.len() * records.rows()) as u64;
        let words = left.iter().flat_map(|&query| queries.row(query)).copied().collect();
        // The full search handles the remaining queries together, since it is fast for all pairs.
        let rest = (!left.is_empty()).then(|| {
            Index::new(records).search(&BitTable::from_words(queries.bits(), words), take, measure, done)
        });
        let mut next = 0;
        let rows = tops.into_iter().map(|top| match &rest {
            Some(rest) if !top.is_full() => {
                next += 1;
                rest.scores(next - 1).iter().copied().zip(rest.row(next - 1).iter().copied()).collect()
            }
            _ => top.into_sorted(),
        });
        (Neighbours::from_rows(take, rows), compared)
    }
}

/// Similarity of queries and records that do not match, estimated from a sample.
struct NonMatches {
    queries: f64,
    records: f64,
    words: f64,
    /// Share of differing bits of each sampled pair.
    differing: Vec<f64>,
}

impl NonMatches {
    fn sample(tables: FilterTables<'_>) -> Self {
        let FilterTables { queries, records } = tables;
        let some = |table: &BitTable| -> Vec<usize> {
            (0..table.rows()).step_by(table.rows().div_ceil(LOOKED_AT).max(1)).collect()
        };
        let (query_rows, record_rows) = (some(queries), some(records));
        let bits = queries.bits() as f64;
        let differing = |&query: &usize| {
            let row = queries.row(query);
            let differ = move |&record: &usize| -> f64 {
                let words = row.iter().zip(records.row(record));
                f64::from(words.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()) / bits
            };
            record_rows.iter().map(differ).collect::<Vec<f64>>()
        };
        Self {
            queries: queries.rows() as f64,
            records: records.rows() as f64,
            words: queries.width() as f64,
            differing: query_rows.par_iter().flat_map_iter(differing).collect(),
        }
    }

    /// Returns the probability that two non-matches meet in a table.
    fn meet(&self, sampled: usize) -> f64 {
        let all = self.differing.iter().map(|differing| (1.0 - differing).powi(sampled as i32)).sum::<f64>();
        all / self.differing.len().max(1) as f64
    }

    /// Returns the expected duration as a multiple of comparing all pairs.
    fn cost(&self, blocking: Blocking, take: usize) -> f64 {
        if blocking.sampled < FEWEST_SAMPLED {
            return 1.0;
        }
        let Blocking { tables, sampled } = blocking;
        let pairs = self.queries * self.records;
        let met = tables as f64 * self.meet(sampled);
        let rows = tables as f64 * (self.queries + self.records) * HASHED;
        let own = (rows + met * pairs * COMPARED) / (pairs * self.words / 16.0).max(1.0);
        let few = met * self.records < AMPLE * take as f64;
        own + if few { self.cost(blocking.again(), take) } else { 0.0 }
    }
}

/// The two tables whose rows meet.
struct Join<'a> {
    queries: &'a BitTable,
    records: &'a BitTable,
    /// Number of set bits of each query and of each record.
    ones: [Vec<u32>; 2],
    measure: Measure,
}

impl Join<'_> {
    /// Compares each query marked in `active` with the records that agree with it in `sampled` newly drawn
    /// bits. Returns the number of pairs that met.
    fn table(&mut self, sampled: usize, active: &[bool], tops: &mut [Top], rng: &mut ChaCha8Rng) -> u64 {
        let Self { queries, records, ones, measure } = self;
        let bits = records.bits();
        let sample = index::sample(rng, bits, sampled.min(bits)).into_vec();
        let hash = |row: &[u64]| {
            let hash = sample.chunks(64).fold(0u64, |hash, part| {
                let bits = part.iter().fold(0u64, |bits, &at| bits << 1 | u64::from(get(row, at)));
                crate::mix(hash ^ bits)
            });
            (hash >> 32) as u32
        };
        let mut places: Vec<(u32, u32)> =
            (0..records.rows()).into_par_iter().map(|row| (hash(records.row(row)), row as u32)).collect();
        places.par_sort_unstable();
        // First place of each hash prefix.
        let shift = 32 - records.rows().next_power_of_two().ilog2().min(24);
        let prefix = |hash: u32| hash.checked_shr(shift).unwrap_or_default() as usize;
        let mut starts = vec![0u32; prefix(u32::MAX) + 2];
        places.iter().for_each(|&(hash, _)| starts[prefix(hash) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let kernel = Kernel::best();
        let met = |(query, (top, active)): (usize, (&mut Top, &bool))| -> u64 {
            if !active {
                return 0;
            }
            let row = queries.row(query);
            let own = hash(row);
            let near = &places[starts[prefix(own)] as usize..starts[prefix(own) + 1] as usize];
            let from = near.partition_point(|&(hash, _)| hash < own);
            let near = &near[from..];
            let near = &near[..near.partition_point(|&(hash, _)| hash == own)];
            kernel.shared(row, records, near, |record, common| {
                top.offer_once(measure.score(common, ones[0][query], ones[1][record as usize]), record);
            });
            near.len() as u64
        };
        tops.par_iter_mut().zip(active).enumerate().with_min_len(256).map(met).sum()
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
        let blocking = Blocking { tables: 2, sampled: 11 };
        let tables = FilterTables { queries: &queries, records: &records };
        let (found, compared) = blocking.search(tables, 1, Measure::Hamming, rng.random(), &|_| ());
        let met = (0..rows).filter(|&row| found.row(row)[0] == row as u32).count();
        let stated = blocking.recall(flips as f64 / bits as f64);
        assert!((0.52..0.54).contains(&stated), "{stated}");
        // Another record meets a query with probability 2^-11 in each table, so a query meets about four of
        // the 4,000. With probability e^-4 it meets none of them. If it does not meet its own record either,
        // it is compared with all records and finds its own. α = 1e-6: five standard deviations.
        let (rows, spread) = (rows as f64, 5.0 * (rows as f64 * 0.25).sqrt());
        let sparse = (1.0 - stated) * (-2.0 * rows / 2048.0f64).exp();
        assert!((met as f64 - (stated + sparse) * rows).abs() < spread, "{met}");
        let expected = rows * (2.0 * rows / 2048.0 + 2.0 * 0.9f64.powi(11) + sparse * rows);
        assert!((compared as f64 / expected - 1.0).abs() < 0.3, "{compared} {expected}");
        assert_eq!(Blocking::tables_for(20, 0.1, 0.8), 13);
    }

    /// Returns vectors with a quarter of the bits set.
    fn table(rows: usize, seed: u64) -> BitTable {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        BitTable::from_words(1_024, (0..rows * 16).map(|_| rng.next_u64() & rng.next_u64()).collect())
    }

    #[test]
    fn blocking_saves_time_only_with_enough_but_not_all_candidates() {
        let (queries, records) = (table(2_000, 1), table(2_000, 2));
        let both = FilterTables { queries: &queries, records: &records };
        let cost = |tables, sampled, take| Blocking { tables, sampled }.cost(both, take);
        // A query meets 2,000 · 0.625^10 = 18 of 2,000 records in one table.
        assert!(cost(1, 10, 5) < 1.0);
        assert!(cost(1, 10, 20) > 1.0, "18 records are too few for 20");
        assert!(cost(50, 8, 5) > 1.0, "50 tables at 0.625^8 compare most pairs");
    }

    #[test]
    fn compares_queries_with_too_few_candidates_with_all_records() {
        let dense = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            BitTable::from_words(1_024, (0..300 * 16).map(|_| rng.next_u64()).collect())
        };
        let (queries, records) = (dense(1), dense(2));
        let measure = Measure::Correlation(1_024);
        let blocking = Blocking { tables: 1, sampled: 11 };
        let tables = FilterTables { queries: &queries, records: &records };
        let (found, compared) = blocking.search(tables, 7, measure, 3, &|_| ());
        let all = Index::new(&records).search(&queries, 7, measure, &|_| ());
        assert_eq!(found.indices, all.indices);
        assert_eq!(found.scores, all.scores);
        assert!(compared >= 300 * 300);
    }

    /// More records agree in fewer bits, so queries with too few candidates need no full search. Every query
    /// gets K different records and is reported as done once.
    #[test]
    fn finds_more_candidates_with_fewer_bits() {
        let (queries, records) = (table(3_000, 1), table(3_000, 2));
        let reported = std::sync::atomic::AtomicUsize::new(0);
        let done = |count| {
            reported.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
        };
        let blocking = Blocking { tables: 4, sampled: 36 };
        let tables = FilterTables { queries: &queries, records: &records };
        let (found, compared) = blocking.search(tables, 5, Measure::Correlation(1_024), 3, &done);
        assert!(compared < 3_000 * 3_000 / 10, "{compared}");
        for query in 0..3_000 {
            let mut row = found.row(query).to_vec();
            row.sort_unstable();
            row.dedup();
            assert_eq!(row.len(), 5);
            assert!(found.scores(query).is_sorted_by(|a, b| a >= b));
        }
        assert_eq!(reported.into_inner(), 3_000);
    }
}
