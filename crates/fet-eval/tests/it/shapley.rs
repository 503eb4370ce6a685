//! Laws of Shapley values, on games with known values.

use std::convert::Infallible;

use fet_eval::ChaCha8Rng;
use fet_eval::shapley::{Shapley, ShapleyError, shapley};
use rand::SeedableRng;

fn values(players: usize, pairs: usize, game: impl Fn(&[bool]) -> f64) -> Shapley {
    let mut asked = std::collections::BTreeSet::new();
    let ask = |coalition: &[bool]| {
        assert!(asked.insert(coalition.to_vec()), "asked twice for {coalition:?}");
        Ok::<_, Infallible>(game(coalition))
    };
    let found = shapley(players, pairs, ask, &mut ChaCha8Rng::seed_from_u64(8)).expect("values");
    assert_eq!(found.coalitions, asked.len());
    // Efficiency.
    let sum: f64 = found.values.iter().sum();
    assert!((sum - (found.all - found.none)).abs() < 1e-9, "{sum} is not {} - {}", found.all, found.none);
    found
}

#[track_caller]
fn check(found: &Shapley, expect: &[f64], tolerance: f64) {
    assert_eq!(found.values.len(), expect.len());
    for (given, expect) in found.values.iter().zip(expect) {
        assert!((given - expect).abs() <= tolerance, "{:?} is not {expect:?}", found.values);
    }
}

fn size(coalition: &[bool]) -> usize {
    coalition.iter().filter(|is_in| **is_in).count()
}

#[test]
fn small_games_are_exact() {
    // One left glove and two right ones; a pair has value 1 (the textbook's 4/6, 1/6, 1/6).
    let gloves = |c: &[bool]| f64::from(u8::from(c[0] && (c[1] || c[2])));
    let found = values(3, 0, gloves);
    check(&found, &[4.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0], 1e-12);
    assert_eq!((found.coalitions, found.errors), (8, None));
    // A sum plus a bonus that players 0 and 1 earn together and share. Player 2 is a dummy; v(none) belongs
    // to no player.
    let bonus = |c: &[bool]| 5.0 + f64::from(u8::from(c[0])) + if c[0] && c[1] { 3.0 } else { 0.0 };
    check(&values(3, 0, bonus), &[2.5, 1.5, 0.0], 1e-12);
    check(&values(1, 0, |c| if c[0] { 7.0 } else { 3.0 }), &[4.0], 0.0);
    let eight = values(8, 0, |c| (size(c) as f64).powi(2));
    check(&eight, &[8.0; 8], 1e-12);
    assert_eq!(eight.coalitions, 256);
}

#[test]
fn large_games_are_sampled() {
    // A sum is exact for any order. A game of pairs is exact for any order and its reverse.
    let weight = |player: usize| player as f64 - 3.0;
    let sum = |c: &[bool]| (0..10).filter(|player| c[*player]).map(weight).sum::<f64>();
    check(&values(10, 2, sum), &(0..10).map(weight).collect::<Vec<_>>(), 1e-12);
    let pairs = |c: &[bool]| (size(c) as f64).powi(2);
    check(&values(10, 2, pairs), &[10.0; 10], 1e-12);
    // Only players 0 to 3 together have a value: 1/4 each. One pair of orders gives a player 0, 1/2 or 1. The
    // standard error of 500 pairs is below 0.5/√500 = 0.0224, and five of them (α < 1e-5 for ten players) are
    // 0.112.
    let unanimous = |c: &[bool]| f64::from(u8::from(c[..4].iter().all(|is_in| *is_in)));
    let found = values(10, 500, unanimous);
    let expect: Vec<f64> = (0..10).map(|player| if player < 4 { 0.25 } else { 0.0 }).collect();
    let errors = found.errors.clone().expect("sampled");
    for player in 0..10 {
        let bound = 5.0 * errors[player];
        assert!((found.values[player] - expect[player]).abs() <= bound, "{:?}", found.values);
        assert!(if player < 4 { (0.005..0.0224).contains(&errors[player]) } else { errors[player] == 0.0 });
    }
}

#[test]
fn refuses_invalid_games() {
    let with = |players, pairs, value: Result<f64, &'static str>| {
        shapley(players, pairs, |_| value, &mut ChaCha8Rng::seed_from_u64(1)).expect_err("refused")
    };
    assert_eq!(with(0, 9, Ok(1.0)), ShapleyError::NoPlayers);
    assert_eq!(with(9, 1, Ok(1.0)), ShapleyError::Pairs(1));
    assert_eq!(with(2, 0, Err("no")), ShapleyError::Value("no"));
    assert!(with(2, 0, Ok(f64::INFINITY)).to_string().contains("players [] is inf"));
}
