//! Noisy sums over the records of each label, from whose means a symbol follows, and the account of sums and symbols.

use rand::Rng;

use super::{Code, CodeRelation};
use crate::accountant::Total;
use crate::integers::{DesignError, NoisyIntegers};
use crate::labels::LabelError;

/// Number of integer units of 1, q.
const UNIT: f64 = (1u32 << 14) as f64;

/// Sums of the records' numbers by symbol: φ = (1, x₁, …, x_d)/√(d + 1), with each x from −1 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SymbolSums {
    columns: usize,
    noise: NoisyIntegers,
}

/// Settings of a code that no release can have.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CodeError {
    /// ε of the code is out of range.
    #[error(transparent)]
    Code(#[from] LabelError),
    /// ε or δ of the sums, or their noise, is out of range.
    #[error(transparent)]
    Sums(#[from] DesignError),
}

/// Returns the L2 sensitivity of the sums of `columns` columns, in integer units.
fn sensitivity(columns: usize, relation: CodeRelation) -> f64 {
    let d = columns as f64;
    match relation {
        CodeRelation::AddRemove => UNIT,
        // With another symbol √2, and with the same one all columns can change their signs.
        CodeRelation::Replace | CodeRelation::Features => {
            UNIT * (2.0 * (d / (d + 1.0)).sqrt()).max(2.0f64.sqrt())
        }
    }
}

impl SymbolSums {
    /// Creates the sums with the smallest noise that satisfies (ε, δ): for each symbol a count and the sums of d columns.
    ///
    /// # Errors
    /// ε or δ is out of range, or the noise is.
    pub fn for_target(
        [columns, symbols]: [usize; 2],
        relation: CodeRelation,
        target: [f64; 2],
    ) -> Result<Self, DesignError> {
        let count = (columns + 1) * symbols;
        Ok(Self { columns, noise: NoisyIntegers::for_target(count, sensitivity(columns, relation), target)? })
    }

    /// Returns the noise of the sums and its account.
    pub fn noise(&self) -> &NoisyIntegers {
        &self.noise
    }

    /// Returns one record in units of a sum.
    fn weight(&self) -> f64 {
        UNIT / ((self.columns + 1) as f64).sqrt()
    }

    /// Returns the standard deviation of the noise on a count, in records.
    pub fn noise_of_count(&self) -> f64 {
        self.noise.deviation() / self.weight()
    }

    /// Returns the integers that a record adds to the sums of its symbol. A missing number becomes 0, and a number
    /// outside −1 to 1 becomes the nearest end.
    ///
    /// # Panics
    /// If the number of values is not d, which is an error of the caller.
    pub fn of_record(&self, values: &[f64]) -> Vec<i64> {
        assert_eq!(values.len(), self.columns, "values of a record");
        let weight = self.weight();
        // The conversion rounds towards zero, so that no integer exceeds its number, and makes NaN 0.
        let unit = |value: f64| (value * weight) as i64;
        std::iter::once(unit(1.0)).chain(values.iter().map(|value| unit(value.clamp(-1.0, 1.0)))).collect()
    }

    /// Returns the sums with noise, in records and symbol by symbol. `noise` must be secret, and must not be used for
    /// another release.
    ///
    /// # Panics
    /// If the number of sums is another one, which is an error of the caller.
    pub fn release(&self, totals: Vec<i64>, noise: &mut impl Rng) -> Vec<f64> {
        self.without_noise(&self.noise.release(totals, noise))
    }

    /// Returns the sums in records.
    pub fn without_noise(&self, totals: &[i64]) -> Vec<f64> {
        let weight = self.weight();
        totals.iter().map(|&total| total as f64 / weight).collect()
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
    ) -> Result<Self, CodeError> {
        let sums = SymbolSums::for_target([columns, symbols], relation, [epsilon * means, delta])?;
        let code = Code::for_target(symbols, relation, epsilon * (1.0 - means))?;
        Ok(Self { sums, code, relation })
    }

    /// Returns the same noise and symbols under another relation.
    #[must_use]
    pub fn under(&self, relation: CodeRelation) -> Self {
        let SymbolSums { columns, noise } = self.sums;
        let noise = noise.with_sensitivity(sensitivity(columns, relation));
        Self { sums: SymbolSums { columns, noise }, relation, ..self.clone() }
    }

    /// Returns ε at δ, or infinity without a bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        Self::epsilon_of_all([self], delta)
    }

    /// Returns ε at δ for a person with one record in the table of each release, or infinity without a bound.
    pub fn epsilon_of_all<'a>(designs: impl IntoIterator<Item = &'a Self>, delta: f64) -> f64 {
        let mut total = Total::default();
        for design in designs {
            design.sums.noise.add_to(&mut total);
            total.add_bound(design.code.epsilon(design.relation), 0.0);
        }
        total.epsilon(delta)
    }
}
