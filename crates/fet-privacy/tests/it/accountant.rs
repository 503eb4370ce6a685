//! Compares the accountant with figures of an independent library, and checks its consistency at the edges.

use fet_privacy::accountant::{Account, AccountError, Event, noise_for, pld};

/// (q, σ, T, δ, PLD ε, RDP ε); the first two PLD figures are exact.
const GOLDEN: [(f64, f64, u64, f64, f64, f64); 8] = [
    (1.0, 1.0, 1, 1e-5, 4.377178, 4.728507),
    (1.0, 4.0, 100, 1e-5, 13.206712, 14.132226),
    (0.01, 1.0, 1_000, 1e-5, 1.828244, 2.101367),
    (0.01, 1.0, 10_000, 1e-5, 6.187745, 6.712757),
    (0.01, 4.0, 10_000, 1e-5, 0.946999, 1.035490),
    (0.1, 1.0, 100, 1e-5, 7.046603, 7.903850),
    (0.1, 2.0, 1_000, 1e-5, 8.279293, 8.946957),
    (0.001, 0.7, 10_000, 1e-6, 1.636972, 2.473040),
];

fn account(noise: f64, rate: f64, steps: u64, delta: f64) -> Result<Account, AccountError> {
    Account::from_events(&[Event { noise, rate, steps }], delta)
}

#[test]
fn golden_figures() {
    for (rate, noise, steps, delta, pld, rdp) in GOLDEN {
        let found = account(noise, rate, steps, delta).expect("in range");
        assert!((found.pld - pld).abs() < 1e-3, "{rate} {noise} {steps}: {} {pld}", found.pld);
        assert!((found.rdp / rdp - 1.0).abs() < 0.01, "{rate} {noise} {steps}: {} {rdp}", found.rdp);
        assert!(found.rdp >= found.pld, "{rate} {noise} {steps}: {} {}", found.rdp, found.pld);
        assert_eq!(found.exact.is_some(), rate == 1.0);
    }
}

/// If the exact figure is known, the numerical one is close to it and never below it.
#[test]
fn loss_distributions_are_never_below_the_exact_figure_and_close_to_it() {
    for (noise, steps, delta) in [
        (1.0, 1, 1e-5),
        (4.0, 100, 1e-5),
        (0.3, 1, 1e-8),
        (50.0, 10_000, 1e-6),
        (1.0, 1, 1e-30),
        (300.0, 1_000_000, 1e-9),
    ] {
        let difference = pld::exact_difference(noise, steps, delta);
        let exact = account(noise, 1.0, steps, delta).expect("in range").epsilon();
        let allowed = 1e-4f64.max(2e-5 * exact);
        assert!((0.0..allowed).contains(&difference), "{noise} {steps} {delta}: {difference:e}");
    }
}

/// The definition of one release can be integrated directly: δ(ε) = E_P[(1 − e^{ε−L})₊], here by a midpoint
/// rule, for both directions.
#[test]
fn one_sampled_release_agrees_with_its_definition() {
    for (noise, rate, delta) in [(1.0, 0.1, 1e-5), (0.5, 0.3, 1e-6), (2.0, 0.01, 1e-4), (0.8, 0.9, 1e-9)] {
        let normal = |x: f64, mean: f64| {
            (-0.5 * ((x - mean) / noise).powi(2)).exp() / (noise * 2.506_628_274_631_000_5)
        };
        let mixture = |x: f64| (1.0 - rate) * normal(x, 0.0) + rate * normal(x, 1.0);
        let lost = |epsilon: f64| {
            let step = noise / 4_000.0;
            let count = ((1.0 + 24.0 * noise) / step) as usize;
            let points = (0..count).map(|index| -12.0 * noise + (index as f64 + 0.5) * step);
            let (mut remove, mut add) = (0.0, 0.0);
            for x in points {
                remove += step * (mixture(x) - epsilon.exp() * normal(x, 0.0)).max(0.0);
                add += step * (normal(x, 0.0) - epsilon.exp() * mixture(x)).max(0.0);
            }
            f64::max(remove, add)
        };
        let found = account(noise, rate, 1, delta).expect("in range").pld;
        assert!(lost(found) <= delta * (1.0 + 1e-6), "{noise} {rate}: {found} is below the truth");
        assert!(lost(found - 2e-4) > delta, "{noise} {rate}: {found} is far above the truth");
    }
}

