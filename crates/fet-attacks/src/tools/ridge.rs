//! Ridge regression on standardised inputs and random tanh features of them.

use fet_core::data::Matrix;
use fet_core::rng::{Purpose, stream};
use rand_distr::{Distribution, StandardNormal};

use super::scaling;

/// Number of random features in addition to the inputs.
const RANDOM: usize = 256;
const PENALTIES: [f64; 7] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0];

/// Fitted ridge decoder.
pub(crate) struct Decoder {
    scaling: Vec<(f64, f64)>,
    random: Vec<f64>,
    means: Vec<f64>,
    /// Weights, one row per feature and one column per output.
    weights: Vec<f64>,
}

impl Decoder {
    /// Fits on `train` (inputs, outputs) with the best penalty on `validation`.
    pub(crate) fn fit(train: (&Matrix<f32>, &Matrix<f32>), validation: (&Matrix<f32>, &Matrix<f32>)) -> Self {
        let (inputs, outputs) = train;
        let rows = inputs.rows() as f64;
        let scaling = scaling(inputs);
        let mut rng = stream(0, 0, Purpose::Weights, 0);
        let width = (inputs.columns() as f64).sqrt().recip();
        let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
        let random = (0..RANDOM * (inputs.columns() + 1)).map(|_| width * draw()).collect();
        let means = super::scaling(outputs).into_iter().map(|(mean, _)| mean).collect::<Vec<_>>();
        let mut decoder = Self { scaling, random, means, weights: Vec::new() };
        let features = decoder.features(inputs);
        let count = features.len() / inputs.rows();
        let gram = product(&features, count, &features, count, 1.0 / rows);
        let centred: Vec<f64> = (0..outputs.rows())
            .flat_map(|row| outputs.row(row).iter().zip(&decoder.means).map(|(&y, mean)| f64::from(y) - mean))
            .collect();
        let target = product(&features, count, &centred, outputs.columns(), 1.0 / rows);
        let mut best = (f64::INFINITY, Vec::new());
        for penalty in PENALTIES {
            decoder.weights = solve(&gram, count, penalty, &target, outputs.columns());
            let error = decoder.error(validation.0, validation.1);
            if error < best.0 {
                best = (error, decoder.weights.clone());
            }
        }
        decoder.weights = best.1;
        decoder
    }

    /// Returns the predicted outputs.
    pub(crate) fn predict(&self, inputs: &Matrix<f32>) -> Matrix<f32> {
        let features = self.features(inputs);
        let outputs = self.means.len();
        let mut values = Vec::with_capacity(inputs.rows() * outputs);
        for features in features.chunks((self.scaling.len() + RANDOM).max(1)) {
            let mut guess = self.means.clone();
            for (feature, weights) in features.iter().zip(self.weights.chunks(outputs.max(1))) {
                guess.iter_mut().zip(weights).for_each(|(guess, weight)| *guess += feature * weight);
            }
            values.extend(guess.into_iter().map(|value| value as f32));
        }
        Matrix::new(outputs, values)
    }

    /// Returns the squared error of all outputs together.
    pub(crate) fn error(&self, inputs: &Matrix<f32>, truth: &Matrix<f32>) -> f64 {
        let found = self.predict(inputs);
        found.values().iter().zip(truth.values()).map(|(a, b)| f64::from(a - b).powi(2)).sum()
    }

    fn features(&self, inputs: &Matrix<f32>) -> Vec<f64> {
        let columns = inputs.columns();
        let mut all = Vec::with_capacity(inputs.rows() * (columns + RANDOM));
        for row in 0..inputs.rows() {
            let start = all.len();
            all.extend(
                inputs
                    .row(row)
                    .iter()
                    .zip(&self.scaling)
                    .map(|(&x, (mean, scale))| ((f64::from(x) - mean) / scale).clamp(-6.0, 6.0)),
            );
            for direction in self.random.chunks(columns + 1) {
                let (bias, direction) = (direction[columns], &direction[..columns]);
                let sum: f64 = all[start..start + columns].iter().zip(direction).map(|(x, w)| x * w).sum();
                all.push((sum + bias).tanh());
            }
        }
        all
    }
}

