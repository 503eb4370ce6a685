//! Ranking of candidates by their match weights. Each field of a candidate is a separate filter, compared by
//! the correlation of its bits.

use std::collections::HashMap;

use rayon::prelude::*;

use super::learn::{Evidence, learn};
use super::model::{LEVELS, MISSING, Pairs, Weights, level};
use crate::bits::BitTable;
use crate::mix;
use crate::neighbours::Neighbours;
use crate::search::{Index, Measure};

/// Filters of each field of two tables. Queries and records have the same number of fields, with equal
/// lengths.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// Filters of the rows that are linked.
    pub queries: &'a [BitTable],
    /// Filters of the records that may match them.
    pub records: &'a [BitTable],
}

/// Best candidates, scored by their match probabilities.
#[derive(Debug)]
pub struct Ranked {
    /// Candidates of each row, the most probable first.
    pub neighbours: Neighbours,
    /// Mean expected number of matches of a row among all candidates, at most 1.
    pub matched: f64,
    /// Learned weights.
    pub weights: Weights,
}

/// Maximum number of rows for learning weights.
const LEARNED: usize = 4_000;
/// Maximum number of rows with decoys, and number of decoys of each.
const DECOYED: usize = 2_000;
const DECOYS: usize = 20;
/// Maximum number of pairs among which non-matches are counted.
const COUNTED: usize = 500_000;
/// Returns the number of candidates of each query that are compared by field, if `take` of `records` records
/// are wanted.
pub fn candidates(take: usize, records: usize) -> usize {
    (4 * take).max(50).min(records)
}

/// Returns the best `take` of the candidates `found` of each query, by match weights that are learned from
/// these tables alone. `queries` are the filters that the candidate search used. The result does not depend
/// on the number of threads.
///
/// # Panics
/// If tables have different numbers of rows or fields, or if there are fewer than `take` candidates.
pub fn rank(queries: &BitTable, fields: Fields<'_>, found: &Neighbours, take: usize, seed: u64) -> Ranked {
    assert_eq!(fields.queries.len(), fields.records.len(), "fields of both tables");
    assert!(take <= found.take, "{take} of {} candidates", found.take);
    let rows = queries.rows();
    let rarities = Rarities::count(fields);
    let mut candidates = Pairs::new(fields.queries.len());
    for row in spread(rows, LEARNED) {
        candidates.push(found.row(row).iter().flat_map(|&record| {
            let record = record as usize;
            rarities
                .records
                .iter()
                .zip(fields.levels(row, record))
                .map(move |(rarities, level)| (level, rarities[record]))
        }));
    }
    let (all, each) = count(fields, seed, false);
    let (own, _) = count(Fields { queries: fields.queries, records: fields.queries }, seed, true);
    let decoys = decoys(queries, fields.queries, &rarities);
    let records = fields.records.first().map_or(1, BitTable::rows);
    let weights = learn(&Evidence {
        candidates: &candidates,
        decoys: &decoys,
        all: &all,
        own: &own,
        each,
        each_row: rows as f64 / candidates.rows().max(1) as f64,
        records,
        others: rows.saturating_sub(1),
    });
    drop((candidates, decoys));
    let scorer = Scorer { fields, rarities: &rarities.records, weights: &weights };
    let (best, sums): (Vec<Vec<(f32, u32)>>, Vec<f64>) =
        (0..rows).into_par_iter().map(|row| scorer.best(row, found.row(row), take)).unzip();
    let expected = sums.into_iter().fold(0.0, |expected, sum| expected + sum);
    let neighbours = Neighbours::from_rows(take, best);
    Ranked { neighbours, matched: expected / rows.max(1) as f64, weights }
}

impl Fields<'_> {
    /// Returns the level of each field of two rows.
    fn levels(self, query: usize, record: usize) -> impl Iterator<Item = u8> {
        self.queries.iter().zip(self.records).map(move |(queries, records)| {
            let measure = Measure::Correlation(queries.bits() as u32);
            level(measure.score_rows(queries.row(query), records.row(record)))
        })
    }
}

/// Scorer of candidates by the levels of their fields.
struct Scorer<'a> {
    fields: Fields<'a>,
    /// Rarities of the records' values, for each field.
    rarities: &'a [Vec<f32>],
    weights: &'a Weights,
}

