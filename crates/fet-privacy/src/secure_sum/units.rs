//! Fixed point: units per real number, and the number of bits that a sum of units needs.

use super::word::Word;
use crate::noise::REACH;

/// Fixed-point form of one sum. All parties compute the same form from common knowledge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units {
    /// Units per 1; a power of two, so that floats convert exactly.
    pub scale: f64,
    /// Number of bits; the modulus is 2^bits.
    pub bits: u32,
}

/// Values that do not fit the modulus.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "sums up to {bound:.3e} with noise of {noise:.3e} need {needed} bits at {scale} units per 1; only {bits} are available"
)]
pub struct BudgetError {
    /// Largest sum without noise, in absolute value.
    pub bound: f64,
    /// Standard deviation of the noise on the sum.
    pub noise: f64,
    /// Units per 1.
    pub scale: f64,
    /// Number of bits needed.
    pub needed: u32,
    /// Number of bits available.
    pub bits: u32,
}

impl Units {
    /// Creates the form with `scale` units per 1, for sums whose absolute value is at most `bound` before
    /// noise of deviation `noise`.
    ///
    /// A sum fits if the bound and [`REACH`] deviations fit. Noise goes farther with probability below 2^-130
    /// per value.
    pub fn new(scale: f64, bits: u32, bound: f64, noise: f64) -> Result<Self, BudgetError> {
        let needed = bits_needed((bound + REACH * noise) * scale);
        if needed > bits {
            return Err(BudgetError { bound, noise, scale, needed, bits });
        }
        Ok(Self { scale, bits })
    }

    /// Returns the form with the finest scale, up to 2^`most`, at which the sum fits.
    pub fn finest(bits: u32, bound: f64, most: i32) -> Result<Self, BudgetError> {
        let fits = |power: &i32| bits_needed(bound * 2f64.powi(*power)) <= bits;
        let power = (0..=most).rev().find(fits);
        let error = BudgetError { bound, noise: 0.0, scale: 1.0, needed: bits_needed(bound), bits };
        power.map(|power| Self { scale: 2f64.powi(power), bits }).ok_or(error)
    }

    /// Returns the number of units, rounded towards zero: a clipped vector never becomes longer.
    pub fn quantise(&self, value: f32) -> i64 {
        (f64::from(value) * self.scale) as i64
    }

    /// Returns the nearest number of units.
    pub fn round(&self, value: f32) -> i64 {
        (f64::from(value) * self.scale).round() as i64
    }

    /// Returns the real numbers that correspond to the words of a sum.
    pub fn values<W: Word>(&self, words: &[W]) -> Vec<f32> {
        words.iter().map(|word| self.value(word.to_signed(self.bits)) as f32).collect()
    }

    /// Returns the real number that corresponds to a number of units.
    pub fn value(&self, units: i64) -> f64 {
        units as f64 / self.scale
    }
}

/// Returns the number of bits that hold every integer of absolute value at most `most`, with its sign.
fn bits_needed(most: f64) -> u32 {
    ((most.ceil() + 1.0).log2().ceil() as u32).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_computed_and_held() {
        assert_eq!(bits_needed(127.0), 8);
        assert_eq!(bits_needed(128.0), 9);
        assert!(Units::new(1.0, 8, 127.0, 0.0).is_ok());
        let error = Units::new(2.0, 8, 127.0, 0.0).expect_err("254 needs 9 bits");
        assert_eq!((error.needed, error.bits), (9, 8));
        assert!(Units::new(1.0, 8, 57.0, 5.0).is_ok());
        assert!(Units::new(1.0, 8, 58.0, 5.0).is_err(), "58 + 14·5 = 128");
        let finest = Units::finest(32, 100.0, 40).expect("room");
        assert_eq!(finest.scale, 2f64.powi(24));
        assert!(Units::finest(8, 1e3, 40).is_err());
        assert!(Units::new(1.0, 32, f64::INFINITY, 0.0).is_err());
    }

    #[test]
    fn quantising_never_lengthens() {
        let units = Units { scale: 16.0, bits: 32 };
        for (value, expected) in [(0.99f32, 15), (-0.99, -15), (0.06, 0), (1.0, 16)] {
            assert_eq!(units.quantise(value), expected, "{value}");
        }
    }
}
