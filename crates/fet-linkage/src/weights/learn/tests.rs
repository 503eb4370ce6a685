//! Weights of simulated mixtures with known m, u and share of matches.

use super::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// m and u of three fields.
struct Mixture {
    m: [[f64; LEVELS]; 3],
    u: [[f64; LEVELS]; 3],
    /// Share of the rows with a match.
    matched: f64,
    /// Share of missing cells.
    missing: f64,
}

const ROWS: usize = 4_000;
const RECORDS: usize = 1_000;
/// Number of simulated records of each row. The other records only appear in the counts of all pairs, in
/// proportion to u.
const DRAWN: usize = 40;

fn shape(equal: f64, near: f64) -> [f64; LEVELS] {
    let mut shape = [0.0; LEVELS];
    (shape[EQUAL], shape[7], shape[0]) = (equal, near, 1.0 - equal - near);
    shape
}

fn mixture() -> Mixture {
    Mixture {
        m: [shape(0.8, 0.15), shape(0.7, 0.2), shape(0.85, 0.05)],
        u: [shape(0.001, 0.002), shape(0.02, 0.05), shape(0.005, 0.01)],
        matched: 0.6,
        missing: 0.0,
    }
}

fn draw(shape: &[f64; LEVELS], rng: &mut impl Rng) -> u8 {
    let mut left = rng.random::<f64>();
    let level = shape.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    level.unwrap_or(EQUAL) as u8
}

struct Drawn {
    candidates: Pairs,
    decoys: Pairs,
    all: Vec<[f64; LEVELS]>,
    /// True if a row has a match, which is its first candidate.
    right: Vec<bool>,
}

/// Simulates a mixture. The share of the records with a value equals u, so that rarity adds no information.
fn drawn(mixture: &Mixture, seed: u64) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let pair = |shapes: &[[f64; LEVELS]; 3], rng: &mut ChaCha8Rng| -> Vec<(u8, f32)> {
        let fields = shapes.iter().zip(&mixture.u);
        let field = |(shape, u): (&[f64; LEVELS], &[f64; LEVELS])| {
            let level = if rng.random::<f64>() < mixture.missing { MISSING } else { draw(shape, rng) };
            (level, -u[EQUAL].ln() as f32)
        };
        fields.map(field).collect()
    };
    let (mut candidates, mut decoys) = (Pairs::new(3), Pairs::new(3));
    let mut right = Vec::new();
    let mut all: Vec<[f64; LEVELS]> =
        mixture.u.iter().map(|u| u.map(|u| u * (ROWS * RECORDS) as f64)).collect();
    for _ in 0..ROWS {
        let matched = rng.random::<f64>() < mixture.matched;
        right.push(matched);
        let first = pair(if matched { &mixture.m } else { &mixture.u }, &mut rng);
        if matched {
            let known = all.iter_mut().zip(&first).filter(|(_, (level, _))| *level != MISSING);
            known.for_each(|(all, (level, _))| all[usize::from(*level)] += 1.0);
        }
        let others: Vec<(u8, f32)> = (1..DRAWN).flat_map(|_| pair(&mixture.u, &mut rng)).collect();
        candidates.push(first.into_iter().chain(others));
        decoys.push((0..DRAWN).flat_map(|_| pair(&mixture.u, &mut rng)).collect::<Vec<_>>());
    }
    Drawn { candidates, decoys, all, right }
}

/// Learns the weights. Only the simulated records are candidates, so the prior refers to them.
fn learned(drawn: &Drawn) -> Weights {
    let (candidates, decoys, all) = (&drawn.candidates, &drawn.decoys, &drawn.all[..]);
    let (records, others) = (DRAWN, DRAWN);
    // Counts of pairs within the primary are unavailable.
    let own = vec![[0.0; LEVELS]; all.len()];
    learn(&Evidence { candidates, decoys, all, own: &own, each: 1.0, each_row: 1.0, records, others })
}

