//! Assigns values to patterns by three properties: the number of records, the number of bits, and the number
//! of bits that two patterns have in common.
//!
//! Every value has an expected pattern, from filters of public records under another secret. The score of a
//! value and a found pattern is a log-likelihood ratio: the pattern belongs to the value, against the pattern
//! being any found pattern. Pairs of values have such a score for their common bits. Simulated annealing
//! searches the assignment with the highest score.

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::Pattern;

/// Returns the found pattern for each expected pattern, if there is one. `rows` are the numbers of records of
/// the attacker and of the attacked table, and `bits` is the length of their filters.
pub fn align(
    expected: &[Pattern],
    found: &[Pattern],
    rows: [usize; 2],
    bits: usize,
    seed: u64,
) -> Vec<Option<usize>> {
    if expected.is_empty() || found.is_empty() {
        return vec![None; expected.len()];
    }
    let puzzle = Puzzle::new(expected, found, rows, bits);
    let tries: Vec<(f64, Vec<Option<usize>>)> = (0..TRIES)
        .into_par_iter()
        .map(|at| puzzle.anneal(ChaCha20Rng::seed_from_u64(seed ^ at << 40)))
        .collect();
    let best = tries.into_iter().reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, assignment)| assignment).unwrap_or_default()
}

/// Number of annealing runs; the best one counts.
const TRIES: u64 = 6;
/// Number of moves of each run, for each value.
const MOVES: usize = 10_000;
/// Maximum score of one property, since its model is rough.
const SURE: f64 = 4.0;
/// Mean number of records that seem to have two values of one column, because of misread filters.
const BOTH: f64 = 0.05;

struct Puzzle {
    /// Score of each pattern for each value.
    scores: Vec<Vec<f64>>,
    /// Candidate patterns of each value.
    fits: Vec<Vec<usize>>,
    /// Common bits beyond chance of expected and of found patterns, as places in `edge`.
    expected: Vec<Vec<u16>>,
    found: Vec<Vec<u16>>,
    /// Penalty of two found patterns for their common records, since values of one column have no common
    /// records. Having none earns no reward, because the values of every other column have none either.
    both: Vec<Vec<f32>>,
    /// Score of an expected and a found place.
    edge: Vec<Vec<f32>>,
}

fn normal(x: f64, mean: f64, deviation: f64) -> f64 {
    (-0.5 * ((x - mean) / deviation).powi(2)).exp() / deviation
}

/// Returns the log-likelihood ratio of `x` near `mean` against `x` near any of `others`.
fn against(x: f64, mean: f64, deviation: f64, others: &[f64]) -> f64 {
    let any = others.iter().map(|&other| normal(x, other, deviation)).sum::<f64>() / others.len() as f64;
    ((normal(x, mean, deviation) + 1e-12) / (any + 1e-12)).ln().clamp(-3.0 * SURE, SURE)
}

impl Puzzle {
    fn new(expected: &[Pattern], found: &[Pattern], rows: [usize; 2], bits: usize) -> Self {
        let share = |pattern: &Pattern, rows: usize| (pattern.records.len() as f64 / rows as f64).ln();
        let shares: Vec<f64> = found.iter().map(|pattern| share(pattern, rows[1])).collect();
        let sizes: Vec<f64> = found.iter().map(|pattern| pattern.bits.len() as f64).collect();
        let likeness: Vec<f64> = found.iter().map(|pattern| pattern.likeness).collect();
        // The value's pattern is one of the found patterns, if it was found at all.
        let prior = (found.len() as f64).ln();
        let scores: Vec<Vec<f64>> = expected
            .iter()
            .map(|value| {
                let score = |at: usize| {
                    let counts = [value.records.len() as f64, found[at].records.len() as f64];
                    // Other people and other records: populations differ by more than chance.
                    let deviation = 0.2 + (1.0 / counts[0] + 1.0 / counts[1]).sqrt();
                    let size = value.bits.len() as f64;
                    against(shares[at], share(value, rows[0]), deviation, &shares)
                        + against(sizes[at], size, 2.0 + 0.08 * size, &sizes)
                        + against(likeness[at], value.likeness, 0.02, &likeness)
                };
                (0..found.len()).map(|at| score(at) - prior).collect()
            })
            .collect();
        let likely = |scores: &Vec<f64>| (0..found.len()).filter(|&at| scores[at] > -SURE - prior).collect();
        let mut puzzle = Self {
            fits: scores.iter().map(likely).collect(),
            scores,
            expected: table(expected, |a, b| beyond(a, b, bits)),
            found: table(found, |a, b| beyond(a, b, bits)),
            both: table(found, |a, b| {
                let count = common(&a.records, &b.records) as f64;
                // Expected number of records with both values, if these belong to two independent columns.
                let any = (a.records.len() as f64 * b.records.len() as f64 / rows[1] as f64).max(BOTH);
                ((any - BOTH) + count * (BOTH / any).ln()).clamp(-2.0 * SURE, 0.0) as f32
            }),
            edge: Vec::new(),
        };
        let chance =
            expected.iter().map(|pattern| pattern.bits.len() as f64).sum::<f64>() / expected.len() as f64;
        puzzle.edge = puzzle.edges(chance.powi(2) / bits as f64);
        puzzle
    }