/// Sampling never costs more than no sampling, smaller inputs never cost more, and no result is NaN.
#[test]
fn edges_have_answers() {
    for (noise, rate, steps, delta) in [
        (1.0, 1e-9, 1, 1e-5),
        (1.0, 1e-6, 1_000_000, 1e-10),
        (0.01, 0.1, 1, 1e-5),
        (0.05, 0.01, 1_000, 1e-5),
        (1e4, 0.5, 1_000_000, 1e-6),
        (1e7, 0.5, 1, 1e-6),
        (2.0, 0.999_999, 10, 1e-5),
        (1.0, 0.5, 1, 0.5),
        (1.0, 0.01, 1_000, 1e-300),
        (1.0, 1e-300, 10, 1e-5),
        (3.0, 0.05, 1_000_000, 1e-12),
    ] {
        let found = account(noise, rate, steps, delta).expect("in range");
        let whole = account(noise, 1.0, steps, delta).expect("in range").epsilon();
        let what = format!("{noise} {rate} {steps} {delta:e}: {found:?}, unsampled {whole}");
        assert!(found.pld >= 0.0 && found.pld <= found.rdp && found.rdp.is_finite(), "{what}");
        assert!(found.pld <= whole + 1e-4, "{what}");
    }
    for (noise, rate, steps) in [(0.5, 0.0, 10), (1.0, 0.2, 0)] {
        let found = account(noise, rate, steps, 1e-5).expect("in range");
        assert_eq!((found.pld, found.rdp, found.epsilon()), (0.0, 0.0, 0.0), "nothing is released");
    }
}

#[test]
fn kinds_of_releases_add_up() {
    let (a, b) = (Event { noise: 1.0, rate: 0.1, steps: 50 }, Event { noise: 2.0, rate: 1.0, steps: 2 });
    let cost = |events: &[Event]| Account::from_events(events, 1e-5).expect("in range").pld;
    let (first, second, both) = (cost(&[a]), cost(&[b]), cost(&[a, b]));
    assert!(both > first.max(second) && both < first + second + 1e-3, "{first} {second} {both}");
    let halves = [Event { steps: 25, ..a }, b, Event { steps: 25, ..a }];
    assert!((cost(&halves) - both).abs() < 1e-4, "{} {both}", cost(&halves));
}

#[test]
fn noise_is_found_for_a_target() {
    for (epsilon, delta, rate, steps) in [
        (3.0, 1e-5, 1.0, 1u64),
        (1.828244, 1e-5, 0.01, 1_000),
        (8.0, 1e-5, 0.1, 1_000),
        (0.01, 1e-6, 0.01, 100),
        (50.0, 1e-6, 0.2, 10),
    ] {
        let event = |noise| vec![Event { noise, rate, steps }];
        let noise = noise_for(epsilon, delta, event).expect("reachable");
        let cost = |noise: f64| Account::from_events(&event(noise), delta).expect("in range").epsilon();
        assert!(cost(noise) <= epsilon, "{epsilon}: {noise}");
        assert!(cost(noise * (1.0 - 1e-5)) > epsilon, "{epsilon}: less than {noise} would do");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (noise, rate, steps, delta, field) in [
        (1.0, 1.0, 1, 0.0, "delta"),
        (1.0, 1.0, 1, 1.0, "delta"),
        (1.0, 1.0, 1, f64::NAN, "delta"),
        (0.0, 1.0, 1, 1e-5, "noise"),
        (f64::NAN, 1.0, 1, 1e-5, "noise"),
        (f64::INFINITY, 1.0, 1, 1e-5, "noise"),
        (1.0, -0.1, 1, 1e-5, "rate"),
        (1.0, 1.1, 1, 1e-5, "rate"),
        (1.0, 0.5, u64::MAX, 1e-5, "steps"),
    ] {
        let error = account(noise, rate, steps, delta).expect_err(field).to_string();
        assert!(error.contains(field), "{error}");
    }
    let event = |noise| vec![Event { noise, rate: 1.0, steps: 1_000_000 }];
    let error = noise_for(1e-9, 1e-300, event).expect_err("out of reach").to_string();
    assert!(error.contains("out of reach"), "{error}");
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(noise_for(epsilon, 1e-5, event).is_err(), "{epsilon}");
    }
}
