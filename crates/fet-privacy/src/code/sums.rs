//! Noisy sums over the records of each label, from whose means a symbol follows, and the account of sums and symbols.

use rand::Rng;

use super::{Code, CodeRelation};
use crate::accountant::{AccountError, Event, Total, gaussian};
use crate::labels::LabelError;
use crate::noise::{DiscreteGaussian, LEAST_DEVIATION, NoiseError};

/// Number of integer units of 1, q.
const UNIT: f64 = (1u32 << 14) as f64;
/// Variance, in units², that the discrete noise loses against the Gaussian (Lemma 3 of the crate's statement).
const LOSS: f64 = 9.0;

/// Sums of the records' numbers by symbol: φ = (1, x₁, …, x_d)/√(d + 1), with each x from −1 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SymbolSums {
    columns: usize,
    symbols: usize,
    relation: CodeRelation,
    deviation: f64,
}

/// Settings of a code that no release can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DesignError {
    /// ε of the code is out of range.
    #[error(transparent)]
    Code(#[from] LabelError),
    /// ε or δ of the sums is out of range.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The deviation of the noise is out of range.
    #[error(transparent)]
    Noise(#[from] NoiseError),
}

impl SymbolSums {
    /// Creates the sums with the smallest noise that satisfies (ε, δ), up to a relative precision of 1e-6.
    ///
    /// # Errors
    /// ε or δ is out of range, or the noise is.
    pub fn for_target(
        [columns, symbols]: [usize; 2],
        relation: CodeRelation,
        [epsilon, delta]: [f64; 2],
    ) -> Result<Self, DesignError> {
        let of = |deviation| Self { columns, symbols, relation, deviation };
        let sensitivity = of(LEAST_DEVIATION).sensitivity();
        let mut low = gaussian::noise(epsilon, delta)? * sensitivity;
        let mut high = low.max(LEAST_DEVIATION);
        while of(high).epsilon(delta) > epsilon {
            low = high;
            high *= 1.0 + 1e-3;
            DiscreteGaussian::new(high)?;
        }
        while high > low * (1.0 + 1e-6) {
            let middle = f64::midpoint(low, high);
            if of(middle).epsilon(delta) <= epsilon { high = middle } else { low = middle }
        }
        DiscreteGaussian::new(high)?;
        Ok(of(high))
    }

    /// Returns the number of sums: for each symbol a count and the sums of d columns.
    pub fn len(&self) -> usize {
        (self.columns + 1) * self.symbols
    }

    /// Returns true if there are no sums.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the L2 sensitivity of the sums, in integer units.
    pub fn sensitivity(&self) -> f64 {
        let d = self.columns as f64;
        match self.relation {
            CodeRelation::AddRemove => UNIT,
            // With another symbol √2, and with the same one all columns can change their signs.
            CodeRelation::Replace | CodeRelation::Features => {
                UNIT * (2.0 * (d / (d + 1.0)).sqrt()).max(2.0f64.sqrt())
            }
        }
    }

    /// Returns the standard deviation of the noise on a count, in records.
    pub fn noise_of_count(&self) -> f64 {
        self.deviation / UNIT * ((self.columns + 1) as f64).sqrt()
    }

    /// Returns the noise in units of the sensitivity, reduced by the loss of the discrete noise.
    pub fn noise_multiplier(&self) -> f64 {
        (self.deviation * self.deviation - LOSS).sqrt() / self.sensitivity()
    }

    /// Adds the privacy loss to a total.
    fn add_to(&self, total: &mut Total) {
        let event = Event { noise: self.noise_multiplier(), rate: 1.0, steps: 1 };
        total.add_gaussian([event], self.len() as f64);
    }

    /// Returns ε at δ, or infinity without a bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        let mut total = Total::default();
        self.add_to(&mut total);
        total.epsilon(delta)
    }

    /// Returns the integers that a record adds to the sums of its symbol. A missing number becomes 0, and a number
    /// outside −1 to 1 becomes the nearest end.
    ///
    /// # Panics
    /// If the number of values is not d, which is an error of the caller.
    pub fn of_record(&self, values: &[f64]) -> Vec<i64> {
        assert_eq!(values.len(), self.columns, "values of a record");
        let weight = UNIT / ((self.columns + 1) as f64).sqrt();
        // The conversion rounds towards zero, so that no integer exceeds its number, and makes NaN 0.
        let unit = |value: f64| (value * weight) as i64;
        std::iter::once(unit(1.0)).chain(values.iter().map(|value| unit(value.clamp(-1.0, 1.0)))).collect()
    }

    /// Returns the sums with noise, in records and symbol by symbol. `noise` must be secret, and must not be used for another release.
    ///
    /// # Panics
    /// If the number of sums is another one, which is an error of the caller.
    pub fn release(&self, totals: &[i64], noise: &mut impl Rng) -> Vec<f64> {
        assert_eq!(totals.len(), self.len(), "sums of a release");
        let sampler = DiscreteGaussian::new(self.deviation).expect("checked when the design was made");
        let mut drawn = vec![0i32; totals.len()];
        sampler.fill(&mut drawn, noise);
        let weight = UNIT / ((self.columns + 1) as f64).sqrt();
        totals.iter().zip(drawn).map(|(total, noise)| (total + i64::from(noise)) as f64 / weight).collect()
    }
}

/// Noisy sums, and the code of the symbols that follow from them.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeDesign {
    /// The sums.
    pub sums: SymbolSums,
    /// The code.
    pub code: Code,
    relation: CodeRelation,
}

impl CodeDesign {
    /// Creates the design with a total of ε at δ; `means` is the share of ε for the sums.
    ///
    /// # Errors
    /// ε, δ or the noise is out of range.
    pub fn for_target(
        [columns, symbols]: [usize; 2],
        relation: CodeRelation,
        [epsilon, delta]: [f64; 2],
        means: f64,
    ) -> Result<Self, DesignError> {
        let sums = SymbolSums::for_target([columns, symbols], relation, [epsilon * means, delta])?;
        let code = Code::for_target(symbols, relation, epsilon * (1.0 - means))?;
        Ok(Self { sums, code, relation })
    }

    /// Returns the same noise and symbols under another relation.
    #[must_use]
    pub fn under(&self, relation: CodeRelation) -> Self {
        let sums = SymbolSums { relation, ..self.sums.clone() };
        Self { sums, relation, ..self.clone() }
    }

    /// Returns ε at δ, or infinity without a bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        Self::epsilon_of_all([self], delta)
    }

    /// Returns ε at δ for a person with one record in the table of each release, or infinity without a bound.
    pub fn epsilon_of_all<'a>(designs: impl IntoIterator<Item = &'a Self>, delta: f64) -> f64 {
        let mut total = Total::default();
        for design in designs {
            design.sums.add_to(&mut total);
            total.add_bound(design.code.epsilon(design.relation), 0.0);
        }
        total.epsilon(delta)
    }
}
