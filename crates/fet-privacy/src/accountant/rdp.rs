//! Rényi differential privacy of the Poisson-subsampled Gaussian (Mironov, Talwar, Zhang 2019), and its
//! conversion to (ε, δ) (Canonne, Kamath, Steinke 2020, proposition 12).
//!
//! The divergence in the other direction is never larger (Mironov et al., theorem 5), so the module computes
//! only one. Integer orders have a finite sum. For other orders, the trapezoid rule computes the integral; it
//! converges faster than any power for such integrands. The module searches for the best order instead of
//! using a list.

use std::f64::consts::PI;

use super::event::Event;

/// Returns the smallest ε at δ over all orders, or infinity if no order has a figure.
pub fn epsilon(events: &[Event], delta: f64) -> f64 {
    let whole = |order: f64| if order > LARGEST_FRACTIONAL { order.round() } else { order };
    let at = |order: f64| {
        let order = whole(order);
        let found = convert(events.iter().map(|event| divergence(event, order)).sum(), order, delta);
        if found.is_nan() { f64::INFINITY } else { found }
    };
    // Move the order away from 1 geometrically until ε has grown for many steps, then search between the
    // neighbours of the best order.
    let order = |step: usize| 1.0 + 1e-3 * 1.15f64.powi(step as i32);
    let (mut best, mut least) = (0, f64::INFINITY);
    for step in 0..ORDERS {
        let found = at(order(step));
        if found < least {
            (best, least) = (step, found);
        }
        if step > best + 12 && least < f64::INFINITY {
            break;
        }
    }
    let (mut low, mut high) = (order(best.saturating_sub(1)), order((best + 1).min(ORDERS - 1)));
    let inner = |low: f64, high: f64| (low + 0.381_966 * (high - low), low + 0.618_034 * (high - low));
    let (mut left, mut right) = inner(low, high);
    let (mut at_left, mut at_right) = (at(left), at(right));
    for _ in 0..12 {
        least = least.min(at_left).min(at_right);
        if whole(left) == whole(right) {
            break;
        }
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = inner(low, high).0;
            at_left = at(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = inner(low, high).1;
            at_right = at(right);
        }
    }
    least.max(0.0)
}

/// Number of orders tried, up to an order of 67,000.
const ORDERS: usize = 130;
const LARGEST_FRACTIONAL: f64 = 12.0;
/// Smallest noise for the integral, which would need too many nodes below it. Fractional orders are then
/// bounded by their integer neighbours.
const LEAST_INTEGRATED: f64 = 0.1;

fn convert(divergence: f64, order: f64, delta: f64) -> f64 {
    divergence + (-1.0 / order).ln_1p() - (delta.ln() + order.ln()) / (order - 1.0)
}

/// Returns the Rényi divergence of `order` of all releases of `event` together.
pub fn divergence(event: &Event, order: f64) -> f64 {
    let Event { noise, rate, steps } = *event;
    // A release with sampling costs at most as much as one without.
    let unsampled = order / (2.0 * noise * noise);
    let log_moment = |order: f64| {
        if order.fract() == 0.0 {
            log_moment_by_sum(noise, rate, order as u64)
        } else if noise >= LEAST_INTEGRATED {
            log_moment_by_integral(noise, rate, order)
        } else {
            // The log moment is convex in the order, so it lies below its chords.
            let (low, share) = (order.floor(), order.fract());
            (1.0 - share) * log_moment_by_sum(noise, rate, low as u64)
                + share * log_moment_by_sum(noise, rate, low as u64 + 1)
        }
    };
    let one = if rate >= 1.0 { unsampled } else { unsampled.min(log_moment(order) / (order - 1.0)) };
    // Even a sum of positive, tiny terms can round to just below the true value.
    (steps as f64) * one.max(0.0) * (1.0 + 1e-12)
}

