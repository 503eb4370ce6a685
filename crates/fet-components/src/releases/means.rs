//! Noisy means of the records of each label, and the label with the nearest mean.

/// Replaces the sums by randomised label with unbiased estimates of the sums by true label, and returns the standard
/// deviation of an estimated count.
///
/// A label is true with the probability `truth`, and each other label is equally likely. `noise` is the standard deviation
/// of a given count. A `truth` of 1 changes nothing.
pub(super) fn unmixed(sums: &mut [f64], labels: usize, truth: f64, noise: f64) -> f64 {
    if truth >= 1.0 {
        return noise;
    }
    let other = (1.0 - truth) / (labels as f64 - 1.0);
    let width = sums.len() / labels;
    let totals: Vec<f64> = (0..width).map(|column| sums.iter().skip(column).step_by(width).sum()).collect();
    for of_label in sums.chunks_exact_mut(width) {
        let of_columns = of_label.iter_mut().zip(&totals);
        of_columns.for_each(|(sum, total)| *sum = (*sum - other * total) / (truth - other));
    }
    let randomised = totals[0].max(0.0) * other * (1.0 - other);
    (noise * noise + randomised).sqrt() / (truth - other)
}

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

    /// The estimates from the expected sums are the true sums.
    #[test]
    fn estimates_are_unbiased() {
        let (truth, other) = (0.6, 0.2);
        let own = [[100.0, 50.0], [300.0, -30.0], [10.0, 0.0]];
        let expected = |answer: usize, column: usize| -> f64 {
            (0..3).map(|label| own[label][column] * if label == answer { truth } else { other }).sum()
        };
        let mut sums: Vec<f64> = (0..6).map(|place| expected(place / 2, place % 2)).collect();
        let noise = unmixed(&mut sums, 3, truth, 3.0);
        for (found, own) in sums.iter().zip(own.as_flattened()) {
            assert!((found - own).abs() < 1e-9, "{found} {own}");
        }
        // Variance of the noise, and of 410 answers.
        assert!((noise - (9.0f64 + 410.0 * 0.16).sqrt() / 0.4).abs() < 1e-9, "{noise}");
        let mut same = [1.0, 2.0, 3.0, 4.0];
        assert_eq!((unmixed(&mut same, 2, 1.0, 5.0), same), (5.0, [1.0, 2.0, 3.0, 4.0]));
    }

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
