//! The exact loss of releases, computed independently of the accountant.
//!
//! The noise in units of the sensitivity comes from the paper's formulas. Without sampling, δ is an integral
//! of the privacy loss. With sampling, the sum of rounded losses gives a lower bound on δ.

use super::super::super::ledger::Entry;
use super::{DELTA, RELEASES, Run};

/// Step of the grid of losses.
const STEP: f64 = 0.01;

/// Releases that have left a party.
#[derive(Debug, Default)]
pub(super) struct Exact {
    /// Σ 1/σ² of the releases without sampling.
    squares: f64,
    /// Noise and rate of each release with sampling.
    sampled: Vec<(f64, f64)>,
}

/// Returns the value of a setting; 0 if it is missing.
fn number(settings: &str, name: &str) -> f64 {
    let table: toml::Table = settings.parse().expect("TOML");
    table.get(name).and_then(toml::Value::as_float).unwrap_or(0.0)
}

impl Exact {
    /// Adds a release of a run whose models learn: a record may change all of its rows.
    pub(super) fn add(&mut self, run: &Run, entry: Entry) {
        self.squares += 1.0 / multiplier(run, entry.active, RELEASES.rows).powi(2);
    }

    /// Adds a pass of a run with frozen models, with the smallest number of active parties in the pass.
    pub(super) fn add_pass(&mut self, run: &Run, fewest: usize) {
        let noise = multiplier(run, fewest, RELEASES.all_rows);
        match number(&run.settings, "sample_rate") {
            rate if rate > 0.0 && rate < 1.0 => self.sampled.push((noise, rate)),
            _ => self.squares += 1.0 / (noise * noise),
        }
    }

    /// Adds a number of Gaussian releases with this noise.
    pub(super) fn add_noise(&mut self, noise: f64, releases: u64) {
        self.squares += releases as f64 / (noise * noise);
    }

    pub(super) fn squares(&self) -> f64 {
        self.squares
    }

    pub(super) fn is_sampled(&self) -> bool {
        !self.sampled.is_empty()
    }

    /// Checks that ε is at least the exact one; and, if `tight`, that it is not larger either. `tight`
    /// requires that no release was reserved or lost.
    pub(super) fn check(&self, epsilon: f64, tight: bool, place: &str) {
        if epsilon == f64::INFINITY {
            assert!(self.delta(40.0) > DELTA, "{place}: unbounded");
            return;
        }
        let found = self.delta(epsilon + 1e-7);
        assert!(found <= DELTA * (1.0 + 1e-6), "{place}: ε = {epsilon} has δ = {found:e}");
        if tight && !self.is_sampled() && epsilon > 1e-3 {
            let found = self.delta(epsilon * (1.0 - 1e-3));
            assert!(found > DELTA, "{place}: ε = {epsilon} is more than needed, with δ = {found:e} below it");
        }
    }

    /// Returns the smallest δ at ε; with sampling, a lower bound on it.
    fn delta(&self, epsilon: f64) -> f64 {
        if self.sampled.is_empty() {
            of_gaussian(self.squares.sqrt(), epsilon)
        } else {
            self.of_mixture(epsilon)
        }
    }

    /// Adds up losses, rounded down to a grid, release by release, for one record removed or added.
    fn of_mixture(&self, epsilon: f64) -> f64 {
        let removed = self.sampled.iter().map(|&(noise, rate)| Losses::removed(noise, rate));
        let added = self.sampled.iter().map(|&(noise, rate)| Losses::added(noise, rate));
        let rest = (self.squares > 0.0).then(|| Losses::removed(1.0 / self.squares.sqrt(), 1.0));
        let one =
            removed.chain(rest.clone()).reduce(|a, b| a.with(&b)).map_or(0.0, |losses| losses.delta(epsilon));
        let other = added.chain(rest).reduce(|a, b| a.with(&b)).map_or(0.0, |losses| losses.delta(epsilon));
        one.max(other)
    }
}

/// Returns the noise of a release in units of its sensitivity (paper, section 6).
fn multiplier(run: &Run, active: usize, rows: usize) -> f64 {
    let mechanism = run.mechanism();
    let noise = mechanism.spent(&RELEASES, &[]).guarantee.expect("a guarantee").noise;
    let tight = 2.0 / active as f64;
    let sensitivity = match () {
        () if run.settings.contains("\"record\"") || run.settings.contains("\"add-remove\"") => tight,
        () => 2.0,
    };
    noise / (sensitivity * (rows as f64).sqrt())
}

