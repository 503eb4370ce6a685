//! Dominating pair of distributions of one release of the Poisson-subsampled Gaussian, and its privacy loss
//! on a grid.
//!
//! With sensitivity 1, Q = N(0, σ²) and P = (1−q) N(0, σ²) + q N(1, σ²). Removing the record compares P with
//! Q; adding the record compares Q with P (Zhu, Dong, Wang 2022, theorem 11).

use std::f64::consts::PI;

use rayon::prelude::*;

use crate::accountant::event::Event;
use crate::accountant::quadrature::FIVE;

/// Neighbour that the release was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The neighbour with the record: outcomes follow P, and the loss is log P/Q.
    Remove,
    /// The neighbour without the record: outcomes follow Q, and the loss is log Q/P.
    Add,
}

pub(super) struct Pair {
    noise: f64,
    rate: f64,
    direction: Direction,
    /// Smallest outcome; outcomes outside `low` to `high` are cut off.
    low: f64,
    high: f64,
}

impl Pair {
    /// Creates the pair with outcomes up to `reach` standard deviations from the mean of each component.
    pub(super) fn new(event: &Event, direction: Direction, reach: f64) -> Self {
        let Event { noise, rate, .. } = *event;
        let right = if direction == Direction::Remove { 1.0 } else { 0.0 };
        Self { noise, rate, direction, low: -reach * noise, high: right + reach * noise }
    }

    /// Returns the log density of N(mean, σ²).
    fn log_normal(&self, x: f64, mean: f64) -> f64 {
        -0.5 * ((x - mean) / self.noise).powi(2) - self.noise.ln() - 0.5 * (2.0 * PI).ln()
    }

    fn density(&self, x: f64) -> f64 {
        match self.direction {
            Direction::Remove => {
                (1.0 - self.rate) * self.log_normal(x, 0.0).exp() + self.rate * self.log_normal(x, 1.0).exp()
            }
            Direction::Add => self.log_normal(x, 0.0).exp(),
        }
    }

    /// Returns the log ratio of N(1, σ²) to N(0, σ²).
    fn exponent(&self, x: f64) -> f64 {
        (2.0 * x - 1.0) / (2.0 * self.noise * self.noise)
    }

    /// Returns the loss, log P/Q or log Q/P.
    fn loss(&self, x: f64) -> f64 {
        let exponent = self.exponent(x);
        // Without sampling, the loss equals the exponent, however far below 0.
        let ratio = if self.rate >= 1.0 {
            exponent
        } else if exponent > 600.0 {
            exponent + self.rate.ln()
        } else {
            (self.rate * exponent.exp_m1()).ln_1p()
        };
        if self.direction == Direction::Remove { ratio } else { -ratio }
    }

    /// Returns the exponent at which log P/Q is `value`, or negative infinity if log P/Q is always larger.
    fn exponent_of(&self, value: f64) -> f64 {
        if self.rate >= 1.0 {
            return value;
        }
        if value > 600.0 {
            return value - self.rate.ln();
        }
        let inner = value.exp_m1() / self.rate;
        if inner <= -1.0 { f64::NEG_INFINITY } else { inner.ln_1p() }
    }

    /// Returns the smallest and the largest loss.
    pub(super) fn ends(&self) -> (f64, f64) {
        let (a, b) = (self.loss(self.low), self.loss(self.high));
        (a.min(b), a.max(b))
    }

    /// Returns (loss, probability) on outcomes between which the density and the loss change little. `fine`
    /// holds a resolution of the loss and the floor above which this resolution applies; `all` is the
    /// resolution for all other losses. Returns `None` if more than `most` nodes would be necessary.
    pub(super) fn nodes(&self, fine: (f64, f64), all: f64, most: usize) -> Option<Vec<(f64, f64)>> {
        let mut nodes = Vec::new();
        let mut from = self.low;
        while from < self.high {
            let mut to = (from + 0.1 * self.noise).min(self.high);
            // The slope of the loss grows to the right, up to 1/σ².
            let within = |to: f64| {
                let (here, there) = (self.loss(from), self.loss(to));
                let resolution = if here.max(there) > fine.1 { fine.0 } else { all };
                (here - there).abs() <= resolution
            };
            while !within(to) {
                // The middle of adjacent floats rounds to one of them, half of the time to the farther one.
                let middle = 0.5 * (from + to);
                if !(from < middle && middle < to) {
                    return None;
                }
                to = middle;
            }
            if nodes.len() >= most {
                return None;
            }
            // Two nodes per cell, as `Kind` assumes.
            for (node, weight) in TWO {
                let x = from + (to - from) * node;
                nodes.push((self.loss(x), self.density(x) * weight * (to - from)));
            }
            from = to;
        }
        Some(nodes)
    }