/// Returns leftᵀ·right·scale for tables of rows.
fn product(left: &[f64], a: usize, right: &[f64], b: usize, scale: f64) -> Vec<f64> {
    let mut result = vec![0.0; a * b];
    for (left, right) in left.chunks(a).zip(right.chunks(b)) {
        for (row, &x) in result.chunks_mut(b).zip(left) {
            row.iter_mut().zip(right).for_each(|(sum, &y)| *sum += x * y);
        }
    }
    result.iter_mut().for_each(|value| *value *= scale);
    result
}

/// Returns (gram + penalty·1)⁻¹ target, by Cholesky decomposition.
pub(crate) fn solve(gram: &[f64], n: usize, penalty: f64, target: &[f64], outputs: usize) -> Vec<f64> {
    let mut lower = gram.to_vec();
    for i in 0..n {
        lower[i * n + i] += penalty;
        for j in 0..=i {
            let (head, tail) = lower.split_at(i * n);
            let above = if i == j { &tail[..j] } else { &head[j * n..j * n + j] };
            let sum: f64 = tail[..j].iter().zip(above).map(|(x, y)| x * y).sum();
            let value = lower[i * n + j] - sum;
            lower[i * n + j] = if i == j { value.max(1e-12).sqrt() } else { value / lower[j * n + j] };
        }
    }
    let mut solution = target.to_vec();
    for i in 0..n {
        let (done, rest) = solution.split_at_mut(i * outputs);
        let row = &mut rest[..outputs];
        for (j, earlier) in done.chunks(outputs).enumerate() {
            row.iter_mut().zip(earlier).for_each(|(x, y)| *x -= lower[i * n + j] * y);
        }
        row.iter_mut().for_each(|x| *x /= lower[i * n + i]);
    }
    for i in (0..n).rev() {
        let (head, rest) = solution.split_at_mut((i + 1) * outputs);
        let row = &mut head[i * outputs..];
        for (j, later) in rest.chunks(outputs).enumerate() {
            row.iter_mut().zip(later).for_each(|(x, y)| *x -= lower[(i + 1 + j) * n + i] * y);
        }
        row.iter_mut().for_each(|x| *x /= lower[i * n + i]);
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::Uniform;

    /// The decoder recovers outputs that depend on the inputs, and only those.
    #[test]
    fn a_decoder_finds_what_is_there() {
        let mut rng = stream(1, 0, Purpose::Split, 0);
        let uniform = Uniform::new(-1.0f32, 1.0).expect("a range");
        let mut table = |rows: usize| {
            let inputs: Vec<f32> = (0..3 * rows).map(|_| uniform.sample(&mut rng)).collect();
            let noise: Vec<f32> = (0..rows).map(|_| uniform.sample(&mut rng)).collect();
            let output = |row: usize| {
                [2.0 * inputs[3 * row] - inputs[3 * row + 1], inputs[3 * row + 2].powi(2), noise[row]]
            };
            let outputs: Vec<f32> = (0..rows).flat_map(output).collect();
            (Matrix::new(3, inputs), outputs)
        };
        let (train, validation, test) = (table(600), table(200), table(300));
        let check = |column: usize, low: f64, high: f64| {
            let only = |all: &[f32]| Matrix::new(1, all.chunks(3).map(|row| row[column]).collect());
            let decoder = Decoder::fit((&train.0, &only(&train.1)), (&validation.0, &only(&validation.1)));
            let truth = only(&test.1);
            let spread: f64 = truth.values().iter().map(|&y| (f64::from(y) - decoder.means[0]).powi(2)).sum();
            let error = decoder.error(&test.0, &truth) / spread;
            assert!((low..high).contains(&error), "output {column}: {error}");
        };
        check(0, 0.0, 0.01);
        check(1, 0.0, 0.1);
        check(2, 0.9, 1.3);
    }
}