/// Returns log E_Q[(P/Q)^α] for an integer α: Σ C(α, k) (1−q)^{α−k} q^k exp((k² − k)/2σ²).
fn log_moment_by_sum(noise: f64, rate: f64, order: u64) -> f64 {
    let (log_in, log_out) = (rate.ln(), (-rate).ln_1p());
    let scale = 1.0 / (2.0 * noise * noise);
    let mut log_choose = 0.0;
    // Σ C(α, k)(1−q)^{α−k}q^k = 1. The excess over 1 is summed separately so that small divergences keep
    // their precision.
    let mut terms = Vec::new();
    let (largest, mode) = (order as f64 * (order as f64 - 1.0) * scale, order as f64 * rate + 1.0);
    let mut most = f64::NEG_INFINITY;
    for k in 0..=order {
        let kf = k as f64;
        let weight = log_choose + kf * log_in + (order - k) as f64 * log_out;
        let growth = kf * (kf - 1.0) * scale;
        if growth > 0.0 {
            let term = weight + growth + (-(-growth).exp_m1()).ln();
            most = most.max(term);
            terms.push(term);
        }
        // Beyond the mode of the binomial its weights fall. The remaining terms are negligible even with the
        // largest growth.
        if kf > mode && weight + largest + (order as f64).ln() < most - 60.0 {
            break;
        }
        log_choose += ((order - k) as f64 / (kf + 1.0)).ln();
    }
    log_one_plus_sum(&terms)
}

/// Returns log(1 + Σ e^t).
fn log_one_plus_sum(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return 0.0;
    }
    let sum: f64 = terms.iter().map(|term| (term - most).exp()).sum();
    let log_sum = most + sum.ln();
    if log_sum > 30.0 { log_sum + (-log_sum).exp() } else { log_sum.exp().ln_1p() }
}

/// Returns log E_Q[(P/Q)^α] for any α, as an integral over the density of N(0, σ²).
fn log_moment_by_integral(noise: f64, rate: f64, order: f64) -> f64 {
    // The singularities of the ratio are π σ² off the real line; the Gaussian has none.
    let step = (noise / 8.0).min(noise * noise / 2.0);
    let (low, high) = (-13.0 * noise, order + 13.0 * noise);
    let count = ((high - low) / step).ceil() as usize;
    let log_density = |x: f64| -0.5 * (x / noise).powi(2) - 0.5 * (2.0 * PI).ln() - noise.ln();
    let mut terms = Vec::with_capacity(count + 1);
    for index in 0..=count {
        let x = low + step * index as f64;
        let log_power = order * log_ratio(x, noise, rate);
        // All terms of E_Q[(P/Q)^α − 1 − α(P/Q − 1)] are positive, and E_Q[P/Q − 1] = 0.
        let ratio = log_ratio(x, noise, rate).exp_m1();
        let excess = if log_power > 30.0 {
            log_power
        } else {
            let value = log_power.exp_m1() - order * ratio;
            if value <= 0.0 { continue } else { value.ln() }
        };
        terms.push(log_density(x) + step.ln() + excess);
    }
    if terms.is_empty() { 0.0 } else { log_one_plus_sum(&terms) }
}

/// Returns the log of the density ratio of the mixture to N(0, σ²).
fn log_ratio(x: f64, noise: f64, rate: f64) -> f64 {
    let exponent = (2.0 * x - 1.0) / (2.0 * noise * noise);
    if exponent > 600.0 {
        return exponent + rate.ln();
    }
    (rate * exponent.exp_m1()).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_and_the_sum_are_one_function() {
        for (noise, rate) in [(1.0, 0.01), (4.0, 0.1), (0.7, 0.001), (0.5, 0.5), (20.0, 0.3), (1.0, 1e-6)] {
            for order in [2u64, 3, 7, 11] {
                let (a, b) = (
                    log_moment_by_sum(noise, rate, order),
                    log_moment_by_integral(noise, rate, order as f64),
                );
                assert!((a - b).abs() < 1e-7 * a + 1e-15, "{noise} {rate} {order}: {a} {b}");
            }
        }
    }
}