/// Returns the probability of each candidate, and true if it is the match: the first candidate of a row with
/// a match.
fn judged(weights: &Weights, drawn: &Drawn) -> Vec<(f64, bool)> {
    let of_row = |row: usize| {
        let weight = |(levels, rarities)| weights.match_weight(levels, rarities).unwrap_or(f64::NEG_INFINITY);
        let mut of_row: Vec<f64> = drawn.candidates.of_row(row).map(weight).collect();
        weights.probabilities(&mut of_row);
        let right = drawn.right[row];
        of_row.into_iter().enumerate().map(move |(at, probability)| (probability, right && at == 0))
    };
    (0..drawn.candidates.rows()).flat_map(of_row).collect()
}

/// A share of 0.7 of 2,400 matches has a standard deviation of 0.009, and a share of 0.6 of 4,000 rows has
/// 0.008. Uncertain matches add to the deviation. The tolerance is five standard deviations. Ten assumed
/// matches in 2,400 move a share by at most 0.003. For ln(m/u), levels with a share of 0.15 of the matches
/// have a standard deviation of 0.05.
#[test]
fn learns_m_u_and_the_matches_of_a_mixture() {
    for (missing, seed) in [(0.0, 1), (0.3, 2)] {
        let mixture = Mixture { missing, ..mixture() };
        let weights = learned(&drawn(&mixture, seed));
        assert!((weights.matched() - 0.6).abs() < 0.045, "{missing}: {}", weights.matched());
        for field in 0..3 {
            for level in [0, 7, EQUAL] {
                let expected = (mixture.m[field][level] / mixture.u[field][level]).ln();
                let found = weights.levels(field)[level];
                assert!(
                    (found - expected).abs() < 0.25,
                    "{missing}, field {field}, level {level}: {found}, {expected}"
                );
            }
        }
    }
}

/// The number of matches among n pairs with probability p has a standard deviation of √(np(1-p)), at most 0.5
/// √n. The tolerance is five standard deviations, doubled because the weights are estimates.
#[test]
fn probabilities_are_shares_of_what_is_right() {
    let drawn = drawn(&Mixture { missing: 0.3, ..mixture() }, 3);
    let judged = judged(&learned(&drawn), &drawn);
    for (low, high) in [(0.01, 0.1), (0.1, 0.5), (0.5, 0.9), (0.9, 1.01)] {
        let of: Vec<_> = judged.iter().filter(|(probability, _)| (low..high).contains(probability)).collect();
        let expected: f64 = of.iter().map(|(probability, _)| probability).sum();
        let found = of.iter().filter(|(_, right)| *right).count() as f64;
        assert!(of.len() > 100, "{low}: {}", of.len());
        let allowed = 10.0 * (expected * (1.0 - expected / of.len() as f64)).sqrt().max(1.0);
        assert!(
            (expected - found).abs() < allowed,
            "{low} to {high}: {found} of {} are right, {expected} expected",
            of.len()
        );
    }
}

