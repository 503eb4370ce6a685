//! Gaussian differential privacy: the exact cost if every record takes part in every release.
//!
//! T releases with noise multipliers σ_t are equivalent to one release with μ = √Σ 1/σ_t². That release
//! satisfies (ε, δ) if and only if δ ≥ Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle and Wang 2018, theorem 8;
//! Dong, Roth, Su 2022). The module avoids the classical σ = √(2 ln(1.25/δ))/ε, which is invalid above ε = 1.

use super::event::{AccountError, Event, check_delta};
use super::normal::log_cdf;

/// Returns μ of a sequence of releases without sampling.
pub fn compose(events: &[Event]) -> f64 {
    events.iter().map(|event| event.steps as f64 / (event.noise * event.noise)).sum::<f64>().sqrt()
}

/// Returns the smallest δ at ε.
pub fn delta(mu: f64, epsilon: f64) -> f64 {
    let (upper, lower) = (log_cdf(mu / 2.0 - epsilon / mu), log_cdf(-mu / 2.0 - epsilon / mu));
    -upper.exp() * (epsilon + lower - upper).exp_m1()
}

/// Returns the smallest ε at δ, rounded up to floating-point precision.
pub fn epsilon(mu: f64, delta: f64) -> f64 {
    if mu == 0.0 || self::delta(mu, 0.0) <= delta {
        return 0.0;
    }
    if mu.is_nan() || mu > 1e100 {
        return f64::INFINITY;
    }
    // δ(ε) <= Φ(μ/2 − ε/μ), so this value is above the answer.
    let (mut low, mut high) = (0.0, mu * mu / 2.0 + mu * (2.0 * (1.0 / delta).ln()).sqrt() + 1e-12);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if self::delta(mu, middle) <= delta { high = middle } else { low = middle }
    }
    high
}

/// Returns the smallest noise multiplier at which one release satisfies (ε, δ): the analytic Gaussian
/// mechanism.
pub fn noise(epsilon: f64, delta: f64) -> Result<f64, AccountError> {
    check_delta(delta)?;
    if !(epsilon > 0.0 && epsilon.is_finite()) {
        let rule = "must be positive";
        return Err(AccountError::Value { field: "epsilon", rule, value: epsilon });
    }
    let (mut low, mut high) = (1e-9f64, 1e9f64);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if middle <= low || middle >= high {
            break;
        }
        if self::delta(1.0 / middle, epsilon) <= delta { high = middle } else { low = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures from an independent accounting library.
    #[test]
    fn golden_figures() {
        for (epsilon, delta, expected) in [
            (0.1, 1e-5, 30.7496),
            (1.0, 1e-5, 3.73063),
            (3.0, 1e-5, 1.39059),
            (5.0, 1e-5, 0.891868),
            (10.0, 1e-6, 0.541087),
        ] {
            let found = noise(epsilon, delta).expect("in range");
            assert!((found - expected).abs() < 1e-5 * expected, "{epsilon}, {delta}: {found}");
            assert!(super::delta(1.0 / found, epsilon) <= delta);
        }
        for (mu, delta, expected) in [(1.0, 1e-5, 4.377178), (2.5, 1e-5, 13.206712)] {
            let found = epsilon(mu, delta);
            assert!((found - expected).abs() < 1e-6, "{mu}: {found}");
        }
    }

    #[test]
    fn epsilon_and_delta_are_inverse_to_each_other() {
        for mu in [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0] {
            for exponent in [2, 5, 8, 12, 30] {
                let target = 10f64.powi(-exponent);
                let found = epsilon(mu, target);
                let back = delta(mu, found);
                assert!(back <= target, "{mu} {target}: {back}");
                assert!(found == 0.0 || back > 0.999 * target, "{mu} {target}: {found}, {back}");
            }
        }
    }
}
