//! Ridge regression on standardised inputs and random tanh features of them.

use fet_core::data::Matrix;
use fet_core::rng::{Purpose, stream};
use rand_distr::{Distribution, StandardNormal};

/// The number of random features besides the inputs themselves.
const RANDOM: usize = 256;
const PENALTIES: [f64; 7] = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0];

/// A fitted decoder.
pub(super) struct Decoder {
    scaling: Vec<(f64, f64)>,
    random: Vec<f64>,
    means: Vec<f64>,
    /// One row for each feature, one column for each output.
    weights: Vec<f64>,
}

impl Decoder {
    /// Fits on `train` (inputs, outputs) with the best penalty on `validation`.
    pub(super) fn fit(train: (&Matrix<f32>, &Matrix<f32>), validation: (&Matrix<f32>, &Matrix<f32>)) -> Self {
        let (inputs, outputs) = train;
        let rows = inputs.rows() as f64;
        let scaling = (0..inputs.columns()).map(|column| scaling(inputs, column)).collect::<Vec<_>>();
        let mut rng = stream(0, 0, Purpose::Weights, 0);
        let width = (inputs.columns() as f64).sqrt().recip();
        let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
        let random = (0..RANDOM * (inputs.columns() + 1)).map(|_| width * draw()).collect();
        let means = (0..outputs.columns()).map(|column| mean(outputs, column)).collect::<Vec<_>>();
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

    /// The squared error as a share of the variance: the median of the outputs that vary.
    pub(super) fn error(&self, inputs: &Matrix<f32>, truth: &Matrix<f32>) -> f64 {
        let features = self.features(inputs);
        let (outputs, count) = (self.means.len(), features.len() / inputs.rows());
        let (mut wrong, mut spread) = (vec![0.0; outputs], vec![0.0; outputs]);
        for (row, features) in features.chunks(count).enumerate() {
            let mut guess = self.means.clone();
            for (feature, weights) in features.iter().zip(self.weights.chunks(outputs)) {
                guess.iter_mut().zip(weights).for_each(|(guess, weight)| *guess += feature * weight);
            }
            for (output, &y) in truth.row(row).iter().enumerate() {
                wrong[output] += (f64::from(y) - guess[output]).powi(2);
                spread[output] += (f64::from(y) - self.means[output]).powi(2);
            }
        }
        let mut shares: Vec<f64> = wrong
            .iter()
            .zip(&spread)
            .filter(|(_, spread)| **spread > 1e-9)
            .map(|(wrong, spread)| wrong / spread)
            .collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied().unwrap_or(1.0)
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

fn mean(table: &Matrix<f32>, column: usize) -> f64 {
    (0..table.rows()).map(|row| f64::from(table.row(row)[column])).sum::<f64>() / table.rows() as f64
}

fn scaling(table: &Matrix<f32>, column: usize) -> (f64, f64) {
    let mean = mean(table, column);
    let variance =
        (0..table.rows()).map(|row| (f64::from(table.row(row)[column]) - mean).powi(2)).sum::<f64>();
    (mean, (variance / table.rows() as f64).sqrt().max(1e-9))
}

/// leftᵀ·right·scale for tables of rows.
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

/// (gram + penalty·1)⁻¹ target, by Cholesky.
fn solve(gram: &[f64], n: usize, penalty: f64, target: &[f64], outputs: usize) -> Vec<f64> {
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

    /// Outputs that depend on the inputs are recovered, others are not.
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
            let error = decoder.error(&test.0, &only(&test.1));
            assert!((low..high).contains(&error), "output {column}: {error}");
        };
        check(0, 0.0, 0.01);
        check(1, 0.0, 0.1);
        check(2, 0.9, 1.3);
    }
}
