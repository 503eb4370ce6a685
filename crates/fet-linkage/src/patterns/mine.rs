//! Finds bits that are set (or not set) together in many filters, more often than by chance.
//!
//! A search starts with the records that have two correlated bits, or with records whose filters are equal.
//! It compares the frequency of each bit among these records and among all records, and keeps the bits that
//! differ. It then takes the records that resemble the set more than the rest in these bits, and repeats
//! until the set no longer changes. This is expectation-maximisation with hard decisions, two classes, and
//! independent bits within each class.

use std::collections::{BTreeMap, HashSet};

use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::columns::{Columns, ones};

/// Bits that identify a property of some records, such as a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Bits in ascending order: `2 * bit + 1` if the bit is set in nearly all of the records, `2 * bit` if in
    /// nearly none.
    pub bits: Vec<u32>,
    /// Records in ascending order.
    pub records: Vec<u32>,
    /// Confidence that each record belongs to the pattern: a difference of log-likelihoods.
    pub scores: Vec<f32>,
    /// Similarity of the records: the mean share of them that agree with the pattern in a bit.
    pub likeness: f64,
}

/// Number of standard deviations by which a bit's frequency in a set must differ from its frequency in all
/// records. At lower values, chance would explain some bits.
const CLEAR: f64 = 5.0;
/// Minimum number of bits of a pattern.
const FEWEST: usize = 8;

/// Effort of the attack.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Number of values to look for: the most frequent values of the attacked column in the public table.
    pub values: usize,
    /// Minimum number of records of a pattern.
    pub least: usize,
    /// Number of searches that start at each bit.
    pub starts: usize,
    /// Seed of the starting points and of the annealing.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { values: 30, least: 12, starts: 1, seed: 1 }
    }
}

/// Returns the patterns in these filters, those with the most similar records first.
///
/// A search may end with a mixture, such as all names with one beginning. The search is therefore repeated
/// from parts of each result: its records with a bit that only some of them have, and its records without
/// this bit.
pub fn mine(columns: &Columns, effort: &Effort) -> Vec<Pattern> {
    /// Number of repetitions.
    const DEPTH: usize = 3;
    let mut begun: HashSet<Vec<u64>> = HashSet::new();
    let mut known: BTreeMap<Vec<u32>, Pattern> = BTreeMap::new();
    let mut next = starts(columns, effort);
    for _ in 0..=DEPTH {
        next.retain(|start| begun.insert(start.clone()));
        let found: Vec<Pattern> =
            next.into_par_iter().filter_map(|start| settle(columns, start, effort.least)).collect();
        let new: Vec<Pattern> = found
            .into_iter()
            .filter(|pattern| known.insert(pattern.records.clone(), pattern.clone()).is_none())
            .collect();
        next = new.par_iter().flat_map_iter(|pattern| parts(columns, pattern)).collect();
    }
    distinct(columns, known.into_values().collect())
}

/// Returns the records of a pattern with and without a bit, for a bit that about half of them have and for
/// two rarer bits.
fn parts(columns: &Columns, pattern: &Pattern) -> Vec<Vec<u64>> {
    let set = columns.set_of(&pattern.records);
    let mut bits = differing(columns, &set);
    bits.retain(|bit| (0.1..0.9).contains(&bit.own));
    let near = |share: f64| {
        let off = |bit: &Differing| (bit.own - share).abs();
        bits.iter().min_by(|a, b| off(a).total_cmp(&off(b))).map(|bit| bit.bit)
    };
    let part = |bit: usize, has: bool| -> Vec<u64> {
        set.iter().zip(columns.with(bit)).map(|(set, bit)| if has { set & bit } else { set & !bit }).collect()
    };
    [0.5, 0.3, 0.15]
        .into_iter()
        .filter_map(near)
        .flat_map(|bit| [part(bit, true), part(bit, false)])
        .collect()
}

/// Returns the pattern of records that are known to have a property in common.
pub fn pattern_of(columns: &Columns, records: Vec<u32>) -> Pattern {
    let set = columns.set_of(&records);
    let (bits, likeness) = defining(columns, &set);
    Pattern { bits, scores: vec![0.0; records.len()], records, likeness }
}

/// Returns the initial sets of records of the searches.
fn starts(columns: &Columns, effort: &Effort) -> Vec<Vec<u64>> {
    let (bits, rows) = (columns.bits(), columns.rows() as f64);
    let of_pairs = (0..bits).into_par_iter().flat_map_iter(|bit| {
        let (with, share) = (columns.with(bit), columns.share(bit));
        let count = f64::from(ones(with));
        let agreeing: Vec<(usize, bool)> = (0..bits)
            .filter_map(|other| {
                let p = columns.share(other);
                // Standard deviation of the common count of two independent bits.
                let deviation = (rows * share * (1.0 - share) * p * (1.0 - p)).sqrt();
                let more = (f64::from(columns.among(other, with)) - count * p) / deviation.max(1e-9);
                (other != bit && more.abs() > CLEAR).then_some((other, more > 0.0))
            })
            .collect();
        let mut rng = ChaCha20Rng::seed_from_u64(effort.seed ^ (bit as u64) << 32);
        let chosen = sample(&mut rng, agreeing.len(), effort.starts.min(agreeing.len()));
        let both = |(other, same): (usize, bool)| -> Vec<u64> {
            with.iter().zip(columns.with(other)).map(|(a, b)| if same { a & b } else { a & !b }).collect()
        };
        chosen.into_iter().map(|at| both(agreeing[at])).collect::<Vec<_>>()
    });
    let equal =
        columns.equal().iter().filter(|rows| rows.len() >= effort.least).map(|rows| columns.set_of(rows));
    let mut all: Vec<Vec<u64>> = of_pairs.collect();
    all.extend(equal);
    all
}

