//! Numbers as bit vectors around random pivots: the FEDERAL encoding (Karapiperis, Gkoulalas-Divanis,
//! Verykios 2018), which FedSim uses for linking.
//!
//! Each bit has a pivot and is set if the number lies within `threshold` of the pivot. The pivots are drawn
//! from a secret that the parties share. Two numbers at distance d differ in a share of about 2d / R of the
//! bits, where R is the range of the pivots. At d = 2 · threshold the share reaches its maximum: near numbers
//! keep their order, and all distant numbers look equally dissimilar. Without the secret, a vector reveals
//! how many pivots lie near a number, which is about the same everywhere. With the secret, it reveals the
//! number itself to within R / bits.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use crate::bits::{BitTable, set};

/// Pivots of the encoding. Both sides must use equal pivots.
#[derive(Debug, Clone, PartialEq)]
pub struct Pivots {
    /// Pivots of each column.
    columns: Vec<Vec<f64>>,
    /// Maximum distance to a pivot at which its bit is set, for each column.
    thresholds: Vec<f64>,
}

/// Returns the number of bits of a column that estimate the share of differing bits at distance `threshold`
/// within the factor 1 ± ε, except with probability δ. The bound is N = 3 ln(2/δ) / (ε² p), where p = 2 ·
/// threshold / R is that share (Chernoff).
pub fn bit_budget(epsilon: f64, delta: f64, threshold: f64, range: f64) -> usize {
    let share = 2.0 * threshold / (range + 2.0 * threshold);
    (3.0 * (2.0 / delta).ln() / (epsilon * epsilon * share)).ceil() as usize
}

impl Pivots {
    /// Draws `bits` pivots for each column from `ranges`, widened by the column's threshold on both sides.
    pub fn new(ranges: &[(f64, f64)], thresholds: &[f64], bits: usize, secret: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(secret);
        let columns = ranges
            .iter()
            .zip(thresholds)
            .map(|(&(low, high), &threshold)| {
                (0..bits).map(|_| rng.random_range(low - threshold..=high + threshold)).collect()
            })
            .collect();
        Self { columns, thresholds: thresholds.to_vec() }
    }

    /// Returns the bits of rows of numbers. The columns follow one another, and zeros fill the last word.
    pub fn encode(&self, values: &[f64]) -> BitTable {
        let width = self.columns.len();
        let bits: usize = self.columns.iter().map(Vec::len).sum();
        let mut table = BitTable::zeros(values.len() / width.max(1), bits.next_multiple_of(64).max(64));
        let words = table.width();
        table.words_mut().par_chunks_mut(words).zip(values.par_chunks(width)).for_each(|(row, values)| {
            let mut at = 0;
            for ((pivots, threshold), value) in self.columns.iter().zip(&self.thresholds).zip(values) {
                for pivot in pivots {
                    if (value - pivot).abs() <= *threshold {
                        set(row, at);
                    }
                    at += 1;
                }
            }
        });
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_bits_grow_with_distance_as_stated() {
        let bits = bit_budget(0.2, 0.01, 0.1, 1.0);
        assert!((2_000..3_000).contains(&bits), "{bits} bits");
        let pivots = Pivots::new(&[(0.0, 1.0)], &[0.1], bits, [7; 32]);
        let differing = |a: f64, b: f64| {
            let table = pivots.encode(&[a, b]);
            table.row(0).iter().zip(table.row(1)).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
        };
        assert_eq!(differing(0.5, 0.5), 0);
        for d in [0.05, 0.1, 0.2] {
            let share = f64::from(differing(0.4, 0.4 + d)) / bits as f64;
            // p = 2d / R with R = 1.2; α = 0.01 for d = 0.1 and less beyond. At half that distance the bound
            // is √2 wider.
            assert!((share / (2.0 * d / 1.2) - 1.0).abs() < 0.29, "distance {d}: {share}");
        }
        assert_eq!(pivots, Pivots::new(&[(0.0, 1.0)], &[0.1], bits, [7; 32]));
        assert_ne!(pivots, Pivots::new(&[(0.0, 1.0)], &[0.1], bits, [8; 32]));
    }
}
