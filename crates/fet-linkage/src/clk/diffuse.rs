//! Diffusion of filters (Armknecht, Heng, Schnell 2023, "Strengthening Privacy-Preserving Record Linkage
//! using Diffusion").
//!
//! Each bit of the encoding is the exclusive-or of t bits of the filter. The places of these bits are equal
//! for all records and follow from the secret. After diffusion no bit belongs to one q-gram, and no set of
//! bits to one value: each bit depends on t bits, and most of these come from the record's other values.
//!
//! Two filters of m bits that differ in d bits differ in about m/2 (1 - (1 - 2d/m)^t) bits after diffusion.
//! This number grows with d, so that the most similar records stay the most similar. Once d is near m/t,
//! however, it approaches m/2, the distance of non-matches.

use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha20Rng;

use crate::bits::{BitTable, get, set};

/// Returns the diffused rows of `table`. Each bit depends on `indices` different places, drawn from `seed`.
pub(super) fn diffuse(table: &BitTable, indices: usize, seed: [u8; 32]) -> BitTable {
    let bits = table.bits();
    let mut rng = ChaCha20Rng::from_seed(seed);
    let places: Vec<Vec<usize>> =
        (0..bits).map(|_| sample(&mut rng, bits, indices.min(bits)).into_vec()).collect();
    table.map_rows(bits, |from, to| {
        for (at, places) in places.iter().enumerate() {
            if places.iter().fold(false, |sum, &place| sum ^ get(from, place)) {
                set(to, at);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// Pairs of filters at known distances are at the predicted distances after diffusion, within four
    /// standard deviations of a binomial count (two-sided, a chance of 6e-5 for each of 20 counts).
    #[test]
    fn distances_follow_the_law() {
        let bits = 2_048;
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        for t in [1, 2, 10, 13] {
            for d in [0usize, 20, 80, 200, 600] {
                let mut table = BitTable::zeros(2, bits);
                let base: Vec<bool> = (0..bits).map(|_| rng.random_bool(0.18)).collect();
                let other: Vec<usize> = sample(&mut rng, bits, d).into_vec();
                for (at, &bit) in base.iter().enumerate() {
                    let flipped = bit ^ other.contains(&at);
                    for (row, one) in [bit, flipped].into_iter().enumerate() {
                        if one {
                            set(table.row_mut(row), at);
                        }
                    }
                }
                let out = diffuse(&table, t, [t as u8; 32]);
                let apart: u32 = out.row(0).iter().zip(out.row(1)).map(|(a, b)| (a ^ b).count_ones()).sum();
                let share = (1.0 - (1.0 - 2.0 * d as f64 / bits as f64).powi(t as i32)) / 2.0;
                let deviation = (bits as f64 * share * (1.0 - share)).sqrt();
                let expected = bits as f64 * share;
                assert!(
                    (f64::from(apart) - expected).abs() <= 4.0 * deviation,
                    "t {t}, d {d}: {apart}, {expected}"
                );
            }
        }
    }

    /// The only bit of a filter spreads to the bits that depend on its place. An empty filter stays empty.
    #[test]
    fn spreads_a_bit_and_keeps_an_empty_filter_empty() {
        let mut table = BitTable::zeros(2, 512);
        set(table.row_mut(1), 77);
        let out = diffuse(&table, 10, [3; 32]);
        assert_eq!(out.ones(0), 0);
        // A binomial count of 512 and 10/512 is below 1 with a chance of 5e-5 and above 30 with a chance of
        // 1e-7.
        assert!((1..=30).contains(&out.ones(1)), "{}", out.ones(1));
        assert_ne!(out, diffuse(&table, 10, [4; 32]), "the places follow from the secret");
        assert_eq!(out, diffuse(&table, 10, [3; 32]));
    }
}