    /// Returns the scores of common bits. Patterns of average size have `chance` bits in common by chance.
    fn edges(&self, chance: f64) -> Vec<Vec<f32>> {
        let at = |place: usize| place as f64 - f64::from(NOTHING);
        // Both counts have the deviation of a Poisson count, and q-grams collide.
        let spread = |beyond: f64| 1.0 + (1.5 * chance + 0.5 * beyond.abs()).sqrt();
        let most =
            |counts: &[Vec<u16>]| counts.iter().flatten().copied().max().unwrap_or(0).max(NOTHING) as usize;
        let (expected, found) = (most(&self.expected), most(&self.found));
        let mut pairs = vec![0u32; found + 1];
        self.found
            .iter()
            .enumerate()
            .for_each(|(at, row)| row[..at].iter().for_each(|&n| pairs[n as usize] += 1));
        let all = f64::from(pairs.iter().sum::<u32>().max(1));
        let any: Vec<f64> = (0..=found)
            .into_par_iter()
            .map(|x| {
                let of = |(y, &n): (usize, &u32)| f64::from(n) * normal(at(x), at(y), spread(at(y)));
                pairs.iter().enumerate().filter(|(_, n)| **n > 0).map(of).sum::<f64>() / all
            })
            .collect();
        let score = |mean: usize, x: usize| {
            let own = normal(at(x), at(mean), spread(at(mean)));
            ((own + 1e-12) / (any[x] + 1e-12)).ln().clamp(-SURE, SURE) as f32
        };
        // Two values without common bits whose patterns have no common bits either prove nothing.
        let nothing = score(NOTHING as usize, NOTHING as usize).max(0.0);
        let scores = |mean| (0..=found).map(|x| score(mean, x) - nothing).collect();
        (0..=expected).into_par_iter().map(scores).collect()
    }

    /// Returns the score of two values with two patterns.
    fn pair(&self, values: [usize; 2], patterns: [usize; 2]) -> f64 {
        let [a, b] = patterns;
        f64::from(
            self.both[a][b]
                + self.edge[self.expected[values[0]][values[1]] as usize][self.found[a][b] as usize],
        )
    }

    /// Returns the score of a value with a pattern, given the assignment of the other values.
    fn gain(&self, value: usize, pattern: usize, assigned: &[Option<usize>]) -> f64 {
        let own = self.scores[value][pattern];
        let with = |(other, at): (usize, &Option<usize>)| match at {
            Some(at) if other != value => self.pair([value, other], [pattern, *at]),
            _ => 0.0,
        };
        own + assigned.iter().enumerate().map(with).sum::<f64>()
    }

    fn anneal(&self, mut rng: ChaCha20Rng) -> (f64, Vec<Option<usize>>) {
        let values = self.fits.len();
        let mut assigned: Vec<Option<usize>> = vec![None; values];
        let mut owner: Vec<Option<usize>> = vec![None; self.found.len()];
        let (mut score, mut best) = (0.0, (0.0, assigned.clone()));
        let moves = MOVES * values;
        for at in 0..moves {
            let heat = 6.0 * (0.05f64).powf(at as f64 / moves as f64);
            let value = rng.random_range(0..values);
            let Some(&pattern) = self.fits[value].choose(&mut rng) else { continue };
            // A value that draws its own pattern loses it. A value that draws another value's pattern swaps
            // patterns.
            let (before, other) = (assigned[value], owner[pattern].filter(|&other| other != value));
            let after = (before != Some(pattern)).then_some(pattern);
            let mut change = -before.map_or(0.0, |old| self.gain(value, old, &assigned));
            assigned[value] = None;
            if let Some(other) = other {
                change -= self.gain(other, pattern, &assigned);
                assigned[other] = None;
            }
            if let Some(new) = after {
                change += self.gain(value, new, &assigned);
                assigned[value] = Some(new);
            }
            if let (Some(other), Some(old)) = (other, before) {
                change += self.gain(other, old, &assigned);
                assigned[other] = Some(old);
            }
            if change >= 0.0 || rng.random::<f64>() < (change / heat).exp() {
                score += change;
                for (value, pattern) in [(Some(value), after), (other, before.filter(|_| other.is_some()))] {
                    if let (Some(value), Some(pattern)) = (value, pattern) {
                        owner[pattern] = Some(value);
                    }
                }
                if let Some(old) = before.filter(|_| other.is_none()) {
                    owner[old] = None;
                }
                if score > best.0 + 1e-6 {
                    best = (score, assigned.clone());
                }
            } else {
                assigned[value] = before;
                if let Some(other) = other {
                    assigned[other] = Some(pattern);
                }
            }
        }
        best
    }
}

fn table<T: Send>(patterns: &[Pattern], of: impl Fn(&Pattern, &Pattern) -> T + Sync) -> Vec<Vec<T>> {
    patterns.par_iter().map(|a| patterns.iter().map(|b| of(a, b)).collect()).collect()
}

/// Place of two patterns that have as many common bits as chance gives.
const NOTHING: u16 = 256;

/// Returns the place of two patterns in the table: [`NOTHING`] plus the number of common bits, less the number
/// expected if the bits of both patterns were drawn at random from `bits` bits.
fn beyond(a: &Pattern, b: &Pattern, bits: usize) -> u16 {
    let chance = a.bits.len() as f64 * b.bits.len() as f64 / bits as f64;
    let more = common(&a.bits, &b.bits) as f64 - chance;
    (f64::from(NOTHING) + more.round()).clamp(0.0, 4_096.0) as u16
}

/// Returns the number of common entries of two ascending lists.
fn common(a: &[u32], b: &[u32]) -> usize {
    let (mut at, mut count) = (0, 0);
    for x in a {
        while at < b.len() && b[at] < *x {
            at += 1;
        }
        count += usize::from(b.get(at) == Some(x));
    }
    count
}
