//! Auditing a mechanism from outside: what ε its outputs betray.
//!
//! Who can tell two neighbouring inputs apart better than (ε, δ) allows has refuted the claim. The bound is a statistical one,
//! from below: a mechanism that passes may still be broken in a way the statistic does not see.

/// The least ε that outcomes are compatible with, at level α.
///
/// `with` and `without` are a statistic of the outputs on two neighbouring inputs, `threshold` a value chosen without
/// looking at them. If the mechanism is (ε, δ), the result exceeds ε with probability α at most: each of the four
/// frequencies is bounded at α/4 (Chernoff), and P(E) <= e^ε Q(E) + δ both for E and for its complement.
pub fn epsilon_lower_bound(with: &[f64], without: &[f64], threshold: f64, delta: f64, alpha: f64) -> f64 {
    let share = |all: &[f64], above: bool| {
        all.iter().filter(|&&x| (x > threshold) == above).count() as f64 / all.len() as f64
    };
    let bound = |hit: (&[f64], bool), miss: (&[f64], bool)| {
        let least = lower(share(hit.0, hit.1), hit.0.len(), alpha / 4.0) - delta;
        let most = upper(share(miss.0, miss.1), miss.0.len(), alpha / 4.0);
        if least > 0.0 { (least / most).ln() } else { 0.0 }
    };
    bound((with, true), (without, true)).max(bound((without, false), (with, false))).max(0.0)
}

/// The least probability that a frequency of `found` among `trials` is compatible with.
fn lower(found: f64, trials: usize, alpha: f64) -> f64 {
    bisect(0.0, found, |p| trials as f64 * divergence(found, p) <= -alpha.ln())
}

/// The largest.
fn upper(found: f64, trials: usize, alpha: f64) -> f64 {
    1.0 - lower(1.0 - found, trials, alpha)
}

/// The least value that is compatible; `high` is.
fn bisect(mut low: f64, mut high: f64, compatible: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if compatible(middle) { high = middle } else { low = middle }
    }
    low
}

/// The Kullback-Leibler divergence between coins.
fn divergence(a: f64, b: f64) -> f64 {
    let term = |x: f64, y: f64| if x == 0.0 { 0.0 } else { x * (x / y).ln() };
    term(a, b) + term(1.0 - a, 1.0 - b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_enclose_the_frequency() {
        for (found, trials) in [(0.0, 100), (0.3, 1_000), (1.0, 50), (1e-3, 100_000)] {
            let (low, high) = (lower(found, trials, 1e-3), upper(found, trials, 1e-3));
            assert!(low <= found && found <= high && high <= 1.0, "{found}: {low} {high}");
            assert!(high - low < 6.0 / (trials as f64).sqrt(), "{found}: {low} {high}");
        }
        // No success in n trials at level α: p <= 1 − α^{1/n}.
        assert!((upper(0.0, 100, 1e-3) - (1.0 - 1e-3f64.powf(0.01))).abs() < 1e-9);
    }
}
