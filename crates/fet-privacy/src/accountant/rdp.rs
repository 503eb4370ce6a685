//! Rényi differential privacy of the Poisson-subsampled Gaussian (Mironov, Talwar, Zhang 2019), and its conversion
//! to (ε, δ) (Canonne, Kamath, Steinke 2020, proposition 12).
//!
//! The divergence in the other direction is never larger (their theorem 5), so one is computed. Integer orders have
//! a finite sum; for the others the integral itself is taken by the trapezoid rule, which converges faster than any
//! power for such integrands. The order is searched, not taken from a list.

use std::f64::consts::PI;

use super::Event;

/// The least ε at δ over all orders.
pub fn epsilon(events: &[Event], delta: f64) -> f64 {
    let at = |order: f64| convert(events.iter().map(|event| divergence(event, order)).sum(), order, delta);
    // Orders above 1 by steps of a fifth, first all of them, then between the neighbours of the best.
    let grid: Vec<f64> = (0..130).map(|step| 1.0 + 1e-3 * 1.15f64.powi(step)).collect();
    let whole = |order: f64| if order > LARGEST_FRACTIONAL { order.round() } else { order };
    let costs: Vec<f64> = grid.iter().map(|&order| at(whole(order))).collect();
    let best = (0..grid.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap_or(0);
    let mut least = costs[best];
    let (mut low, mut high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    for _ in 0..24 {
        let (left, right) = (low + 0.382 * (high - low), low + 0.618 * (high - low));
        let (a, b) = (at(whole(left)), at(whole(right)));
        least = least.min(a).min(b);
        if a < b { high = right } else { low = left }
    }
    least.max(0.0)
}

const LARGEST_FRACTIONAL: f64 = 12.0;

fn convert(divergence: f64, order: f64, delta: f64) -> f64 {
    divergence + (-1.0 / order).ln_1p() - (delta.ln() + order.ln()) / (order - 1.0)
}

/// The Rényi divergence of `order` of all releases of `event` together.
pub fn divergence(event: &Event, order: f64) -> f64 {
    let Event { noise, rate, steps } = *event;
    let one = if rate >= 1.0 {
        order / (2.0 * noise * noise)
    } else if order.fract() == 0.0 {
        log_moment_by_sum(noise, rate, order as u64) / (order - 1.0)
    } else {
        log_moment_by_integral(noise, rate, order) / (order - 1.0)
    };
    // An even sum of positive and tiny terms can round to just below the truth.
    (steps as f64) * one.max(0.0) * (1.0 + 1e-12)
}

/// log E_Q[(P/Q)^α] for a whole α: Σ C(α, k) (1−q)^{α−k} q^k exp((k² − k)/2σ²).
fn log_moment_by_sum(noise: f64, rate: f64, order: u64) -> f64 {
    let (log_in, log_out) = (rate.ln(), (-rate).ln_1p());
    let scale = 1.0 / (2.0 * noise * noise);
    let mut log_choose = 0.0;
    // Σ C(α, k)(1−q)^{α−k}q^k = 1: what exceeds 1 is summed apart, so that small divergences keep their digits.
    let mut terms = Vec::with_capacity(order as usize);
    for k in 0..=order {
        let kf = k as f64;
        let weight = log_choose + kf * log_in + (order - k) as f64 * log_out;
        let growth = kf * (kf - 1.0) * scale;
        if growth > 0.0 {
            terms.push(weight + growth + (-(-growth).exp_m1()).ln());
        }
        log_choose += ((order - k) as f64 / (kf + 1.0)).ln();
    }
    log_one_plus_sum(&terms)
}

/// log(1 + Σ e^t).
fn log_one_plus_sum(terms: &[f64]) -> f64 {
    let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = terms.iter().map(|term| (term - most).exp()).sum();
    let log_sum = most + sum.ln();
    if log_sum > 30.0 { log_sum + (-log_sum).exp() } else { log_sum.exp().ln_1p() }
}

/// The same for any α, as an integral over the density of N(0, σ²).
fn log_moment_by_integral(noise: f64, rate: f64, order: f64) -> f64 {
    // The ratio has its singularities π σ² off the real line; the Gaussian has none.
    let step = (noise / 8.0).min(noise * noise / 2.0);
    let (low, high) = (-13.0 * noise, order + 13.0 * noise);
    let count = ((high - low) / step).ceil() as usize;
    let log_density = |x: f64| -0.5 * (x / noise).powi(2) - 0.5 * (2.0 * PI).ln() - noise.ln();
    let mut terms = Vec::with_capacity(count + 1);
    for index in 0..=count {
        let x = low + step * index as f64;
        let log_power = order * log_ratio(x, noise, rate);
        // E_Q[(P/Q)^α − 1 − α(P/Q − 1)] has positive terms alone, and E_Q[P/Q − 1] = 0.
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

/// log of the density ratio of the mixture to N(0, σ²).
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
