//! Match weights by expectation-maximisation, without truth.
//!
//! The expectation step computes each candidate's match probability under the current weights. The
//! maximisation step counts levels with these probabilities. The first counts are the rows' best candidates
//! beyond their best decoys. Four safeguards keep the two classes from changing roles:
//!
//! - Non-matches are counted among all pairs, or a random sample, so that they cannot become the matches.
//! - m includes a few assumed matches, half of them equal.
//! - Weights never fall as similarity rises.
//! - Decoys are rows of one table, and none of them match. Apparent matches among decoys, beyond what the
//!   weights predict by chance, are subtracted from the apparent matches among candidates. Otherwise fields
//!   that depend on each other (city and telephone) would pass for a match.

use rayon::prelude::*;

use super::model::{EQUAL, LEVELS, MISSING, Pairs, Weights};

/// Evidence for learning the weights.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Rows of the primary, a sample or all, with the most similar records of each.
    pub candidates: &'a Pairs,
    /// Rows of the primary with the most similar other rows of the same table.
    pub decoys: &'a Pairs,
    /// Number of pairs of a row and a record at each level, in each field, among all pairs.
    pub all: &'a [[f64; LEVELS]],
    /// Number of pairs of two rows of the primary at each level, in each field. None of them match, unless
    /// the table contains duplicates.
    pub own: &'a [[f64; LEVELS]],
    /// Number of pairs that each counted pair represents.
    pub each: f64,
    /// Number of rows that each row with candidates represents.
    pub each_row: f64,
    /// Number of records that may match a row.
    pub records: usize,
    /// Number of rows that may be a row's decoys.
    pub others: usize,
}

/// Number of matches assumed in advance, in each field.
const ASSUMED: f64 = 10.0;
/// Number of counted pairs assumed at each level.
const UNSEEN: f64 = 0.5;
/// Maximum number of rounds, and number of rounds before decoys count, since the first weights are rough.
const ROUNDS: usize = 100;
const ROUGH: usize = 2;
/// Largest change of a probability at which learning ends.
const STILL: f64 = 1e-4;
/// Number of rows that one thread sums. The sums are added in order, so that the result does not depend on
/// the number of threads.
const CHUNK: usize = 128;

/// Learns the weights. The result does not depend on the number of threads.
pub fn learn(evidence: &Evidence<'_>) -> Weights {
    let mut state = State::from(&first(evidence), evidence);
    let mut weights = state.weights(evidence);
    for round in 0..ROUNDS {
        let mut found = Counts::expected(&weights, evidence.candidates);
        if round >= ROUGH && evidence.decoys.rows() > 0 {
            found.correct(&Counts::expected(&weights, evidence.decoys), evidence);
        }
        let next = State::from(&found, evidence);
        let moved = state.distance(&next);
        state = next;
        weights = state.weights(evidence);
        if moved < STILL && round > ROUGH {
            break;
        }
    }
    weights
}

/// Returns the first counts of matches, before there are weights. Among the rows' best candidates, a share m
/// are matches, and the others resemble the best decoys. If a share `own` of the best decoys reaches a level
/// of a field, then a share any = m + (1 - m)·own of the best candidates reaches it. m is the largest value
/// that follows from any level of any field. The levels of matches are those of the best candidates minus 1 -
/// m times those of the best decoys.
fn first(evidence: &Evidence<'_>) -> Counts {
    let fields = evidence.all.len();
    let (best, own) = (bests(evidence.candidates, fields), bests(evidence.decoys, fields));
    let share = |counts: &[f64; LEVELS], level: usize| {
        counts[level..].iter().sum::<f64>() / counts.iter().sum::<f64>().max(1.0)
    };
    let mut matched = 0.0f64;
    for (best, own) in best.iter().zip(&own) {
        for level in 1..LEVELS {
            let (any, own) = (share(best, level), share(own, level));
            matched = matched.max((any - own) / (1.0 - own).max(f64::EPSILON));
        }
    }
    let rows = evidence.candidates.rows() as f64;
    let mut found = Counts::none(fields);
    found.matches = matched * rows;
    for (field, (best, own)) in best.iter().zip(&own).enumerate() {
        let (known, others) = (best.iter().sum::<f64>(), own.iter().sum::<f64>().max(1.0));
        found.levels[field] = std::array::from_fn(|level| {
            (best[level] - (1.0 - matched) * own[level] / others * known).max(0.0)
        });
    }
    found
}

