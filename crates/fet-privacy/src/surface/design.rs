//! Vector of a record, sensitivity, noise and account of a release.

use rand::Rng;

use super::pyramid::Pyramid;
use crate::accountant::Total;
use crate::integers::{DesignError, NoisyIntegers};

/// Number of integer units of one record in a count, q.
pub const UNIT: i64 = 1 << 10;

/// Neighbouring relation of two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// One record is added or removed.
    AddRemove,
    /// One record is added, removed, or replaced with its key.
    Record,
}

/// Public inputs of a release: the cells, the number of columns, the relation and the noise.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    pyramid: Pyramid,
    columns: usize,
    noise: NoisyIntegers,
}

impl Design {
    /// Creates the design with the smallest noise whose release satisfies the target (ε, δ), up to a relative precision
    /// of 1e-6. `columns` is d, the number of released columns.
    ///
    /// # Errors
    /// ε or δ is out of range, or no noise in the searched range meets them.
    pub fn for_target(
        pyramid: Pyramid,
        columns: usize,
        relation: Relation,
        target: [f64; 2],
    ) -> Result<Self, DesignError> {
        let (count, sensitivity) = (count(&pyramid, columns), sensitivity(&pyramid, columns, relation));
        let noise = NoisyIntegers::for_target(count, sensitivity, target)?;
        Ok(Self { pyramid, columns, noise })
    }

    /// Creates the design with noise of parameter `deviation`, s, in integer units.
    ///
    /// # Errors
    /// The sampler cannot draw noise of this parameter.
    pub fn with_deviation(
        pyramid: Pyramid,
        columns: usize,
        relation: Relation,
        deviation: f64,
    ) -> Result<Self, DesignError> {
        let (count, sensitivity) = (count(&pyramid, columns), sensitivity(&pyramid, columns, relation));
        let noise = NoisyIntegers::with_deviation(count, sensitivity, deviation)?;
        Ok(Self { pyramid, columns, noise })
    }

    /// Returns the cells.
    pub fn pyramid(&self) -> &Pyramid {
        &self.pyramid
    }

    /// Returns d, the number of released columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns s, the parameter of the noise in integer units.
    pub fn deviation(&self) -> f64 {
        self.noise.deviation()
    }

    /// Returns the number of released integers.
    pub fn len(&self) -> usize {
        self.noise.count()
    }

    /// Returns false: a release has at least one integer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the vector of a record from its d numbers, each mapped from its range to [−1, 1]. A missing
    /// number (NaN) becomes 0, and a number outside becomes the end of the range.
    ///
    /// # Panics
    /// If the number of values is not d, which is an error of the caller.
    pub fn vector(&self, values: &[f64]) -> Vec<i64> {
        assert_eq!(values.len(), self.columns, "values of a record");
        let weight = self.weight();
        let coordinate = |value: &f64| {
            // The conversion rounds towards zero, and makes NaN 0.
            (value.clamp(-1.0, 1.0) * weight) as i64
        };
        std::iter::once(UNIT).chain(values.iter().map(coordinate)).collect()
    }

    /// Returns the largest absolute value of a column's coordinate, floor(q/√d).
    pub(super) fn weight(&self) -> f64 {
        (UNIT as f64 / (self.columns.max(1) as f64).sqrt()).floor()
    }

    /// Returns the L2 sensitivity of the totals, in integer units: the largest distance between the totals of
    /// neighbouring tables.
    pub fn sensitivity(&self) -> f64 {
        self.noise.sensitivity()
    }

    /// Returns the noise in units of the sensitivity, z, reduced by the loss of the discrete noise.
    pub fn noise_multiplier(&self) -> f64 {
        self.noise.noise_multiplier()
    }

    /// Returns ε of the release at δ, or infinity without a bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        Self::epsilon_of_all(std::iter::once(self), delta)
    }

    /// Returns ε at δ for a person with one record in the table of each release, or infinity without a bound.
    pub fn epsilon_of_all<'a>(designs: impl IntoIterator<Item = &'a Self>, delta: f64) -> f64 {
        let mut total = Total::default();
        for design in designs {
            design.noise.add_to(&mut total);
        }
        total.epsilon(delta)
    }

    /// Returns the totals with noise. `noise` must be secret, and must not be used for another release.
    ///
    /// # Panics
    /// If the totals are not those of this design, which is an error of the caller.
    pub fn release(&self, totals: Vec<i64>, noise: &mut impl Rng) -> Vec<i64> {
        self.noise.release(totals, noise)
    }
}

/// Returns the number of integers of a release.
fn count(pyramid: &Pyramid, columns: usize) -> usize {
    pyramid.all_cells() * (1 + columns)
}

/// Returns the largest distance between the totals of neighbouring tables, in integer units.
fn sensitivity(pyramid: &Pyramid, columns: usize, relation: Relation) -> f64 {
    let norm = if columns == 0 { 1.0 } else { 2.0 };
    let moved = match relation {
        Relation::AddRemove => norm,
        // In different cells 2c², in one cell at most 4 if there are numbers: both are 2c².
        Relation::Record => 2.0 * norm,
    };
    UNIT as f64 * (pyramid.levels() as f64 * moved).sqrt()
}
