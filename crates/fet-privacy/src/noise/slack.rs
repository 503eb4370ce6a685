//! What the sampler's imperfection costs.

use super::{LOST_MASS, RELATIVE_ERROR};

/// What N drawn values add to a guarantee.
///
/// Let P be the ideal noise of a whole run, N independent values, and P' what is drawn. Under P' the log of the
/// likelihood ratio P'/P is a sum of N independent terms within ±η whose mean is at most η², so that by Hoeffding it
/// exceeds a = Nη² + η√(2N ln(1/τ)) with probability τ at most; values that P has and P' has not weigh Nλ. Hence
/// P'(E) <= e^a P(E) + τ and P(E) <= e^a P'(E) + τ + Nλ for every event E, and a mechanism that is (ε, δ) under P is
/// (ε + 2a, e^a δ + e^{ε+a}(2τ + Nλ)) under P'.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slack {
    /// a.
    ratio: f64,
    /// 2τ + Nλ.
    mass: f64,
}

impl Slack {
    /// For a run that draws `values` integers; a value above the table's reach takes two look-ups.
    pub fn of(values: f64) -> Self {
        let (tau, looks) = (1e-24f64, 2.0 * values);
        let eta = RELATIVE_ERROR;
        let ratio = looks * eta * eta + eta * (2.0 * looks * -tau.ln()).sqrt();
        Self { ratio, mass: 2.0 * tau + looks * LOST_MASS }
    }

    /// What to add to ε.
    pub fn epsilon(self) -> f64 {
        2.0 * self.ratio
    }

    /// The δ that the ideal mechanism must have for the whole to have `delta`; ε is at most `epsilon`.
    pub fn delta_left(self, delta: f64, epsilon: f64) -> f64 {
        (delta - (epsilon + self.ratio).exp() * self.mass) * (-self.ratio).exp()
    }
}
