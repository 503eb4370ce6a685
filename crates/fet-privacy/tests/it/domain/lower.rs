//! Lower bounds on ε from tests that an adversary can run, independent of the accountant's code.
//!
//! For any outcomes, P(E) <= e^ε Q(E) + δ for every event E, so that each event gives ε >= log((P(E) −
//! δ)/Q(E)). Two kinds of events have probabilities that are sums or products of normal tails:
//!
//! - The sum of T' <= T outcomes exceeds t: it is N(k, T'σ²) with k ~ Bin(T', q), against N(0, T'σ²).
//! - The largest of T outcomes exceeds t.
//!
//! Their complements bound the other direction. Without sampling, the first kind is optimal and the bound is
//! exact.

use std::f64::consts::{PI, SQRT_2};

/// Returns the largest lower bound found.
pub(crate) fn epsilon(rate: f64, noise: f64, steps: u64, delta: f64) -> f64 {
    let mut most = largest(rate, noise, steps as f64, delta);
    for count in if steps > 1 { vec![1, steps] } else { vec![1] } {
        most = most.max(sum(rate, noise, count as f64, delta));
    }
    most
}

/// Returns log(1 − Φ(x)).
fn log_above(x: f64) -> f64 {
    if x < -1.0 {
        return (-0.5 * libm::erfc(-x / SQRT_2)).ln_1p();
    }
    if x < 35.0 {
        return (0.5 * libm::erfc(x / SQRT_2)).ln();
    }
    let y = 1.0 / (x * x);
    -0.5 * x * x - x.ln() - 0.5 * (2.0 * PI).ln() + (-y * (1.0 - 3.0 * y * (1.0 - 5.0 * y))).ln_1p()
}

/// Returns log((e^hit − δ)/e^miss), or 0 if it gives no bound.
fn betrayed(hit: f64, miss: f64, delta: f64) -> f64 {
    let left = -(delta.ln() - hit).exp_m1();
    if left > 1e-6 && miss > f64::NEG_INFINITY { hit + left.ln() - miss } else { 0.0 }
}

/// Returns the approximate maximum of a function on an interval. Every value of the function is a valid
/// bound.
fn search(low: f64, high: f64, value: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high, mut most) = (low, high, 0.0f64);
    for points in [48, 12, 12, 12] {
        let width = (high - low) / f64::from(points);
        let at = |index: i32| low + width * f64::from(index);
        let values: Vec<f64> = (0..=points).map(|index| value(at(index))).collect();
        let best = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).expect("points") as i32;
        most = most.max(values[best as usize]);
        (low, high) = (at(best - 1), at(best + 1));
    }
    most
}

fn log_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        most
    } else {
        most + terms.map(|term| (term - most).exp()).sum::<f64>().ln()
    }
}

/// Returns the bound from the largest of `steps` outcomes.
fn largest(rate: f64, noise: f64, steps: f64, delta: f64) -> f64 {
    // Computes the log probabilities that some outcome is above t and that none is, from those of one
    // outcome.
    let all = |above: f64, below: f64| {
        let none = steps * if above < -1.0 { (-above.exp()).ln_1p() } else { below };
        // If an outcome above t is rare, the sum of the probabilities exceeds the exact value only
        // negligibly.
        let some = if steps.ln() + above < -25.0 { steps.ln() + above } else { (-none.exp_m1()).ln() };
        (some, none)
    };
    let both = |t: f64| {
        let side = |sign: f64| (log_above(sign * t / noise), log_above(sign * (t - 1.0) / noise));
        let mixed = |(zero, one)| log_sum([(-rate).ln_1p() + zero, rate.ln() + one].into_iter()).min(0.0);
        let with = all(mixed(side(1.0)), mixed(side(-1.0)));
        let without = all(side(1.0).0, side(-1.0).0);
        betrayed(with.0, without.0, delta).max(betrayed(without.1, with.1, delta))
    };
    search(-40.0 * noise, 1.0 + 40.0 * noise, both)
}

/// Returns the bound from the sum of `count` outcomes. Several values of k form a group that counts as its
/// smallest k. Groups lower the sums of the mixture only, so both events become weaker.
fn sum(rate: f64, noise: f64, count: f64, delta: f64) -> f64 {
    let deviation = noise * count.sqrt();
    let groups = Groups::new(count, rate);
    let above = |t: f64| {
        let with = log_sum(groups.each.iter().map(|(k, least, _)| least + log_above((t - k) / deviation)));
        betrayed(with, log_above(t / deviation), delta)
    };
    let below = |t: f64| {
        let with = groups.each.iter().map(|(k, _, most)| most + log_above((k - t) / deviation));
        betrayed(log_above(-t / deviation), log_sum(with), delta)
    };
    let (low, high) = (-40.0 * deviation, groups.last + 40.0 * deviation);
    search(low, high, above).max(search(low, high, below))
}