impl Scorer<'_> {
    /// Returns the `take` best of a row's candidates with their probabilities, and the sum over all candidates.
    fn best(&self, row: usize, candidates: &[u32], take: usize) -> (Vec<(f32, u32)>, f64) {
        let weigh = |&record: &u32| {
            let levels: Vec<u8> = self.fields.levels(row, record as usize).collect();
            let rarities: Vec<f32> = self.rarities.iter().map(|rarities| rarities[record as usize]).collect();
            self.weights.match_weight(&levels, &rarities).unwrap_or(f64::NEG_INFINITY)
        };
        let mut weighed: Vec<f64> = candidates.iter().map(weigh).collect();
        let mut pairs: Vec<(f64, usize)> = weighed.iter().copied().zip(0..).collect();
        // Sorted by weight, since probabilities may be equal where weights differ. Equal weights keep the order
        // of the search.
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        self.weights.probabilities(&mut weighed);
        let best =
            pairs[..take].iter().map(|&(_, place)| (weighed[place] as f32, candidates[place])).collect();
        (best, weighed.iter().sum())
    }
}

/// -ln of the share of the rows of both tables that also have the value, for each field and row.
struct Rarities {
    queries: Vec<Vec<f32>>,
    records: Vec<Vec<f32>>,
}

impl Rarities {
    fn count(fields: Fields<'_>) -> Self {
        let pairs: Vec<(&BitTable, &BitTable)> = fields.queries.iter().zip(fields.records).collect();
        let (queries, records) =
            pairs.into_par_iter().map(|(queries, records)| Self::of_field(queries, records)).unzip();
        Self { queries, records }
    }

    fn of_field(queries: &BitTable, records: &BitTable) -> (Vec<f32>, Vec<f32>) {
        let mut counts: HashMap<&[u64], [u32; 2]> = HashMap::new();
        let mut known = 0u32;
        for (side, table) in [queries, records].into_iter().enumerate() {
            for row in (0..table.rows()).filter(|&row| table.ones(row) > 0) {
                counts.entry(table.row(row)).or_default()[side] += 1;
                known += 1;
            }
        }
        let alone = alone(counts.values().flatten().copied());
        // One row with the value in each table may be the match or the row itself, and does not count.
        let rarity = |row: &[u64]| {
            let [queries, records] = counts.get(row).copied().unwrap_or_default();
            let others = queries.saturating_sub(1) + records.saturating_sub(1);
            -((others as f32 + alone) / known.max(1) as f32).ln()
        };
        let of = |table: &BitTable| (0..table.rows()).map(|row| rarity(table.row(row))).collect();
        (of(queries), of(records))
    }
}

/// Returns the expected number of other rows with a value that occurs once, from the numbers of values that
/// occur once and twice in one table (Good 1953). Half a value is added to those that occur twice, so that
/// the result is never 0. The result is at most 0.5.
fn alone(counts: impl Iterator<Item = u32>) -> f32 {
    let (mut one, mut two) = (0.0f32, 0.5f32);
    for count in counts {
        match count {
            1 => one += 1.0,
            2 => two += 1.0,
            _ => {}
        }
    }
    (2.0 * two / (one + 1.0)).min(0.5)
}

/// Returns rows of the primary with the most similar other rows of the same table.
fn decoys(queries: &BitTable, fields: &[BitTable], rarities: &Rarities) -> Pairs {
    let rows: Vec<usize> = spread(queries.rows(), DECOYED).collect();
    let sample: Vec<u64> = rows.iter().flat_map(|&row| queries.row(row)).copied().collect();
    let sample = BitTable::from_words(queries.bits(), sample);
    let take = (DECOYS + 1).min(queries.rows());
    let measure = Measure::Correlation(queries.bits() as u32);
    let found = Index::new(queries).search(&sample, take, measure, &|_| ());
    let own = Fields { queries: fields, records: fields };
    let mut pairs = Pairs::new(fields.len());
    for (at, &row) in rows.iter().enumerate() {
        let others =
            found.row(at).iter().map(|&other| other as usize).filter(|&other| other != row).take(DECOYS);
        pairs.push(others.flat_map(|other| {
            rarities
                .queries
                .iter()
                .zip(own.levels(row, other))
                .map(move |(rarities, level)| (level, rarities[other]))
        }));
    }
    pairs
}

