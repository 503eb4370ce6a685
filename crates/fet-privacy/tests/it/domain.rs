//! Tests the accountant over its whole domain. A figure is never below the lower bound of a test, never above
//! another upper bound, and never smaller for a run that reveals more.

mod lower;

use std::time::{Duration, Instant};

use fet_privacy::accountant::{Account, Event, MOST_STEPS, NOISE_RANGE};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

#[derive(Debug, Clone, Copy)]
struct Setting {
    rate: f64,
    noise: f64,
    steps: u64,
    delta: f64,
}

impl Setting {
    fn account(self) -> Account {
        let Self { rate, noise, steps, delta } = self;
        Account::from_events(&[Event { noise, rate, steps }], delta).expect("in range")
    }
}

/// Draws settings log-uniformly over the domain, each value at an end of it one time in sixteen. Half of the
/// settings are in the range of real runs.
fn settings(count: usize, seed: u64) -> Vec<Setting> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |low: f64, high: f64| match rng.random_range(0..32) {
        0 => low,
        1 => high,
        _ => (rng.random_range(low.ln()..=high.ln())).exp().clamp(low, high),
    };
    let mut setting = |index: usize| {
        let usual = index.is_multiple_of(2);
        let (noise, steps) = if usual { ((0.3, 100.0), 1e6) } else { (NOISE_RANGE, MOST_STEPS as f64) };
        let (rate, delta) = if usual { (1e-4, (1e-12, 0.1)) } else { (1e-12, (1e-300, 0.999)) };
        Setting {
            rate: draw(rate, 1.0),
            noise: draw(noise.0, noise.1),
            steps: draw(1.0, steps).round() as u64,
            delta: draw(delta.0, delta.1),
        }
    };
    (0..count).map(&mut setting).collect()
}

/// Returns the number of settings in the sweep; `FET_SETTINGS` changes it.
fn sweep() -> usize {
    std::env::var("FET_SETTINGS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000)
}

/// Relative and absolute precision to which bounds are compared.
const ROUNDING: f64 = 1e-9;

#[test]
fn no_figure_is_below_what_a_test_betrays_or_above_another_bound() {
    let settings = settings(sweep(), 1);
    let rows: Vec<(f64, f64, Duration)> = settings
        .par_iter()
        .map(|setting| {
            let start = Instant::now();
            let account = setting.account();
            let time = start.elapsed();
            let found = account.epsilon();
            let least = lower::epsilon(setting.rate, setting.noise, setting.steps, setting.delta);
            let rounding = ROUNDING * (1.0 + found);
            assert!(found >= least - rounding, "{setting:?}: {account:?} is below {least}");
            assert!(account.pld <= account.rdp + rounding, "{setting:?}: {account:?}");
            assert!(account.pld.is_finite() && account.rdp.is_finite(), "{setting:?}: {account:?}");
            (found, least, time)
        })
        .collect();
    let share = |what: fn(&(f64, f64, Duration)) -> bool| {
        rows.iter().filter(|row| what(row)).count() as f64 / rows.len() as f64
    };
    // The bounds can detect a wrong figure: they are above 0, and often not much below the figure.
    assert!(share(|row| row.1 > 1e-3) > 0.5, "{}", share(|row| row.1 > 1e-3));
    assert!(share(|row| row.1 > 1e-3 && row.1 > 0.8 * row.0) > 0.3, "{}", share(|row| row.1 > 0.8 * row.0));
    let slowest = rows.iter().map(|row| row.2).max().expect("rows");
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    if std::env::var_os("FET_SETTINGS").is_some() {
        let over = |limit: u64| rows.iter().filter(|row| row.2 > Duration::from_millis(limit)).count();
        eprintln!(
            "{} settings, slowest {slowest:?}, above 100 ms {}, above 1 s {}",
            rows.len(),
            over(100),
            over(1000)
        );
    }
}

/// A run that reveals more never costs less, up to the looseness of the grid: a thousandth of ε, and at least
/// a thousandth.
#[test]
fn less_noise_more_releases_a_higher_rate_or_a_smaller_delta_never_cost_less() {
    let settings = settings(sweep() / 10, 2);
    settings.par_iter().for_each(|setting| {
        let here = setting.account().epsilon();
        let Setting { rate, noise, steps, delta } = *setting;
        let more = [
            Setting { rate: (1.5 * rate).min(1.0), ..*setting },
            Setting { noise: (noise / 1.5).max(NOISE_RANGE.0), ..*setting },
            Setting { steps: (2 * steps).min(MOST_STEPS), ..*setting },
            Setting { delta: (delta / 10.0).max(1e-300), ..*setting },
        ];
        for worse in more {
            let there = worse.account().epsilon();
            assert!(there >= here - 1e-3 * (1.0 + here), "{setting:?} {here}, {worse:?} {there}");
        }
    });
}

/// Every combination of ends, and values just inside, has a figure that is not below the lower bound.
#[test]
fn the_corners_of_the_domain_have_figures() {
    let mut all = Vec::new();
    for rate in [0.0, 1e-300, 1e-12, 0.3, 1.0 - 1e-12, 1.0] {
        for noise in [1e-6, 0.01, 0.5, 1e6] {
            for steps in [0, 1, 1_000_000, MOST_STEPS] {
                for delta in [1e-300, 1e-30, 1e-5, 0.999] {
                    all.push(Setting { rate, noise, steps, delta });
                }
            }
        }
    }
    all.par_iter().for_each(|setting| {
        let Setting { rate, noise, steps, delta } = *setting;
        let account = setting.account();
        let found = account.epsilon();
        let least = if rate > 0.0 && steps > 0 { lower::epsilon(rate, noise, steps, delta) } else { 0.0 };
        assert!(found >= least - ROUNDING * (1.0 + found), "{setting:?}: {account:?} is below {least}");
        assert!(
            account.pld >= 0.0 && account.pld <= account.rdp * (1.0 + ROUNDING) + ROUNDING,
            "{setting:?}: {account:?}"
        );
    });
}

/// Settings for which a NaN bound once counted as 0.
#[test]
fn no_number_is_not_a_small_number() {
    for (rate, noise, steps) in
        [(0.9, 0.01, 100_000_000), (0.5, 0.01, 1_000_000_000), (0.99, 0.02, 900_000_000)]
    {
        let account = Setting { rate, noise, steps, delta: 1e-5 }.account();
        // Each release with the record causes a loss of about 1/2σ².
        let typical = rate * steps as f64 / (2.0 * noise * noise);
        assert!(account.pld > 0.9 * typical && account.pld < 1.3 / rate * typical, "{account:?}, {typical}");
    }
}
