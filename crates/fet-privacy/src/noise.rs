//! Integer noise from the discrete Gaussian, fast enough for millions of values in a training step. A proved
//! bound on its deviation from the definition is charged to the privacy guarantee.
//!
//! [`DiscreteGaussian`] draws from D(s), P(k) ∝ exp(−k²/2s²). For small s, it makes one look-up in an alias
//! table built in integer arithmetic. For larger s, it returns x + b·y with x and y from one table of
//! parameter s/√(1+b²). By the lemma on sums in the statement, the result is D(s) up to a factor e^{±1e-70}.
//! The remaining error is the rounding of the table, [`RELATIVE_ERROR`] and [`TAIL_MASS`]. [`Slack`] converts
//! this error to an amount added to ε and an amount taken from δ.
//!
//! The samplers are not constant-time. A party that lets others time its noise to the nanosecond may leak
//! some of the noise.

mod slack;
mod table;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;

pub use slack::Slack;
use table::Table;

/// Largest relative error of the probability of an outcome within [`BULK`] deviations. The exponent there is
/// at most 15.2 and is rounded a few times, and half a unit of the table is 1.2e-14 of the rarest outcome.
pub const RELATIVE_ERROR: f64 = 1.0 / (1u64 << 45) as f64;
/// Number of deviations within which the relative error holds.
pub const BULK: f64 = 5.5;
/// Upper bound on Σ |P' − P| over all outcomes farther out, where P' is the table of one value and P its
/// definition.
///
/// A table of 2^b slots, with 22.6 s outcomes, counts in units of 2^-(64+b). Up to 9.8 deviations, a
/// probability is off by half a unit, together 8.6 s/22.6 s of 2^-65, or 1.03e-20, and by its relative
/// rounding, 1.1e-21. Farther out, a unit is more than twice the probability, which rounds to 0: 2.2e-22.
pub const TAIL_MASS: f64 = 1.2e-20;
/// Smallest parameter. Below it, sums of discrete Gaussians are not close enough to discrete Gaussians.
pub const LEAST_DEVIATION: f64 = 8.0;
/// Largest parameter. Above it, noise no longer fits the integers that hold it.
pub const MOST_DEVIATION: f64 = 1e8;
/// Largest distance of a value from 0, in deviations. A value lies farther out with probability below 2^-130.
pub const REACH: f64 = 14.0;

/// Largest parameter of a table that stays within the processor's caches.
const TABLE_DEVIATION: f64 = 160.0;
/// Smallest ratio of a table's parameter to b, so that x covers the grid of b·y.
const OVERLAP: f64 = 3.0;
/// Number of values drawn from one stream; the values do not depend on the division among threads.
const CHUNK: usize = 1 << 15;

/// Sampler of the discrete Gaussian.
#[derive(Debug, Clone)]
pub struct DiscreteGaussian {
    deviation: f64,
    table: Table,
    /// Factor b, or 0 if one look-up is enough.
    factor: i32,
}

/// Deviation that integer noise cannot have.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("integer noise needs a deviation from {LEAST_DEVIATION} to {MOST_DEVIATION:e} units; it is {0}")]
pub struct NoiseError(pub f64);

impl DiscreteGaussian {
    /// Creates the sampler of parameter `deviation`. The standard deviation equals the parameter far beyond
    /// floating-point precision.
    pub fn new(deviation: f64) -> Result<Self, NoiseError> {
        if !(LEAST_DEVIATION..=MOST_DEVIATION).contains(&deviation) {
            return Err(NoiseError(deviation));
        }
        if deviation <= TABLE_DEVIATION {
            return Ok(Self { deviation, table: Table::new(deviation), factor: 0 });
        }
        // The smallest allowed table: as small as `TABLE_DEVIATION` if b stays below a third of it.
        let wanted = (deviation / TABLE_DEVIATION).max(1.0);
        let most = (deviation / OVERLAP).sqrt();
        let factor = wanted.min(most).ceil().max(1.0);
        let table = Table::new(deviation / (1.0 + factor * factor).sqrt());
        Ok(Self { deviation, table, factor: factor as i32 })
    }

    /// Returns the parameter.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Fills `out`, on all threads. The same state of `rng` gives the same values for any number of threads.
    pub fn fill(&self, out: &mut [i32], rng: &mut impl Rng) {
        let mut streams: Vec<ChaCha8Rng> = (0..out.len().div_ceil(CHUNK))
            .map(|_| {
                let mut seed = [0u8; 32];
                rng.fill_bytes(&mut seed);
                ChaCha8Rng::from_seed(seed)
            })
            .collect();
        out.par_chunks_mut(CHUNK).zip(&mut streams).for_each(|(out, rng)| {
            if self.factor == 0 {
                self.table.fill(out, rng, |slot, value| *slot = value);
            } else {
                self.table.fill(out, rng, |slot, value| *slot = value);
                self.table.fill(out, rng, |slot, value| *slot += self.factor * value);
            }
        });
    }
}