/// Returns the number of all pairs at each level of each field, and the number of pairs that each counted
/// pair represents. It counts all pairs or a random sample. If both tables are one (`is_one`), it omits pairs
/// of a row with itself.
fn count(fields: Fields<'_>, seed: u64, is_one: bool) -> (Vec<[f64; LEVELS]>, f64) {
    let rows = |tables: &[BitTable]| tables.first().map_or(0, BitTable::rows);
    let (queries, records) = (rows(fields.queries), rows(fields.records));
    let pairs = queries * records;
    let counted = pairs.min(COUNTED);
    let place = |at: usize| {
        if pairs == counted {
            return (at / records, at % records);
        }
        let draw = mix(seed ^ mix(at as u64));
        ((draw >> 32) as usize % queries, (draw & 0xffff_ffff) as usize % records)
    };
    let count = |mut counts: Vec<[u64; LEVELS]>, at: usize| {
        let (query, record) = place(at);
        if is_one && query == record {
            return counts;
        }
        for (counts, level) in counts.iter_mut().zip(fields.levels(query, record)) {
            if level != MISSING {
                counts[usize::from(level)] += 1;
            }
        }
        counts
    };
    let none = || vec![[0u64; LEVELS]; fields.queries.len()];
    let add = |mut to: Vec<[u64; LEVELS]>, from: Vec<[u64; LEVELS]>| {
        to.as_flattened_mut().iter_mut().zip(from.as_flattened()).for_each(|(to, from)| *to += from);
        to
    };
    // Sums of whole numbers do not depend on the order.
    let counts = (0..counted).into_par_iter().fold(none, count).reduce(none, add);
    let each = pairs as f64 / counted.max(1) as f64;
    (counts.into_iter().map(|counts| counts.map(|count| count as f64 * each)).collect(), each)
}

/// Returns at most `most` of the rows, evenly spaced.
fn spread(rows: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = rows.min(most);
    (0..taken).map(move |at| (at as u128 * rows as u128 / taken as u128) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Returns rows of 128 bits. The first rows are those of another table with one word changed.
    fn table(rows: usize, like: Option<&BitTable>, seed: u64) -> BitTable {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut words: Vec<u64> = (0..2 * rows).map(|_| rng.next_u64() & rng.next_u64()).collect();
        if let Some(like) = like {
            (0..rows / 2).for_each(|row| words[2 * row] = like.row(row)[0]);
        }
        BitTable::from_words(128, words)
    }

    #[test]
    fn matches_are_in_front_on_any_number_of_threads() {
        let (rows, records) = (300, 250);
        let queries: Vec<BitTable> = (0..3).map(|field| table(rows, None, field)).collect();
        let records: Vec<BitTable> =
            (0..3).map(|field| table(records, Some(&queries[field as usize]), 9 + field)).collect();
        let fields = Fields { queries: &queries, records: &records };
        let measure = Measure::Correlation(128);
        let found = Index::new(&records[0]).search(&queries[0], candidates(5, 250), measure, &|_| ());
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| rank(&queries[0], fields, &found, 5, 3))
        };
        let (one, three) = (on(1), on(3));
        assert_eq!((&one.neighbours, &one.weights), (&three.neighbours, &three.weights));
        assert_eq!(one.matched.to_bits(), three.matched.to_bits());
        let right = (0..125).filter(|&row| one.neighbours.row(row)[0] == row as u32).count();
        // All matches that are among the candidates: the first field alone finds nearly all of them.
        assert!(right > 115, "{right} of 125");
        assert!((0..300).all(|row| one.neighbours.scores(row).is_sorted_by(|a, b| a >= b)));
    }

    #[test]
    fn estimates_the_rarity_of_single_values() {
        let counts = |once: usize, twice: usize| alone((0..once + twice).map(|at| 1 + u32::from(at >= once)));
        assert!((counts(1_000, 10) - 21.0 / 1_001.0).abs() < 1e-6);
        assert!(
            (counts(200, 0) - 1.0 / 201.0).abs() < 1e-6,
            "no value occurs twice, and half a value is assumed to"
        );
        assert_eq!(counts(10, 50), 0.5, "at most half a row");
        assert_eq!(alone([3, 7].into_iter()), 0.5);
    }

    #[test]
    fn rows_are_spread_evenly() {
        assert_eq!(spread(10, 4).collect::<Vec<_>>(), [0, 2, 5, 7]);
        assert_eq!(spread(3, 4).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(0, 4).count(), 0);
    }
}