/// Returns the number of rows whose first pair is at each level, in each field.
fn bests(pairs: &Pairs, fields: usize) -> Vec<[f64; LEVELS]> {
    let mut counts = vec![[0.0; LEVELS]; fields];
    for row in 0..pairs.rows() {
        let Some((levels, _)) = pairs.of_row(row).next() else { continue };
        for (counts, &level) in counts.iter_mut().zip(levels).filter(|(_, level)| **level != MISSING) {
            counts[usize::from(level)] += 1.0;
        }
    }
    counts
}

/// Returns the assumed shares of levels: each level has half the share of the next more similar level.
fn assumed() -> [f64; LEVELS] {
    let mut m = [0.0; LEVELS];
    (0..LEVELS).for_each(|level| m[level] = 0.5f64.powi((EQUAL - level) as i32));
    normal(m)
}

fn normal(counts: [f64; LEVELS]) -> [f64; LEVELS] {
    let sum: f64 = counts.iter().sum();
    counts.map(|count| count / sum)
}

/// Result of a round.
struct State {
    m: Vec<[f64; LEVELS]>,
    matched: f64,
    /// Matches among all pairs, by level, which do not count as non-matches.
    taken: Vec<[f64; LEVELS]>,
}

impl State {
    fn from(found: &Counts, evidence: &Evidence<'_>) -> Self {
        let rows = evidence.candidates.rows();
        let with_assumed = |counts: &[f64; LEVELS]| {
            let assumed = assumed();
            normal(std::array::from_fn(|level| counts[level] + ASSUMED * assumed[level]))
        };
        Self {
            m: found.levels.iter().map(with_assumed).collect(),
            matched: ((found.matches + 0.5) / (rows as f64 + 1.0)).min(0.9999),
            taken: found.levels.iter().map(|counts| counts.map(|count| count * evidence.each_row)).collect(),
        }
    }

    fn distance(&self, other: &Self) -> f64 {
        let levels = self.m.as_flattened().iter().zip(other.m.as_flattened());
        levels.map(|(a, b)| (a - b).abs()).fold((self.matched - other.matched).abs(), f64::max)
    }

    fn weights(&self, evidence: &Evidence<'_>) -> Weights {
        // If all matches were found, the remaining pairs are non-matches. Two rows of one table are
        // non-matches in any case.
        let rest = |((all, own), taken): ((&[f64; LEVELS], &[f64; LEVELS]), &[f64; LEVELS])| {
            let (pairs, owns) = (all.iter().sum::<f64>(), own.iter().sum::<f64>());
            normal(std::array::from_fn(|level| {
                let least = (all[level] - taken[level]).max(0.0);
                // The finer of the two counts applies: with few own pairs, a level without any of them may
                // still have a share of about one in their number.
                let like_own = if owns > 0.0 { (own[level] + UNSEEN) * pairs / owns } else { f64::INFINITY };
                (least + UNSEEN * evidence.each).min(like_own)
            }))
        };
        let both = evidence.all.iter().zip(evidence.own);
        let u: Vec<[f64; LEVELS]> = both.zip(&self.taken).map(rest).collect();
        Weights {
            levels: self.m.iter().zip(&u).map(|(m, u)| rising(m, u)).collect(),
            reach: self
                .m
                .iter()
                .map(|m| std::array::from_fn(|level| m[level..].iter().sum::<f64>().ln()))
                .collect(),
            matched: self.matched,
            records: evidence.records.max(1) as f64,
        }
    }
}

/// Returns ln(m/u), and pools neighbouring levels where it would fall (pool adjacent violators; Ayer et al.
/// 1955).
fn rising(m: &[f64; LEVELS], u: &[f64; LEVELS]) -> [f64; LEVELS] {
    let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(LEVELS);
    for (&m, &u) in m.iter().zip(u) {
        let mut pool = (m, u, 1);
        while let Some(&(before_m, before_u, count)) = pools.last() {
            if before_m * pool.1 <= pool.0 * before_u {
                break;
            }
            pool = (before_m + pool.0, before_u + pool.1, count + pool.2);
            pools.pop();
        }
        pools.push(pool);
    }
    let mut levels = pools.iter().flat_map(|&(m, u, count)| std::iter::repeat_n((m / u).ln(), count));
    std::array::from_fn(|_| levels.next().unwrap_or_default())
}

