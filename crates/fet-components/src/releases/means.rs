//! Noisy means of the records of each label, and the label with the nearest mean.

/// Means by label.
pub(super) struct Means {
    /// Weights of a record's columns for each label's score.
    weights: Vec<Vec<f64>>,
    /// Constant of each label's score.
    constants: Vec<f64>,
}

impl Means {
    /// Computes the means from noisy sums, label by label: a count, and the sum of each column. The noise of a count is added
    /// to it, so that the mean of few records cannot be much larger than its noise.
    pub(super) fn from_sums(sums: &[f64], labels: usize, noise_of_count: f64) -> Self {
        let mean = |sums: &[f64]| -> Vec<f64> {
            let count = sums[0].max(0.0) + noise_of_count.max(1e-9);
            sums[1..].iter().map(|sum| (sum / count).clamp(-1.0, 1.0)).collect()
        };
        let weights: Vec<Vec<f64>> = sums.chunks_exact(sums.len() / labels).map(mean).collect();
        let constant = |mean: &Vec<f64>| -0.5 * mean.iter().map(|value| value * value).sum::<f64>();
        Self { constants: weights.iter().map(constant).collect(), weights }
    }

    /// Returns the label with the nearest mean; of equally near ones the first.
    pub(super) fn nearest(&self, record: &[f64]) -> usize {
        let score = |label: usize| -> f64 {
            self.constants[label] + record.iter().zip(&self.weights[label]).map(|(a, b)| a * b).sum::<f64>()
        };
        (0..self.weights.len()).rev().max_by(|&a, &b| score(a).total_cmp(&score(b))).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Label 0 has four records with the mean (0.5, −0.5), label 1 two records with (−1, 0).
    #[test]
    fn the_nearest_mean_decides() {
        let means = Means::from_sums(&[4.0, 2.0, -2.0, 2.0, -2.0, 0.0], 2, 0.0);
        assert!(means.weights[0].iter().zip([0.5, -0.5]).all(|(a, b)| (a - b).abs() < 1e-6));
        for (record, nearest) in [([0.4, -0.4], 0), ([-0.9, 0.1], 1), ([-0.2, -0.4], 0), ([-0.4, 0.0], 1)] {
            assert_eq!(means.nearest(&record), nearest, "{record:?}");
        }
        // A count below the noise gives a mean near 0.
        let means = Means::from_sums(&[-3.0, 2.0], 1, 10.0);
        assert!((means.weights[0][0] - 0.2).abs() < 1e-9);
    }
}