    /// Puts the loss on multiples of `step` from `low` to `high` by connecting the dots. Returns the first
    /// grid point as a multiple of `step`, and each point's mass times e^{θl − scale}.
    ///
    /// Mass m at a loss l between grid points a and a + h becomes m(1 − e^{a−l})/(1 − e^{−h}) at a + h, and
    /// the rest goes to a. This keeps Σ m and Σ m e^{−l}.
    pub(super) fn on_grid(&self, step: f64, tilt: f64, scale: f64, low: f64, high: f64) -> (i64, Vec<f64>) {
        let ends = self.ends();
        let least = (ends.0.max(low) / step).floor() as i64;
        let most = ((ends.1.min(high) / step).ceil() as i64).max(least + 1);
        let (whole, growth) = (-(-step).exp_m1(), (tilt * step).exp());
        let split: Vec<(f64, f64)> = (0..(most - least) as usize)
            .into_par_iter()
            .with_min_len(4096)
            .map(|index| {
                let base = (least + index as i64) as f64 * step;
                let (all, upper) = self.cell(base, base + step, tilt * base - scale);
                let upper = (upper / whole).clamp(0.0, all);
                (all - upper, upper * growth)
            })
            .collect();
        let mut masses = vec![0.0; split.len() + 1];
        for (index, (lower, upper)) in split.into_iter().enumerate() {
            masses[index] += lower;
            masses[index + 1] += upper;
        }
        (least, masses)
    }

    /// Returns the mass of the outcomes whose loss l lies between `base` and `end`, and Σ m(1 − e^{base−l})
    /// of these outcomes, both times e^`log`.
    fn cell(&self, base: f64, end: f64, log: f64) -> (f64, f64) {
        let Self { noise, rate, direction, .. } = *self;
        // Exponents at which the loss is `base` and `end`.
        let sign = if direction == Direction::Remove { 1.0 } else { -1.0 };
        let (edge, other) = (self.exponent_of(sign * base), self.exponent_of(sign * end));
        let outcome = |exponent: f64| (0.5 + noise * noise * exponent).clamp(self.low, self.high);
        let (from, to) = (outcome(edge.min(other)), outcome(edge.max(other)));
        let (mut all, mut upper) = (0.0, 0.0);
        match direction {
            // P(1 − e^{a−l}) = P − e^a Q = q N₁ + (1 − q − e^a) N₀. If the loss can be a, at an exponent z_a,
            // this is q N₁ − q e^{z_a} N₀.
            Direction::Remove => {
                let below = if edge > f64::NEG_INFINITY {
                    0.0
                } else {
                    (1.0 - rate) * -(base - (-rate).ln_1p()).min(0.0).exp_m1()
                };
                self.integrate(from, to, |x, width| {
                    let zero = width * (self.log_normal(x, 0.0) + log).exp();
                    let one = width * rate * (self.log_normal(x, 1.0) + log).exp();
                    all += (1.0 - rate) * zero + one;
                    upper += below * zero - one * (edge - self.exponent(x)).min(0.0).exp_m1();
                });
            }
            // Q(1 − e^{a−l}) = Q − e^a P = (1 − e^a(1 − q))(1 − e^{z−z_a}) Q.
            Direction::Add => {
                let share = if rate < 1.0 { -(base + (-rate).ln_1p()).min(0.0).exp_m1() } else { 1.0 };
                self.integrate(from, to, |x, width| {
                    let zero = width * (self.log_normal(x, 0.0) + log).exp();
                    all += zero;
                    upper += zero * share * -(self.exponent(x) - edge).min(0.0).exp_m1();
                });
            }
        }
        (all, upper)
    }

    /// Calls `visit(x, width)` for each node of a quadrature between two outcomes.
    fn integrate(&self, from: f64, to: f64, mut visit: impl FnMut(f64, f64)) {
        if to <= from {
            return;
        }
        // The density is smooth over a fraction of σ, and the loss over a fraction of σ² (its poles are π σ²
        // off the real line).
        let panel = (0.25 * self.noise).min(0.5 * self.noise * self.noise);
        let panels = ((to - from) / panel).ceil().max(1.0);
        let width = (to - from) / panels;
        let nodes: &[(f64, f64)] = match width / panel {
            ..0.005 => &TWO,
            ..0.2 => &THREE,
            _ => &FIVE,
        };
        for index in 0..panels as usize {
            let start = from + width * index as f64;
            nodes.iter().for_each(|(node, weight)| visit(start + width * node, weight * width));
        }
    }
}

/// Gauss-Legendre nodes and weights on [0, 1], exact up to degree 3.
const TWO: [(f64, f64); 2] = [(0.211_324_865_405_187_1, 0.5), (0.788_675_134_594_812_9, 0.5)];
/// Gauss-Legendre nodes and weights on [0, 1], exact up to degree 5.
const THREE: [(f64, f64); 3] =
    [(0.112_701_665_379_258_31, 5.0 / 18.0), (0.5, 8.0 / 18.0), (0.887_298_334_620_741_7, 5.0 / 18.0)];

#[cfg(test)]
mod tests {
    use super::*;

    /// If the loss changes by more than the resolution between adjacent floats, no nodes suffice and the
    /// search must end. (An earlier version looped forever for half of these starts.)
    #[test]
    fn a_resolution_below_that_of_numbers_has_no_nodes() {
        for place in 0..64u32 {
            let event = Event { noise: 0.3, rate: 1.0, steps: 1 };
            let reach = 30.0 + f64::from(place) * f64::EPSILON * 64.0;
            let pair = Pair::new(&event, Direction::Remove, reach);
            assert_eq!(pair.nodes((1e-300, f64::NEG_INFINITY), 1e-300, 100), None, "{reach}");
        }
    }
}
