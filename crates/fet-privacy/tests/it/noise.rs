//! The integer noise is the discrete Gaussian, and the mechanism built on it keeps the claimed ε.

use fet_privacy::accountant::{Account, Event};
use fet_privacy::audit::epsilon_lower_bound;
use fet_privacy::noise::{
    DiscreteGaussian, LEAST_DEVIATION, MOST_DEVIATION, RELATIVE_ERROR, Slack, TAIL_MASS,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn draw(deviation: f64, count: usize, seed: u64) -> Vec<i32> {
    let mut values = vec![0; count];
    DiscreteGaussian::new(deviation)
        .expect("in range")
        .fill(&mut values, &mut ChaCha8Rng::seed_from_u64(seed));
    values
}

/// Returns Pearson's χ² of values against D(s) in cells of several outcomes each, as a number of standard
/// deviations of χ² by the Wilson-Hilferty approximation.
fn misfit(values: &[i32], deviation: f64) -> f64 {
    let density = |k: i64| (-0.5 * (k as f64 / deviation).powi(2)).exp();
    let reach = (6.0 * deviation) as i64;
    let total: f64 = (-2 * reach..=2 * reach).map(density).sum();
    // Cells of equal width; tail cells are joined until each expects at least 20 values.
    let width = (deviation / 8.0).ceil() as i64;
    let mut cells: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    let mut counts = std::collections::HashMap::new();
    values.iter().for_each(|&value| *counts.entry(i64::from(value)).or_insert(0u64) += 1);
    for k in -2 * reach..=2 * reach {
        open.0 += counts.get(&k).map_or(0.0, |&count| count as f64);
        open.1 += density(k) / total * values.len() as f64;
        if (k + 2 * reach) % width == width - 1 && open.1 >= 20.0 {
            cells.push(open);
            open = (0.0, 0.0);
        }
    }
    if let Some(last) = cells.last_mut() {
        *last = (last.0 + open.0, last.1 + open.1);
    }
    assert!(cells.len() > 20, "{deviation}: {} cells", cells.len());
    let statistic: f64 = cells.iter().map(|(found, expected)| (found - expected).powi(2) / expected).sum();
    let freedom = (cells.len() - 1) as f64;
    ((statistic / freedom).cbrt() - 1.0 + 2.0 / (9.0 * freedom)) / (2.0 / (9.0 * freedom)).sqrt()
}

/// 4.75 standard deviations: α = 1e-6 for each of the ten tests.
const LIMIT: f64 = 4.75;

#[test]
fn values_follow_the_discrete_gaussian() {
    for deviation in [8.0, 33.3, 160.0, 161.0, 1_000.0, 40_000.0] {
        let misfit = misfit(&draw(deviation, 1_000_000, 1), deviation);
        assert!(misfit < LIMIT, "{deviation}: {misfit}");
    }
}

#[test]
fn sums_of_shares_follow_the_discrete_gaussian_of_the_whole_variance() {
    for (parties, share) in [(2, 8.0), (10, 50.0), (50, 400.0)] {
        let mut sum = vec![0i32; 400_000];
        for party in 0..parties {
            let values = draw(share, sum.len(), 100 + party);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        let misfit = misfit(&sum, share * (parties as f64).sqrt());
        assert!(misfit < LIMIT, "{parties} of {share}: {misfit}");
    }
}

#[test]
fn a_wrong_deviation_would_be_seen() {
    let misfit = misfit(&draw(163.0, 1_000_000, 1), 160.0);
    assert!(misfit > LIMIT, "{misfit}");
}

#[test]
fn a_stream_gives_the_same_values_however_many_are_drawn() {
    let (few, many) = (draw(300.0, 40_000, 7), draw(300.0, 100_000, 7));
    assert_eq!(few[..32_768], many[..32_768]);
    assert_ne!(few[..100], draw(300.0, 100, 8)[..]);
}

#[test]
fn deviations_out_of_range_are_refused() {
    for deviation in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.99 * LEAST_DEVIATION, 1.01 * MOST_DEVIATION] {
        let error = DiscreteGaussian::new(deviation).expect_err("out of range").to_string();
        assert!(error.contains("units"), "{error}");
    }
}

#[test]
fn imperfect_tables_cost_next_to_nothing() {
    // 10,000 steps of 50 parties with 2.5 million values each.
    let slack = Slack::for_draws(1.25e12);
    assert!(slack.epsilon() < 2e-6, "{slack:?}");
    let left = slack.delta_left(1e-5, 3.0);
    assert!(left < 1e-5 && left > 0.85e-5, "{left}");
}

/// Computes the terms of the lemma from the stated errors of one look-up. Each value takes two look-ups, and
/// misplaced mass counts on both neighbouring inputs.
#[test]
fn the_slack_charges_what_is_misplaced_twice() {
    let (values, delta, epsilon) = (1e12, 1e-5, 2.0);
    let (eta, lambda, tau) = (RELATIVE_ERROR, TAIL_MASS, 1e-24f64);
    let (looks, c) = (2.0 * values, eta / (1.0 - eta) + 2.0 * lambda);
    let a = looks * (2.0 * c * c + 2.0 * lambda) + c * (2.0 * looks * (1.0 / tau).ln()).sqrt();
    let slack = Slack::for_draws(values);
    assert!(slack.epsilon() >= 2.0 * a * (1.0 - 1e-12), "{slack:?}");
    let left = slack.delta_left(delta, epsilon);
    let whole = a.exp() * left + (1.0 + (epsilon + a).exp()) * (tau + looks * lambda);
    assert!(whole <= delta && whole > 0.98 * delta, "{whole:e}");
}

/// Returns statistics of the sum over four parties on two inputs that differ by the sensitivity, 64 units.
/// The parties' shares add up to noise of `multiplier` times the sensitivity.
fn statistics(multiplier: f64) -> (Vec<f64>, Vec<f64>) {
    let (parties, sensitivity, trials) = (4u64, 64.0, 1_000_000);
    let sums = |seed: u64| {
        let mut sum = vec![0i32; trials];
        for party in 0..parties {
            let values = draw(multiplier * sensitivity / 2.0, trials, seed + party);
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        sum
    };
    let with = sums(10).into_iter().map(|value| (f64::from(value) + sensitivity) / sensitivity).collect();
    (with, sums(20).into_iter().map(|value| f64::from(value) / sensitivity).collect())
}

/// α = 1e-6. At three deviations from the input without the record, the two inputs differ as much as a
/// million trials can show.
#[test]
fn an_audit_finds_no_more_than_is_claimed_and_refutes_a_false_claim() {
    let (delta, alpha) = (1e-5, 1e-6);
    let claim = Account::from_events(&[Event { noise: 1.0, rate: 1.0, steps: 1 }], delta)
        .expect("in range")
        .epsilon();
    let (with, without) = statistics(1.0);
    let found = epsilon_lower_bound(&with, &without, 3.0, delta, alpha);
    assert!(found <= claim, "{found} of {claim}");
    assert!(found > 0.5 * claim, "the audit has power: {found} of {claim}");
    // Half the noise under the same claim.
    let (with, without) = statistics(0.5);
    let found = epsilon_lower_bound(&with, &without, 1.6, delta, alpha);
    assert!(found > claim, "{found} refutes {claim}");
}
