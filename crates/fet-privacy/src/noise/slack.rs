//! Privacy cost of the sampler's imperfection.

use super::{RELATIVE_ERROR, TAIL_MASS};

/// Cost that N drawn values add to a guarantee.
///
/// Let P be the ideal noise of a value and P' the drawn noise. Within [`BULK`](super::BULK) deviations |P'/P
/// − 1| <= η; beyond, Σ |P' − P| <= λ. Write P = C + R and P' = C' + R' with C = P and C' = P' in the bulk,
/// and C = C' = min(P, P') beyond, so that R and R' have a mass of at most λ. Then |log(C'/C)| <= η/(1 − η),
/// and the masses of C and C' are equal up to λ. Scaled to a sum of 1, they have a log ratio within ±c, c =
/// η/(1 − η) + 2λ. Its mean under C' is at most c(e^c − 1) <= 2c², since Σ (C' − C) log(C'/C) is the sum of
/// two divergences, neither of which is negative.
///
/// So under C'^N the log of C'^N/C^N has a mean of at most N(2c² + 2λ). By Hoeffding it exceeds a = N(2c² +
/// 2λ) + c√(2N ln(1/τ)) with probability at most τ, and P'^N equals C'^N up to Nλ. Therefore P'(E) <= e^a
/// P(E) + τ + Nλ for every event E of the whole run, and by the same argument P(E) <= e^a P'(E) + τ + Nλ. A
/// run that is (ε, δ) under P is (ε + 2a, e^a δ + (1 + e^{ε+a})(τ + Nλ)) under P'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slack {
    /// a.
    ratio: f64,
    /// 2(τ + Nλ).
    mass: f64,
}

impl Slack {
    /// Computes the slack of a run that draws `values` integers. A value above the table's reach takes two
    /// look-ups.
    pub fn for_draws(values: f64) -> Self {
        let (tau, looks) = (1e-24f64, 2.0 * values);
        let c = RELATIVE_ERROR / (1.0 - RELATIVE_ERROR) + 2.0 * TAIL_MASS;
        let ratio = looks * (2.0 * c * c + 2.0 * TAIL_MASS) + c * (2.0 * looks * -tau.ln()).sqrt();
        Self { ratio, mass: 2.0 * (tau + looks * TAIL_MASS) }
    }

    /// Returns the amount to add to ε.
    pub fn epsilon(self) -> f64 {
        2.0 * self.ratio
    }

    /// Returns the δ that the ideal mechanism must have so that the real one has `delta`; ε is at most
    /// `epsilon`.
    pub fn delta_left(self, delta: f64, epsilon: f64) -> f64 {
        (delta - (epsilon + self.ratio).exp() * self.mass) * (-self.ratio).exp()
    }
}