/// Returns δ of a Gaussian mechanism with this μ: ∫ max(0, p − e^ε q), by Simpson's rule from the point p =
/// e^ε q.
fn of_gaussian(mu: f64, epsilon: f64) -> f64 {
    if mu == 0.0 {
        return 0.0;
    }
    const STEPS: usize = 2000;
    let low = epsilon / mu + mu / 2.0;
    let high = low.max(mu) + 14.0;
    let value = |x: f64| {
        let log = -0.5 * (x - mu).powi(2) - 0.5 * (2.0 * std::f64::consts::PI).ln();
        log.exp() * -(epsilon - mu * x + mu * mu / 2.0).exp_m1()
    };
    let width = (high - low) / STEPS as f64;
    let weight = |place: usize| match place {
        0 | STEPS => 1.0,
        place if place % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=STEPS).map(|place| weight(place) * value(low + place as f64 * width)).sum::<f64>() * width / 3.0
}

/// Probabilities of losses `first`, `first` + 1, … in units of the grid.
#[derive(Debug, Clone)]
struct Losses {
    first: i64,
    masses: Vec<f64>,
}

impl Losses {
    /// Returns the loss ln(p/q) under p, where p is the mixture of N(0, σ²) and N(1, σ²), and q is N(0, σ²).
    fn removed(noise: f64, rate: f64) -> Self {
        let density = move |x: f64| (1.0 - rate) * normal(x, 0.0, noise) + rate * normal(x, 1.0, noise);
        Self::from_density(noise, density, move |x| ratio(x, noise, rate))
    }

    /// Returns the loss ln(q/p) under q.
    fn added(noise: f64, rate: f64) -> Self {
        Self::from_density(noise, move |x| normal(x, 0.0, noise), move |x| -ratio(x, noise, rate))
    }

    fn from_density(noise: f64, density: impl Fn(f64) -> f64, loss: impl Fn(f64) -> f64) -> Self {
        const CELLS: usize = 40_000;
        let (low, high) = (-9.0 * noise, 1.0 + 9.0 * noise);
        let width = (high - low) / CELLS as f64;
        let cells = (0..CELLS).map(|cell| low + (cell as f64 + 0.5) * width);
        let all: Vec<(i64, f64)> =
            cells.map(|x| ((loss(x) / STEP).floor() as i64 - 1, density(x) * width)).collect();
        let first = all.iter().map(|(loss, _)| *loss).min().expect("cells");
        let last = all.iter().map(|(loss, _)| *loss).max().expect("cells");
        let mut masses = vec![0.0; (last - first + 1) as usize];
        all.into_iter().for_each(|(loss, mass)| masses[(loss - first) as usize] += mass);
        Self { first, masses }
    }

    fn with(&self, other: &Self) -> Self {
        let mut masses = vec![0.0; self.masses.len() + other.masses.len() - 1];
        for (place, mass) in self.masses.iter().enumerate() {
            other.masses.iter().zip(&mut masses[place..]).for_each(|(other, sum)| *sum += mass * other);
        }
        Self { first: self.first + other.first, masses }
    }

    fn delta(&self, epsilon: f64) -> f64 {
        let losses = self
            .masses
            .iter()
            .enumerate()
            .map(|(place, mass)| ((self.first + place as i64) as f64 * STEP, mass));
        losses.filter(|(loss, _)| *loss > epsilon).map(|(loss, mass)| -(epsilon - loss).exp_m1() * mass).sum()
    }
}

fn normal(x: f64, mean: f64, deviation: f64) -> f64 {
    (-0.5 * ((x - mean) / deviation).powi(2)).exp() / (deviation * (2.0 * std::f64::consts::PI).sqrt())
}

fn ratio(x: f64, noise: f64, rate: f64) -> f64 {
    (rate * ((2.0 * x - 1.0) / (2.0 * noise * noise)).exp_m1()).ln_1p()
}

/// Values from the accounting literature validate this computation.
#[test]
fn exact_figures_are_those_of_the_literature() {
    for (mu, epsilon) in [(1.0, 4.377_178), (2.5, 13.206_712)] {
        let found = of_gaussian(mu, epsilon);
        assert!((found - 1e-5).abs() < 1e-10, "{mu}: {found:e}");
    }
    // Without sampling, the rounded losses are slightly too small: each of the four is at most two steps
    // below its true value.
    let losses = (0..4).map(|_| Losses::removed(2.0, 1.0)).reduce(|a, b| a.with(&b)).expect("four");
    let (found, exact) = (losses.delta(3.0), of_gaussian(1.0, 3.0));
    let least = of_gaussian(1.0, 3.0 + 8.0 * STEP);
    assert!(found < exact && found > least, "{least:e} {found:e} {exact:e}");
}
