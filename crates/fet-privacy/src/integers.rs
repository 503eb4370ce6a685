//! A list of integers that is released once with discrete Gaussian noise: its noise, its account and the release.

use rand::Rng;

use crate::accountant::{AccountError, Event, Total, gaussian};
use crate::noise::{DiscreteGaussian, LEAST_DEVIATION, NoiseError};

/// Variance, in units², that the discrete noise loses against the Gaussian (Lemma 3 of the crate's statement).
const LOSS: f64 = 9.0;
/// Largest noise multiplier that the calibration tries.
const MOST_NOISE: f64 = 1e4;

/// Number of integers, their L2 sensitivity, and the parameter of their noise, s, in integer units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoisyIntegers {
    count: usize,
    sensitivity: f64,
    deviation: f64,
}

/// Noise that a release cannot have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DesignError {
    /// ε, δ or the number of values is out of range.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The deviation is out of range.
    #[error(transparent)]
    Noise(#[from] NoiseError),
}

impl NoisyIntegers {
    /// Creates the release of `count` integers with the smallest noise that satisfies (ε, δ), up to a relative precision
    /// of 1e-6.
    ///
    /// # Errors
    /// ε or δ is out of range, or no noise in the searched range meets them.
    pub fn for_target(
        count: usize,
        sensitivity: f64,
        [epsilon, delta]: [f64; 2],
    ) -> Result<Self, DesignError> {
        let of = |deviation| Self { count, sensitivity, deviation };
        // `noise` refuses an ε or a δ outside its range.
        let mut low = gaussian::noise(epsilon, delta)? * sensitivity;
        let most = MOST_NOISE * sensitivity;
        let mut high = low.max(LEAST_DEVIATION);
        while of(high).epsilon(delta) > epsilon {
            low = high;
            high *= 1.0 + 1e-3;
            if high > most {
                let (least, found) = (of(LEAST_DEVIATION).epsilon(delta), of(most).epsilon(delta));
                let (low, high) = (LEAST_DEVIATION / sensitivity, MOST_NOISE);
                let error =
                    AccountError::OutOfReach { target: epsilon, low, high, least: found, most: least };
                return Err(error.into());
            }
        }
        while high > low * (1.0 + 1e-6) {
            let middle = f64::midpoint(low, high);
            if of(middle).epsilon(delta) <= epsilon { high = middle } else { low = middle }
        }
        Ok(Self::with_deviation(count, sensitivity, high)?)
    }

    /// Creates the release with noise of parameter `deviation`, s.
    ///
    /// # Errors
    /// The sampler cannot draw noise of this parameter.
    pub fn with_deviation(count: usize, sensitivity: f64, deviation: f64) -> Result<Self, NoiseError> {
        DiscreteGaussian::new(deviation)?;
        Ok(Self { count, sensitivity, deviation })
    }

    /// Returns the same noise for another sensitivity, such as that of another neighbouring relation.
    #[must_use]
    pub fn with_sensitivity(self, sensitivity: f64) -> Self {
        Self { sensitivity, ..self }
    }

    /// Returns the number of integers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the L2 sensitivity, in integer units.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Returns s, the parameter of the noise in integer units.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Returns the noise in units of the sensitivity, z, reduced by the loss of the discrete noise.
    pub fn noise_multiplier(&self) -> f64 {
        (self.deviation * self.deviation - LOSS).sqrt() / self.sensitivity
    }

    /// Adds the privacy loss to a total.
    pub fn add_to(&self, total: &mut Total) {
        let event = Event { noise: self.noise_multiplier(), rate: 1.0, steps: 1 };
        total.add_gaussian([event], self.count as f64);
    }

    /// Returns ε at δ, or infinity without a bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let mut total = Total::default();
        self.add_to(&mut total);
        total.epsilon(delta)
    }

    /// Returns the totals with noise. `noise` must be secret, and must not be used for another release.
    ///
    /// # Panics
    /// If the number of totals is another one, which is an error of the caller.
    pub fn release(&self, mut totals: Vec<i64>, noise: &mut impl Rng) -> Vec<i64> {
        assert_eq!(totals.len(), self.count, "totals of a release");
        let sampler = DiscreteGaussian::new(self.deviation).expect("checked when the release was made");
        let mut drawn = vec![0i32; totals.len()];
        sampler.fill(&mut drawn, noise);
        totals.iter_mut().zip(drawn).for_each(|(total, noise)| *total += i64::from(noise));
        totals
    }
}
