//! One release of the Poisson-subsampled Gaussian as a pair of distributions that dominates it, and its privacy
//! loss on a grid.
//!
//! With sensitivity 1: Q = N(0, σ²) and P = (1−q) N(0, σ²) + q N(1, σ²). Removing the record compares P with Q,
//! adding it Q with P (Zhu, Dong, Wang 2022, theorem 11).

use std::f64::consts::PI;

use rayon::prelude::*;

use crate::accountant::Event;
use crate::accountant::quadrature::FIVE;

/// Which of the two neighbours is the one that was released from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// The one with the record: outcomes follow P, the loss is log P/Q.
    Remove,
    /// The one without: outcomes follow Q, the loss is log Q/P.
    Add,
}

pub(super) struct Pair {
    noise: f64,
    rate: f64,
    direction: Direction,
    /// Outcomes outside are cut off.
    low: f64,
    high: f64,
    cut: f64,
}

impl Pair {
    /// `reach` standard deviations of each component are looked at.
    pub(super) fn new(event: &Event, direction: Direction, reach: f64) -> Self {
        let Event { noise, rate, .. } = *event;
        let right = if direction == Direction::Remove { 1.0 } else { 0.0 };
        let (low, high) = (-reach * noise, right + reach * noise);
        Self { noise, rate, direction, low, high, cut: 0.5 * (-0.5 * reach * reach).exp() }
    }

    /// The mass of the larger losses that was cut off; that of the smaller ones is given a larger loss instead.
    pub(super) fn cut_mass(&self) -> f64 {
        self.cut
    }

    fn normal(&self, x: f64) -> f64 {
        (-0.5 * (x / self.noise).powi(2)).exp() / (self.noise * (2.0 * PI).sqrt())
    }

    fn density(&self, x: f64) -> f64 {
        match self.direction {
            Direction::Remove => (1.0 - self.rate) * self.normal(x) + self.rate * self.normal(x - 1.0),
            Direction::Add => self.normal(x),
        }
    }

    /// log P/Q, which grows with x.
    fn log_ratio(&self, x: f64) -> f64 {
        let exponent = (2.0 * x - 1.0) / (2.0 * self.noise * self.noise);
        if exponent > 600.0 { exponent + self.rate.ln() } else { (self.rate * exponent.exp_m1()).ln_1p() }
    }

    fn inverse_log_ratio(&self, value: f64) -> f64 {
        let exponent = if value > 600.0 {
            value - self.rate.ln()
        } else {
            let inner = value.exp_m1() / self.rate;
            if inner <= -1.0 { f64::NEG_INFINITY } else { inner.ln_1p() }
        };
        0.5 + self.noise * self.noise * exponent
    }

    fn loss(&self, x: f64) -> f64 {
        match self.direction {
            Direction::Remove => self.log_ratio(x),
            Direction::Add => -self.log_ratio(x),
        }
    }

    /// The outcomes whose loss lies between two values.
    fn outcomes(&self, from: f64, to: f64) -> (f64, f64) {
        let (a, b) = match self.direction {
            Direction::Remove => (self.inverse_log_ratio(from), self.inverse_log_ratio(to)),
            Direction::Add => (self.inverse_log_ratio(-to), self.inverse_log_ratio(-from)),
        };
        (a.clamp(self.low, self.high), b.clamp(self.low, self.high))
    }

    /// (loss, probability) on a few thousand outcomes.
    pub(super) fn nodes(&self) -> Vec<(f64, f64)> {
        let count = ((self.high - self.low) / (self.noise / 30.0)).ceil().max(200.0);
        let width = (self.high - self.low) / count;
        let node = |index: usize| {
            let x = self.low + width * (index as f64 + 0.5);
            (self.loss(x), self.density(x) * width)
        };
        (0..count as usize).map(node).collect()
    }

    /// The loss on multiples of `step`, each with its mass, by connecting the dots.
    ///
    /// Mass m at a loss l between grid points a and a + h becomes m(1 − e^{a−l})/(1 − e^{−h}) at a + h and the rest
    /// at a, which keeps Σ m and Σ m e^{−l}.
    pub(super) fn on_grid(&self, step: f64) -> Vec<(i64, f64)> {
        let ends = [self.loss(self.low), self.loss(self.high)];
        let least = (ends[0].min(ends[1]) / step).floor() as i64;
        let most = (ends[0].max(ends[1]) / step).ceil() as i64;
        let whole = (-step).exp_m1();
        let split: Vec<(f64, f64)> = (0..(most - least) as usize)
            .into_par_iter()
            .with_min_len(1024)
            .map(|index| {
                let base = (least + index as i64) as f64 * step;
                let (from, to) = self.outcomes(base, base + step);
                let (mut all, mut upper) = (0.0, 0.0);
                self.integrate(from, to, |x, mass| {
                    let share = ((base - self.loss(x)).exp_m1() / whole).clamp(0.0, 1.0);
                    all += mass;
                    upper += mass * share;
                });
                (all - upper, upper)
            })
            .collect();
        let mut masses: Vec<(i64, f64)> = (least..=most).map(|grid| (grid, 0.0)).collect();
        for (index, (lower, upper)) in split.into_iter().enumerate() {
            masses[index].1 += lower;
            masses[index + 1].1 += upper;
        }
        // Outcomes of less loss than any looked at, rounded up.
        masses[1.min((most - least) as usize)].1 += self.cut;
        masses
    }

    /// Calls `visit(x, mass)` for the nodes of a quadrature between two outcomes.
    fn integrate(&self, from: f64, to: f64, mut visit: impl FnMut(f64, f64)) {
        if to <= from {
            return;
        }
        // The density is smooth over a share of σ, the loss over a share of σ² (its poles are π σ² off the line).
        let panel = (0.25 * self.noise).min(0.5 * self.noise * self.noise);
        let panels = ((to - from) / panel).ceil().max(1.0);
        let width = (to - from) / panels;
        let narrow = width < 0.2 * panel;
        for index in 0..panels as usize {
            let start = from + width * index as f64;
            if narrow {
                for (node, weight) in THREE {
                    let x = start + width * node;
                    visit(x, weight * width * self.density(x));
                }
            } else {
                for (node, weight) in FIVE {
                    let x = start + width * node;
                    visit(x, weight * width * self.density(x));
                }
            }
        }
    }
}

/// Gauss-Legendre on [0, 1], exact up to degree 5.
const THREE: [(f64, f64); 3] =
    [(0.112_701_665_379_258_31, 5.0 / 18.0), (0.5, 8.0 / 18.0), (0.887_298_334_620_741_7, 5.0 / 18.0)];