/// Bin(n, q) in groups: (smallest k, log of a lower bound on the mass of the group, log of an upper bound).
struct Groups {
    each: Vec<(f64, f64, f64)>,
    last: f64,
}

/// Maximum number of groups.
const GROUPS: f64 = 160.0;

impl Groups {
    fn new(n: f64, q: f64) -> Self {
        if q >= 1.0 {
            return Self { each: vec![(n, 0.0, 0.0)], last: n };
        }
        let (mean, deviation) = (n * q, (n * q * (1.0 - q)).sqrt());
        let first = (mean - 9.0 * deviation - 9.0).floor().max(0.0);
        let last = (mean + 9.0 * deviation + 9.0).ceil().min(n);
        let width = ((last - first + 1.0) / GROUPS).ceil();
        let mode = ((n + 1.0) * q).floor().min(n);
        let mut each = Vec::new();
        let mut k = first;
        while k <= last {
            let end = (k + width - 1.0).min(n);
            let ends = (log_mass(n, q, k), log_mass(n, q, end));
            let peak = if (k..=end).contains(&mode) { log_mass(n, q, mode) } else { ends.0.max(ends.1) };
            let size = (end - k + 1.0).ln();
            each.push((k, size + ends.0.min(ends.1), size + peak));
            k += width;
        }
        // Mass left out on either side, by Chernoff's bound; it counts in the upper bound only.
        if first > 0.0 {
            each.push((0.0, f64::NEG_INFINITY, -n * divergence(first / n, q)));
        }
        if k <= n {
            each.push((k, f64::NEG_INFINITY, -n * divergence(k / n, q)));
        }
        Self { each, last }
    }
}

fn divergence(a: f64, b: f64) -> f64 {
    let term = |x: f64, y: f64| if x == 0.0 { 0.0 } else { deviance(x, y) };
    term(a, b)
        + term(1.0 - a, 1.0 - b)
        + if a == 0.0 { b } else { 0.0 }
        + if a == 1.0 { 1.0 - b } else { 0.0 }
}

/// Returns x log(x/y) + y − x, without cancellation.
fn deviance(x: f64, y: f64) -> f64 {
    let part = (x - y) / y;
    if part.abs() > 0.1 {
        return x * (x / y).ln() + y - x;
    }
    // y((1 + d)log(1 + d) − d) = y Σ (−1)^n d^n/(n(n − 1)).
    let (mut sum, mut power) = (0.0, -part);
    for n in 2..20 {
        power *= -part;
        sum += power / f64::from(n * (n - 1));
    }
    y * sum
}

/// Returns the log of the binomial's mass at k (Loader 2000).
fn log_mass(n: f64, q: f64, k: f64) -> f64 {
    if k == 0.0 {
        return n * (-q).ln_1p();
    }
    if k == n {
        return n * q.ln();
    }
    let rest = |n: f64| {
        if n < 16.0 {
            return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * (2.0 * PI).ln();
        }
        let y = 1.0 / (n * n);
        (1.0 / 12.0 - y * (1.0 / 360.0 - y / 1260.0)) / n
    };
    rest(n) - rest(k) - rest(n - k) - deviance(k, n * q) - deviance(n - k, n * (1.0 - q))
        + 0.5 * (n / (2.0 * PI * k * (n - k))).ln()
}

/// Compares with sums over all k and over all outcomes of a small case.
#[test]
fn the_groups_hold_the_binomial() {
    for (n, q) in [(1.0, 0.3), (20.0, 0.01), (150.0, 0.7), (1e4, 1e-3), (1e6, 0.4), (1e12, 1e-3)] {
        let groups = Groups::new(n, q);
        let (least, most) = (
            groups.each.iter().map(|group| group.1.exp()).sum::<f64>(),
            groups.each.iter().map(|group| group.2.exp()).sum::<f64>(),
        );
        assert!(least <= 1.0 + 1e-10 && most >= 1.0 - 1e-10, "{n} {q}: {least} {most}");
        assert!(least > 0.85 && most < 1.15, "{n} {q}: {least} {most}");
    }
    let choose = 155_117_520.0f64;
    let expected = choose.ln() + 15.0 * 0.3f64.ln() + 15.0 * 0.7f64.ln();
    assert!((log_mass(30.0, 0.3, 15.0) - expected).abs() < 1e-13);
}

/// Without sampling, the bound equals ε (figures of the analytic Gaussian mechanism).
#[test]
fn the_bound_is_exact_without_sampling() {
    for (noise, steps, expected) in [(1.0, 1, 4.377178), (4.0, 100, 13.206712), (10.0, 100, 4.377178)] {
        let found = epsilon(1.0, noise, steps, 1e-5);
        assert!(found <= expected + 1e-6 && found > expected - 1e-3, "{noise}: {found} {expected}");
    }
}
