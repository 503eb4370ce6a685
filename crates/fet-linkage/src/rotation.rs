//! Numbers turned, scaled and shifted by a secret: distances are kept, up to a factor; places are not.
//!
//! x becomes s·Qx + t with a random orthogonal Q, a random scale s, and a random shift t. Nearest neighbours are
//! exactly those of the numbers. Whoever sees the result and not the secret learns the *shape* of the cloud of points: all
//! ratios of distances. Whoever knows m + 1 of the points learns all of them. It hides places from a party that knows
//! none of the other's, and no more.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution, StandardNormal};

/// A secret similarity transformation of m dimensions.
#[derive(Clone, PartialEq)]
pub struct Rotation {
    /// Row by row.
    orthogonal: Vec<f64>,
    scale: f64,
    shift: Vec<f64>,
}

/// Shows the size, never the secret.
impl std::fmt::Debug for Rotation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rotation({} dimensions)", self.shift.len())
    }
}

impl Rotation {
    /// The transformation that a secret stands for.
    pub fn new(columns: usize, secret: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(secret);
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(columns);
        while rows.len() < columns {
            // Gram-Schmidt on normal vectors gives an orthogonal matrix that is uniformly distributed (Haar).
            let mut row: Vec<f64> = (0..columns).map(|_| StandardNormal.sample(&mut rng)).collect();
            // Twice is enough to make rounding errors orthogonal too.
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

    /// What distances are multiplied by.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Rows of numbers, transformed.
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
