//! Numbers rotated, scaled and shifted by a secret, which preserves distances up to a factor and hides
//! positions.
//!
//! x becomes s·Qx + t with a random orthogonal Q, a random scale s and a random shift t. Nearest neighbours
//! stay exactly the same. A party that sees the result without the secret learns the *shape* of the point
//! cloud: all ratios of distances. A party that knows m + 1 of the points learns all of them. The
//! transformation therefore only hides positions from a party that knows none of the other's points.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

/// A secret similarity transformation in m dimensions.
#[derive(Clone, PartialEq)]
pub struct Rotation {
    /// Orthogonal matrix, row by row.
    orthogonal: Vec<f64>,
    scale: f64,
    shift: Vec<f64>,
}

/// Shows the size and hides the secret.
impl std::fmt::Debug for Rotation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rotation({} dimensions)", self.shift.len())
    }
}

impl Rotation {
    /// Returns the transformation derived from a secret.
    pub fn new(columns: usize, secret: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(secret);
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(columns);
        while rows.len() < columns {
            // Gram-Schmidt on normal vectors gives a uniformly distributed orthogonal matrix (Haar).
            let mut row: Vec<f64> = (0..columns).map(|_| StandardNormal.sample(&mut rng)).collect();
            // Two passes are enough to remove rounding errors.
            for _ in 0..2 {
                for other in &rows {
                    let common: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
                    row.iter_mut().zip(other).for_each(|(a, b)| *a -= common * b);
                }
            }
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            if length > 1e-6 {
                rows.push(row.into_iter().map(|x| x / length).collect());
            }
        }
        let scale = 2.0f64.powf(rng.random_range(-4.0..4.0));
        let shift = (0..columns).map(|_| rng.random_range(-1.0..1.0) * 100.0 * scale).collect();
        Self { orthogonal: rows.concat(), scale, shift }
    }

    /// Returns the factor that multiplies distances.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Returns the transformed rows of numbers.
    pub fn apply(&self, values: &[f64]) -> Vec<f64> {
        let columns = self.shift.len();
        let mut out = Vec::with_capacity(values.len());
        for row in values.chunks_exact(columns) {
            for (weights, shift) in self.orthogonal.chunks_exact(columns).zip(&self.shift) {
                let sum: f64 = weights.iter().zip(row).map(|(w, x)| w * x).sum();
                out.push(self.scale * sum + shift);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_kept_up_to_the_scale() {
        for columns in [1, 2, 5] {
            let rotation = Rotation::new(columns, [columns as u8; 32]);
            let values: Vec<f64> = (0..6 * columns).map(|i| (i * 7 % 13) as f64).collect();
            let turned = rotation.apply(&values);
            let distance = |of: &[f64], a: usize, b: usize| {
                let row = |r: usize| &of[r * columns..(r + 1) * columns];
                row(a).iter().zip(row(b)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
            };
            for (a, b) in [(0, 1), (2, 5), (3, 4)] {
                let ratio = distance(&turned, a, b) / distance(&values, a, b) / rotation.scale();
                assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
            }
            assert_ne!(turned, values);
        }
    }
}
