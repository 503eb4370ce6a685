//! Bound on the leakage of noisy similarities (FedSim; Wu, Li, He 2022, theorem 1).
//!
//! An attacker who guesses a bit vector from its normalised similarities is right with probability at most
//! `τ = erf(√(σ² + 1) / (2√2 · σ · s))`. Here s is the standard deviation of the raw similarities, and σ is
//! the standard deviation of the Gaussian noise on the standardised similarities. As σ grows, τ approaches
//! `erf(1 / (2√2 · s))` and falls no further.

use std::f64::consts::SQRT_2;

/// Returns τ for noise `sigma` on standardised similarities, where `spread` is the standard deviation of the
/// raw similarities.
pub fn leak(sigma: f64, spread: f64) -> f64 {
    libm::erf((sigma * sigma + 1.0).sqrt() / (2.0 * SQRT_2 * sigma * spread))
}

/// Returns the smallest τ that any amount of noise reaches.
pub fn least_leak(spread: f64) -> f64 {
    libm::erf(1.0 / (2.0 * SQRT_2 * spread))
}

/// Returns the smallest noise with a leak of at most `tau`, or `None` if no amount of noise is enough.
pub fn sigma_for(tau: f64, spread: f64) -> Option<f64> {
    if tau >= 1.0 {
        return Some(0.0);
    }
    if least_leak(spread) >= tau {
        return None;
    }
    let (mut low, mut high) = (1e-12, 1e12);
    for _ in 0..200 {
        let middle = f64::sqrt(low * high);
        if leak(middle, spread) > tau { low = middle } else { high = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_and_leak_are_inverse() {
        for (tau, spread) in [(0.1, 20.0), (0.5, 3.0), (0.9, 1.0)] {
            let sigma = sigma_for(tau, spread).expect("within reach");
            assert!((leak(sigma, spread) - tau).abs() < 1e-9, "{tau}");
            // The closed form: σ² = 1 / (8 s² erfinv(τ)² - 1).
            let inverse = (1.0 + 1.0 / (sigma * sigma)) / (8.0 * spread * spread);
            assert!((libm::erf(inverse.sqrt()) - tau).abs() < 1e-9);
        }
        assert_eq!(sigma_for(1.0, 1.0), Some(0.0));
        assert_eq!(sigma_for(0.1, 1.0), None, "erf(1 / 2√2) is 0.38");
    }
}
