//! Vector of a record, sensitivity, noise and account of a release.

use rand::Rng;

use super::pyramid::Pyramid;
use crate::accountant::{AccountError, Event, Total};
use crate::noise::{DiscreteGaussian, LEAST_DEVIATION, NoiseError};

/// Number of integer units of one record in a count, q.
pub const UNIT: i64 = 1 << 10;
/// Variance, in units², that the discrete noise loses against the Gaussian (Lemma 3 of the crate's statement).
const LOSS: f64 = 9.0;
/// Largest noise multiplier that the calibration tries.
const MOST_NOISE: f64 = 1e4;

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
    relation: Relation,
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

impl Design {
    /// Creates the design with the smallest noise whose release satisfies (ε, δ), up to a relative precision
    /// of 1e-6. `columns` is d, the number of released columns.
    ///
    /// # Errors
    /// ε or δ is out of range, or no noise in the searched range meets them.
    pub fn for_target(
        pyramid: Pyramid,
        columns: usize,
        relation: Relation,
        [epsilon, delta]: [f64; 2],
    ) -> Result<Self, DesignError> {
        let of = |deviation| Self { pyramid: pyramid.clone(), columns, relation, deviation };
        let sensitivity = of(LEAST_DEVIATION).sensitivity();
        // `noise` refuses an ε or a δ outside its range.
        let mut low = crate::accountant::gaussian::noise(epsilon, delta)? * sensitivity;
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
        Self::with_deviation(pyramid, columns, relation, high)
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
        DiscreteGaussian::new(deviation)?;
        Ok(Self { pyramid, columns, relation, deviation })
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
        self.deviation
    }

    /// Returns the number of released integers.
    pub fn len(&self) -> usize {
        self.pyramid.all_cells() * (1 + self.columns)
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
        let norm = if self.columns == 0 { 1.0 } else { 2.0 };
        let moved = match self.relation {
            Relation::AddRemove => norm,
            // In different cells 2c², in one cell at most 4 if there are numbers: both are 2c².
            Relation::Record => 2.0 * norm,
        };
        UNIT as f64 * (self.pyramid.levels() as f64 * moved).sqrt()
    }

    /// Returns the noise in units of the sensitivity, z, reduced by the loss of the discrete noise.
    pub fn noise_multiplier(&self) -> f64 {
        (self.deviation * self.deviation - LOSS).sqrt() / self.sensitivity()
    }

    /// Returns ε of the release at δ, or infinity without a bound.
    pub fn epsilon(&self, delta: f64) -> f64 {
        Self::epsilon_of_all(std::iter::once(self), delta)
    }

    /// Returns ε at δ for a person with one record in the table of each release, or infinity without a bound.
    pub fn epsilon_of_all<'a>(designs: impl IntoIterator<Item = &'a Self>, delta: f64) -> f64 {
        let mut total = Total::default();
        for design in designs {
            let event = Event { noise: design.noise_multiplier(), rate: 1.0, steps: 1 };
            total.add_gaussian([event], design.len() as f64);
        }
        total.epsilon(delta)
    }

    /// Returns the totals with noise. `noise` must be secret, and must not be used for another release.
    ///
    /// # Panics
    /// If the totals are not those of this design, which is an error of the caller.
    pub fn release(&self, mut totals: Vec<i64>, noise: &mut impl Rng) -> Vec<i64> {
        assert_eq!(totals.len(), self.len(), "totals of a release");
        let sampler = DiscreteGaussian::new(self.deviation).expect("checked when the design was made");
        let mut drawn = vec![0i32; totals.len()];
        sampler.fill(&mut drawn, noise);
        totals.iter_mut().zip(drawn).for_each(|(total, noise)| *total += i64::from(noise));
        totals
    }
}
