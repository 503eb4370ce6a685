//! Match weights by expectation-maximisation, without truth.
//!
//! The expectation is each candidate's probability under the weights so far; the maximisation counts levels by them. It begins with what
//! rows' best candidates are beyond their best decoys. Four guards keep the two classes what their names say. Others are counted among all
//! pairs, or a random sample, so that they cannot become the matches; m keeps a few matches in its counts of which half are equal; weights
//! do not fall as similarity rises; and what passes for a match among decoys, rows of one table of which none belong together, beyond what the weights know to be chance, is taken off what
//! passes for one among the candidates: fields that go together (city and telephone) would be taken for it.

use rayon::prelude::*;

use super::{EQUAL, LEVELS, MISSING, Pairs, Weights};

/// What weights are learned from.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Rows of the primary, a sample or all, and the records most like each.
    pub candidates: &'a Pairs,
    /// Rows of the primary and the others of its own rows most like each.
    pub decoys: &'a Pairs,
    /// How many of all pairs of a row and a record are of each level, in each field.
    pub all: &'a [[f64; LEVELS]],
    /// The same of pairs of two rows of the primary, which are none of the matches unless it holds things twice.
    pub own: &'a [[f64; LEVELS]],
    /// How many pairs one stands for that was counted.
    pub each: f64,
    /// How many rows one stands for that has candidates here.
    pub each_row: f64,
    /// The records among which a row's match is.
    pub records: usize,
    /// The rows among which its decoys are.
    pub others: usize,
}

/// Matches that are assumed before any is seen, in each field.
const ASSUMED: f64 = 10.0;
/// Counted pairs that are assumed of each level.
const UNSEEN: f64 = 0.5;
/// Rounds at most, and those before decoys are counted: weights are rough at first.
const ROUNDS: usize = 100;
const ROUGH: usize = 2;
/// It ends where no probability moves by more.
const STILL: f64 = 1e-4;
/// Rows whose sums are one thread's; they are added up in order, whatever the number of threads.
const CHUNK: usize = 128;

/// Learns the weights. The same on any number of threads.
pub fn learn(evidence: &Evidence<'_>) -> Weights {
    let mut state = State::from(&first(evidence), evidence);
    let mut weights = state.weights(evidence);
    for round in 0..ROUNDS {
        let mut found = Counts::of(&weights, evidence.candidates);
        if round >= ROUGH && evidence.decoys.rows() > 0 {
            found.correct(&Counts::of(&weights, evidence.decoys), evidence);
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

/// What passes for matches before there are weights. Of the rows' best candidates a share m are matches and the others like best decoys: in
/// each field a share any = m + (1 - m)·own reaches a level that a share `own` of the best decoys reaches, and m is at least what any level
/// of any field says. The levels of matches are what best candidates have beyond 1 - m of the best decoys.
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

/// The levels of each row's first pair, in each field.
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

/// Of each level half as many as of the next more similar one.
fn assumed() -> [f64; LEVELS] {
    let mut m = [0.0; LEVELS];
    (0..LEVELS).for_each(|level| m[level] = 0.5f64.powi((EQUAL - level) as i32));
    normal(m)
}

fn normal(counts: [f64; LEVELS]) -> [f64; LEVELS] {
    let sum: f64 = counts.iter().sum();
    counts.map(|count| count / sum)
}

/// What a round ends with.
struct State {
    m: Vec<[f64; LEVELS]>,
    matched: f64,
    /// The matches among all pairs, by level: they are none of the others.
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
        // What is left of all pairs is none of the matches, if these were found; a row and another of its own table are none in any case.
        let rest = |((all, own), taken): ((&[f64; LEVELS], &[f64; LEVELS]), &[f64; LEVELS])| {
            let (pairs, owns) = (all.iter().sum::<f64>(), own.iter().sum::<f64>());
            normal(std::array::from_fn(|level| {
                let least = (all[level] - taken[level]).max(0.0);
                // As fine as either count is: of few own pairs a level that none has may be no rarer than one in as many.
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

/// ln(m/u), by pools of neighbouring levels where it would fall (pool adjacent violators; Ayer et al. 1955).
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

/// Expected matches among the candidates of some rows, in all and by level of each field.
struct Counts {
    rows: usize,
    matches: f64,
    /// The sum of the squares of the rows' expected matches.
    squares: f64,
    levels: Vec<[f64; LEVELS]>,
    /// Those of rows that have none after all, as far as the weights know: of a row with s expected matches a share 1 - s.
    chance: Vec<[f64; LEVELS]>,
}

impl Counts {
    fn of(weights: &Weights, pairs: &Pairs) -> Self {
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
        let weight = |(levels, rarities)| weights.of(levels, rarities).unwrap_or(f64::NEG_INFINITY);
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

    /// Takes off what passes for a match among decoys beyond what the weights know of. Rows with a match expect a mean of `with` matches,
    /// rows without one as many as decoys: how many of either there are follows from the mean of all rows.
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
