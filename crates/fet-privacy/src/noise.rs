//! Integer noise: the discrete Gaussian, drawn fast enough for millions of values in a training step, and close to
//! its definition by a bound that is proved and charged.
//!
//! [`DiscreteGaussian`] draws from D(s), P(k) ∝ exp(−k²/2s²). Small s: one look-up in an alias table built in integer
//! arithmetic. Larger s: x + b·y with x and y from one table of parameter s/√(1+b²); by the lemma in the statement
//! that is D(s) up to a factor e^{±1e-70}. What remains is the rounding of the table, [`RELATIVE_ERROR`] and
//! [`TAIL_MASS`], which [`Slack`] turns into what must be added to ε and taken from δ.
//!
//! Time does not depend on the seed's secrecy: the samplers are not constant-time, and a party that lets others time
//! its noise to the nanosecond may leak some of it.

mod slack;
mod table;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rayon::prelude::*;

pub use slack::Slack;
use table::Table;

/// The largest relative error of the probability of an outcome within [`BULK`] deviations: the exponent there is at most
/// 15.2 and is rounded a few times, and half a unit of the table is 1.2e-14 of the rarest.
pub const RELATIVE_ERROR: f64 = 1.0 / (1u64 << 45) as f64;
/// How many deviations out the relative error holds.
pub const BULK: f64 = 5.5;
/// Σ |P' − P| over all outcomes farther out, at most, P' being the table of one value and P its definition.
///
/// A table of 2^b slots, of which 22.6 s are outcomes, counts in units of 2^-(64+b). Up to 9.8 deviations a probability is off
/// by half a unit, together 8.6 s/22.6 s of 2^-65, or 1.03e-20, and by its own relative rounding, 1.1e-21. Farther out a unit
/// is more than twice the probability, which rounds to 0: 2.2e-22.
pub const TAIL_MASS: f64 = 1.2e-20;
/// Below this parameter sums of discrete Gaussians are not discrete Gaussians closely enough.
pub const LEAST_DEVIATION: f64 = 8.0;
/// Above this parameter noise no longer fits the integers it is drawn as.
pub const MOST_DEVIATION: f64 = 1e8;
/// How many deviations from 0 a value can lie, at most: no value is farther but with probability below 2^-130.
pub const REACH: f64 = 14.0;

/// Tables up to this parameter stay within the processor's caches.
const TABLE_DEVIATION: f64 = 160.0;
/// A table's parameter must be this many times b: the grid of x must not be seen through y.
const OVERLAP: f64 = 3.0;
/// Values drawn from one stream; the division among threads does not change them.
const CHUNK: usize = 1 << 15;

/// Draws from the discrete Gaussian.
#[derive(Debug, Clone)]
pub struct DiscreteGaussian {
    deviation: f64,
    table: Table,
    /// 0 where one look-up is enough.
    factor: i32,
}

/// A deviation that integer noise cannot have.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("integer noise needs a deviation from {LEAST_DEVIATION} to {MOST_DEVIATION:e} units; it is {0}")]
pub struct NoiseError(pub f64);

impl DiscreteGaussian {
    /// The sampler of parameter `deviation`; its standard deviation is the same to many more digits than are known.
    pub fn new(deviation: f64) -> Result<Self, NoiseError> {
        if !(LEAST_DEVIATION..=MOST_DEVIATION).contains(&deviation) {
            return Err(NoiseError(deviation));
        }
        if deviation <= TABLE_DEVIATION {
            return Ok(Self { deviation, table: Table::new(deviation), factor: 0 });
        }
        // The smallest table allowed: as small as `TABLE_DEVIATION` where b stays below a third of it.
        let wanted = (deviation / TABLE_DEVIATION).max(1.0);
        let most = (deviation / OVERLAP).sqrt();
        let factor = wanted.min(most).ceil().max(1.0);
        let table = Table::new(deviation / (1.0 + factor * factor).sqrt());
        Ok(Self { deviation, table, factor: factor as i32 })
    }

    /// The parameter.
    pub fn deviation(&self) -> f64 {
        self.deviation
    }

    /// Fills `out`, on all threads. The same state of `rng` gives the same values however many there are.
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