/// Searches from these records until the set no longer changes. Returns `None` if too few or too many records
/// remain.
fn settle(columns: &Columns, mut set: Vec<u64>, least: usize) -> Option<Pattern> {
    /// Number of rounds after which a search is unlikely to converge.
    const ROUNDS: usize = 12;
    let fits = |set: &[u64]| (least..=columns.rows() / 3).contains(&(ones(set) as usize));
    for _ in 0..ROUNDS {
        if !fits(&set) {
            return None;
        }
        let scores = scores(columns, &set);
        let rows: Vec<u32> =
            (0..scores.len()).filter(|&row| scores[row] > 0.0).map(|row| row as u32).collect();
        let next = columns.set_of(&rows);
        if next != set {
            set = next;
            continue;
        }
        let (bits, likeness) = defining(columns, &set);
        let scores = rows.iter().map(|&row| scores[row as usize]).collect();
        return (bits.len() >= FEWEST).then_some(Pattern { bits, records: rows, scores, likeness });
    }
    None
}

/// Bit that is more frequent, or less frequent, in the records of a set than in all records.
struct Differing {
    bit: usize,
    /// Share of the set's records with the bit.
    own: f64,
    /// Share of all records with the bit.
    all: f64,
    /// Difference in standard deviations.
    clear: f64,
}

/// Returns the bits whose frequency in a set is significantly different, in ascending order.
fn differing(columns: &Columns, set: &[u64]) -> Vec<Differing> {
    let (size, counts) = (f64::from(ones(set)), columns.counts(set));
    let of = |bit: usize| {
        let (count, all) = (f64::from(counts[bit]), columns.share(bit));
        let clear = (count - size * all).abs() / (size * all * (1.0 - all)).sqrt();
        (clear > CLEAR).then_some(Differing { bit, own: (count + 0.5) / (size + 1.0), all, clear })
    };
    (0..columns.bits()).filter_map(of).collect()
}

/// Returns the log-odds of each record belonging to the set.
fn scores(columns: &Columns, set: &[u64]) -> Vec<f32> {
    /// Maximum number of bits that are compared.
    const MOST: usize = 192;
    let size = f64::from(ones(set));
    let mut bits = differing(columns, set);
    bits.sort_by(|a, b| b.clear.total_cmp(&a.clear));
    bits.truncate(MOST);
    let without = |bit: &Differing| ((1.0 - bit.own) / (1.0 - bit.all)).ln();
    let none = bits.iter().map(without).sum::<f64>() - ((columns.rows() as f64 - size) / size).ln();
    let mut scores = vec![none as f32; columns.rows()];
    for bit in &bits {
        let more = ((bit.own / bit.all).ln() - without(bit)) as f32;
        for (scores, &word) in scores.chunks_mut(64).zip(columns.with(bit.bit)) {
            let mut word = word;
            while word != 0 {
                scores[word.trailing_zeros() as usize] += more;
                word &= word - 1;
            }
        }
    }
    scores
}

/// Returns the bits that nearly all of the set's records have, or lack, and whose share differs much from
/// that of all records. Also returns the mean share of the set's records that agree in these bits.
fn defining(columns: &Columns, set: &[u64]) -> (Vec<u32>, f64) {
    let counts = |bit: &Differing| (bit.own - bit.all).abs() >= 0.3 && (bit.own - 0.5).abs() >= 0.2;
    let kept = differing(columns, set).into_iter().filter(counts);
    let as_it_is =
        |bit: Differing| (2 * bit.bit as u32 + u32::from(bit.own > 0.5), bit.own.max(1.0 - bit.own));
    let (bits, shares): (Vec<u32>, Vec<f64>) = kept.map(as_it_is).unzip();
    let likeness = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    (bits, likeness)
}

/// Removes duplicates. Among patterns with nearly the same records, the pattern with the most similar records
/// stays.
fn distinct(columns: &Columns, mut found: Vec<Pattern>) -> Vec<Pattern> {
    found.sort_by(|a, b| {
        let order = b.likeness.total_cmp(&a.likeness);
        order.then(b.records.len().cmp(&a.records.len())).then_with(|| a.records.cmp(&b.records))
    });
    let mut kept: Vec<(Vec<u64>, Pattern)> = Vec::new();
    for pattern in found {
        let set = columns.set_of(&pattern.records);
        let same = kept.iter().rev().any(|(other, kept)| {
            let common: u32 = other.iter().zip(&set).map(|(a, b)| (a & b).count_ones()).sum();
            let all = pattern.records.len() + kept.records.len() - common as usize;
            10 * common as usize > 7 * all
        });
        if !same {
            kept.push((set, pattern));
        }
    }
    kept.into_iter().map(|(_, pattern)| pattern).collect()
}
