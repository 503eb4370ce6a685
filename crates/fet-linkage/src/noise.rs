//! How much noise on similarities bounds what they leak (FedSim; Wu, Li, He 2022, theorem 1).
//!
//! Whoever attacks a bit vector from its normalised similarities guesses right with probability at most
//! τ = erf(√(σ² + 1) / (2√2 · σ · s)), where s is the standard deviation of the raw similarities, and σ that of Gaussian
//! noise added to them once they are standardised. As σ grows, τ falls to erf(1 / (2√2 · s)) and no further.

use std::f64::consts::SQRT_2;

/// τ for noise `sigma` on standardised similarities that had the standard deviation `spread`.
pub fn leak(sigma: f64, spread: f64) -> f64 {
    libm::erf((sigma * sigma + 1.0).sqrt() / (2.0 * SQRT_2 * sigma * spread))
}

/// The least τ that any noise reaches.
pub fn least_leak(spread: f64) -> f64 {
    libm::erf(1.0 / (2.0 * SQRT_2 * spread))
}

/// The least noise whose leak is at most `tau`; nothing where none is enough.
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