/// Without safeguards, a field in which matches differ and non-matches agree would make non-matches the
/// matches.
#[test]
fn matches_and_non_matches_are_not_swapped() {
    let mut mixture = mixture();
    (mixture.m[2], mixture.u[2]) = (shape(0.1, 0.1), shape(0.9, 0.05));
    let drawn = drawn(&mixture, 4);
    let weights = learned(&drawn);
    for field in 0..3 {
        assert!(weights.levels(field).is_sorted(), "{field}: {:?}", weights.levels(field));
    }
    assert!((weights.matched() - 0.6).abs() < 0.08, "{}", weights.matched());
    let mean = |right| {
        let of: Vec<f64> =
            judged(&weights, &drawn).into_iter().filter(|pair| pair.1 == right).map(|pair| pair.0).collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    assert!(mean(true) > 0.7 && mean(false) < 0.01, "{} {}", mean(true), mean(false));
}

#[test]
fn expects_no_matches_among_non_matches() {
    let drawn = drawn(&Mixture { matched: 0.0, ..mixture() }, 5);
    let weights = learned(&drawn);
    let expected: f64 = judged(&weights, &drawn).iter().map(|pair| pair.0).sum();
    assert!(weights.matched() < 0.02 && expected < 80.0, "{} {expected}", weights.matched());
}

/// Fields that also agree together by chance are evidence only once, and decoys reveal such fields.
#[test]
fn agreement_that_decoys_share_is_not_a_match() {
    let mut mixture = Mixture { matched: 0.1, ..mixture() };
    (mixture.m[2], mixture.u[2]) = (shape(0.3, 0.3), shape(0.3, 0.3));
    let mut drawn = drawn(&mixture, 6);
    // A tenth of some candidates' and decoys' pairs agree in both informative fields at once.
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for pairs in [&mut drawn.candidates, &mut drawn.decoys] {
        for (at, levels) in pairs.levels.chunks_mut(3).enumerate() {
            if at % DRAWN > 30 && rng.random::<f64>() < 0.1 {
                (levels[0], levels[1]) = (7, 7);
            }
        }
    }
    let with = learned(&drawn).matched();
    drawn.decoys = Pairs::new(3);
    let without = learned(&drawn).matched();
    assert!((with - 0.1).abs() < 0.07 && without > 0.3, "{with} {without}");
}

#[test]
fn missing_fields_have_no_weight() {
    let weights = learned(&drawn(&mixture(), 8));
    let common = [0.001f32, 0.02, 0.005].map(|share| -share.ln());
    let both = weights.match_weight(&[10, 10, MISSING], &common).expect("two fields");
    let one = weights.match_weight(&[10, MISSING, MISSING], &common).expect("a field");
    let other = weights.match_weight(&[MISSING, 10, MISSING], &common).expect("a field");
    assert!((both - one - other).abs() < 1e-9);
    assert_eq!(weights.match_weight(&[MISSING; 3], &common), None);
    let rare = weights
        .match_weight(&[10, MISSING, MISSING], &[-0.0001f32.ln(), common[1], common[2]])
        .expect("a field");
    assert!((rare - one - 10f64.ln()).abs() < 1e-5, "a rarer value has a larger weight");
}

#[test]
fn threads_change_nothing() {
    let drawn = drawn(&mixture(), 9);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| learned(&drawn))
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn weights_rise_and_what_falls_is_pooled() {
    let (mut m, mut u) = ([1.0 / LEVELS as f64; LEVELS], [1.0 / LEVELS as f64; LEVELS]);
    assert_eq!(rising(&m, &u), [0.0; LEVELS]);
    (m[3], u[4]) = (0.4, 0.4);
    let found = rising(&m, &u);
    assert!(found.is_sorted());
    let pooled = ((m[3] + m[4]) / (u[3] + u[4])).ln();
    assert!((found[3] - pooled).abs() < 1e-12 && found[3] == found[4]);
}

/// A field in which no match is equal and few are near. Only the pairs within the primary, none of which are
/// near, show that non-matches are not near.
#[test]
fn pairs_within_the_primary_tell_how_near_others_come() {
    let rarity = 8.0;
    let row = |first: u8| [first, 3, 3, 3, 3].map(|level| (level, rarity));
    let (mut candidates, mut decoys) = (Pairs::new(1), Pairs::new(1));
    for at in 0..100 {
        candidates.push(row([8, 7, 6, 5, 5][at / 20]));
        decoys.push(row(5));
    }
    let all = [[7_500.0, 0.0, 0.0, 2_000.0, 300.0, 120.0, 30.0, 30.0, 20.0, 0.0, 0.0]];
    let own = [[7_500.0, 0.0, 0.0, 2_000.0, 300.0, 200.0, 0.0, 0.0, 0.0, 0.0, 0.0]];
    let matched = |own: &[[f64; LEVELS]]| {
        let (candidates, decoys, all) = (&candidates, &decoys, &all);
        learn(&Evidence { candidates, decoys, all, own, each: 1.0, each_row: 1.0, records: 100, others: 99 })
            .matched()
    };
    let (known, unknown) = (matched(&own), matched(&[[0.0; LEVELS]]));
    assert!((known - 0.6).abs() < 0.1 && unknown < known - 0.1, "{known} {unknown}");
}