/// Expected matches among the candidates of some rows, in total and by level of each field.
struct Counts {
    rows: usize,
    matches: f64,
    /// Sum of the squares of the rows' expected matches.
    squares: f64,
    levels: Vec<[f64; LEVELS]>,
    /// Expected matches of rows without a match, as far as the weights predict: a share 1 - s for a row
    /// with s expected matches.
    chance: Vec<[f64; LEVELS]>,
}

impl Counts {
    /// Returns the expected matches among these pairs.
    fn expected(weights: &Weights, pairs: &Pairs) -> Self {
        let chunks: Vec<usize> = (0..pairs.rows()).step_by(CHUNK).collect();
        let parts: Vec<Self> = chunks
            .into_par_iter()
            .map(|start| {
                let mut counts = Self::none(weights.levels.len());
                let mut row = Vec::new();
                (start..(start + CHUNK).min(pairs.rows()))
                    .for_each(|at| counts.add_row(weights, pairs, at, &mut row));
                counts
            })
            .collect();
        let mut sum = Self::none(weights.levels.len());
        parts.iter().for_each(|part| sum.add(part));
        sum
    }

    fn none(fields: usize) -> Self {
        let none = vec![[0.0; LEVELS]; fields];
        Self { rows: 0, matches: 0.0, squares: 0.0, levels: none.clone(), chance: none }
    }

    fn add(&mut self, part: &Self) {
        self.rows += part.rows;
        self.matches += part.matches;
        self.squares += part.squares;
        for (to, from) in [(&mut self.levels, &part.levels), (&mut self.chance, &part.chance)] {
            to.as_flattened_mut().iter_mut().zip(from.as_flattened()).for_each(|(to, from)| *to += from);
        }
    }

    fn add_row(&mut self, weights: &Weights, pairs: &Pairs, row: usize, room: &mut Vec<f64>) {
        room.clear();
        let weight = |(levels, rarities)| weights.match_weight(levels, rarities).unwrap_or(f64::NEG_INFINITY);
        room.extend(pairs.of_row(row).map(weight));
        weights.probabilities(room);
        let expected: f64 = room.iter().sum();
        self.rows += 1;
        self.matches += expected;
        self.squares += expected * expected;
        for ((levels, _), &probability) in pairs.of_row(row).zip(&*room) {
            for (field, &level) in levels.iter().enumerate().filter(|(_, level)| **level != MISSING) {
                self.levels[field][usize::from(level)] += probability;
                self.chance[field][usize::from(level)] += probability * (1.0 - expected).max(0.0);
            }
        }
    }

    /// Subtracts the apparent matches among decoys beyond what the weights predict. Rows with a match have
    /// `with` expected matches on average, and rows without a match have as many as decoys. The mean of all
    /// rows determines the number of rows of each kind.
    fn correct(&mut self, decoys: &Self, evidence: &Evidence<'_>) {
        if self.matches <= 0.0 {
            return;
        }
        let of_records = evidence.records as f64 / evidence.others.max(1) as f64;
        let without = (decoys.matches / decoys.rows as f64 * of_records).min(1.0);
        let (with, mean) = (self.squares / self.matches, self.matches / self.rows as f64);
        let unmatched =
            if mean <= without { 1.0 } else { ((with - mean) / (with - without)).clamp(0.0, 1.0) };
        let factor = unmatched * of_records * self.rows as f64 / decoys.rows as f64;
        let beyond = |decoys: f64, known: f64| (factor * decoys - known).max(0.0);
        let known = self.matches - self.squares;
        self.matches = (self.matches - beyond(decoys.matches, known)).max(0.0);
        let others = decoys.levels.as_flattened().iter().zip(self.chance.as_flattened());
        for (count, (&decoys, &known)) in self.levels.as_flattened_mut().iter_mut().zip(others) {
            *count = (*count - beyond(decoys, known)).max(0.0);
        }
    }
}

#[cfg(test)]
mod tests;
