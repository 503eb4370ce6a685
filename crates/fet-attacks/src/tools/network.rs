//! Network with one hidden layer: a decoder of features, or a head that completes a model.

use std::ops::Range;

use fet_core::data::Matrix;
use fet_core::optimizer::{Optimizer, OptimizerSettings};
use fet_core::parameters::{FlatGradient, Parameters};
use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

use super::scaling;

const HIDDEN: usize = 64;
const BATCH: usize = 32;
const EPOCHS: usize = 120;
/// Number of epochs without a better validation loss after which training stops.
const PATIENCE: usize = 15;
const LEARNING_RATE: f64 = 2e-3;
const WEIGHT_DECAY: f64 = 1e-3;

/// Loss function of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Mean squared error of standardised outputs.
    Squares,
    /// Cross entropy of a softmax; targets are 1 at the class and 0 elsewhere.
    Classes,
}

/// Fitted network.
pub(crate) struct Network {
    loss: Loss,
    inputs: Vec<(f64, f64)>,
    outputs: Vec<(f64, f64)>,
    parameters: Parameters,
}

impl Network {
    /// Fits on `train` (inputs, targets). Keeps the weights with the lowest loss on `validation`, if given.
    pub(crate) fn fit(
        loss: Loss,
        train: (&Matrix<f32>, &Matrix<f32>),
        validation: Option<(&Matrix<f32>, &Matrix<f32>)>,
    ) -> Self {
        let mut rng = stream(0, 0, Purpose::Weights, 1);
        let outputs = match loss {
            Loss::Squares => scaling(train.1),
            Loss::Classes => vec![(0.0, 1.0); train.1.columns()],
        };
        let parameters = initial(train.0.columns(), train.1.columns(), &mut rng);
        let mut network = Self { loss, inputs: scaling(train.0), outputs, parameters };
        let mut optimizer =
            Optimizer::new(OptimizerSettings { weight_decay: WEIGHT_DECAY, ..OptimizerSettings::adam() });
        let mut order: Vec<usize> = (0..train.0.rows()).collect();
        let mut best = (f64::INFINITY, 0, network.parameters.clone());
        for epoch in 0..EPOCHS {
            order.shuffle(&mut rng);
            for rows in order.chunks(BATCH) {
                let gradient = network.gradient(train, rows);
                optimizer.step(LEARNING_RATE, &mut network.parameters, &gradient);
            }
            let Some(validation) = validation else { continue };
            let error = network.error(validation);
            if error < best.0 {
                best = (error, epoch, network.parameters.clone());
            } else if epoch >= best.1 + PATIENCE {
                break;
            }
        }
        if validation.is_some() {
            network.parameters = best.2;
        }
        network
    }

    /// Returns the outputs: predicted targets, or one number per class, the largest for the most probable
    /// class.
    pub(crate) fn predict(&self, inputs: &Matrix<f32>) -> Matrix<f32> {
        let scaled = |row: usize| self.forward(&standard(inputs.row(row), &self.inputs)).1;
        let unscaled = |outputs: Vec<f32>| {
            let scale = |(value, &(mean, deviation)): (f32, &(f64, f64))| {
                (f64::from(value) * deviation + mean) as f32
            };
            outputs.into_iter().zip(&self.outputs).map(scale).collect::<Vec<f32>>()
        };
        let values = (0..inputs.rows()).flat_map(|row| unscaled(scaled(row))).collect();
        Matrix::new(self.outputs.len(), values)
    }

    /// Returns the most probable class of each row.
    pub(crate) fn classes(&self, inputs: &Matrix<f32>) -> Vec<usize> {
        let outputs = self.predict(inputs);
        let likeliest = |row: usize| {
            let scores = outputs.row(row).iter().enumerate();
            scores.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(class, _)| class)
        };
        (0..inputs.rows()).map(likeliest).collect()
    }

    fn forward(&self, input: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let values = self.parameters.values();
        let [w1, b1, w2, b2] = self.ranges();
        let mut hidden = values[b1].to_vec();
        accumulate(&mut hidden, input, &values[w1]);
        hidden.iter_mut().for_each(|x| *x = x.max(0.0));
        let mut output = values[b2].to_vec();
        accumulate(&mut output, &hidden, &values[w2]);
        (hidden, output)
    }

    /// Returns the mean gradient over some rows.
    fn gradient(&self, (inputs, targets): (&Matrix<f32>, &Matrix<f32>), rows: &[usize]) -> FlatGradient {
        let values = self.parameters.values();
        let mut gradient = vec![0.0f32; values.len()];
        let [w1, b1, w2, b2] = self.ranges();
        let (width, share) = (self.outputs.len(), 1.0 / rows.len() as f32);
        for &row in rows {
            let input = standard(inputs.row(row), &self.inputs);
            let (hidden, mut output) = self.forward(&input);
            self.residual(&mut output, targets.row(row));
            output.iter_mut().for_each(|residual| *residual *= share);
            gradient[b2.clone()].iter_mut().zip(&output).for_each(|(sum, d)| *sum += d);
            spread(&mut gradient[w2.clone()], &hidden, &output);
            let weights = values[w2.clone()].chunks(width.max(1)).zip(&hidden);
            let back = weights.map(|(weights, &h)| {
                if h > 0.0 { weights.iter().zip(&output).map(|(w, d)| w * d).sum() } else { 0.0f32 }
            });
            let back: Vec<f32> = back.collect();
            gradient[b1.clone()].iter_mut().zip(&back).for_each(|(sum, d)| *sum += d);
            spread(&mut gradient[w1.clone()], &input, &back);
        }
        FlatGradient { values: gradient, present: vec![true; 4] }
    }

    /// Replaces the outputs by the derivative of the loss with respect to the outputs.
    fn residual(&self, output: &mut [f32], target: &[f32]) {
        if self.loss == Loss::Classes {
            softmax(output);
        }
        for ((value, &target), &(mean, deviation)) in output.iter_mut().zip(target).zip(&self.outputs) {
            *value -= ((f64::from(target) - mean) / deviation) as f32;
        }
    }

    fn error(&self, (inputs, targets): (&Matrix<f32>, &Matrix<f32>)) -> f64 {
        let row = |row: usize| {
            let mut output = self.forward(&standard(inputs.row(row), &self.inputs)).1;
            if self.loss == Loss::Squares {
                self.residual(&mut output, targets.row(row));
                return output.iter().map(|&d| f64::from(d).powi(2)).sum::<f64>();
            }
            softmax(&mut output);
            let share = |(p, t): (&f32, &f32)| -f64::from(*t) * f64::from(p.max(1e-12)).ln();
            output.iter().zip(targets.row(row)).map(share).sum()
        };
        (0..inputs.rows()).map(row).sum()
    }

    fn ranges(&self) -> [Range<usize>; 4] {
        let segments = self.parameters.segments();
        [0, 1, 2, 3].map(|index| segments[index].range.clone())
    }
}

/// Draws initial weights as He et al. 2015.
fn initial(inputs: usize, outputs: usize, rng: &mut ChaCha8Rng) -> Parameters {
    let mut parameters = Parameters::default();
    for (name, rows, columns) in [("1", inputs, HIDDEN), ("2", HIDDEN, outputs)] {
        let scale = (2.0 / rows.max(1) as f32).sqrt();
        let draw = |_| -> f32 { scale * <StandardNormal as Distribution<f32>>::sample(&StandardNormal, rng) };
        let weights: Vec<f32> = (0..rows * columns).map(draw).collect();
        parameters.push(&format!("weight.{name}"), &[rows, columns], &weights);
        parameters.push(&format!("bias.{name}"), &[columns], &vec![0.0; columns]);
    }
    parameters
}

fn standard(row: &[f32], scaling: &[(f64, f64)]) -> Vec<f32> {
    // A column that was nearly constant in training is uninformative, even if it varies later.
    let scale = |(&x, &(mean, deviation)): (&f32, &(f64, f64))| {
        ((f64::from(x) - mean) / deviation).clamp(-6.0, 6.0) as f32
    };
    row.iter().zip(scaling).map(scale).collect()
}

/// output += inputᵀ·weights.
fn accumulate(output: &mut [f32], input: &[f32], weights: &[f32]) {
    for (&x, weights) in input.iter().zip(weights.chunks(output.len().max(1))) {
        if x != 0.0 {
            output.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
        }
    }
}

/// weights += input·outputᵀ.
fn spread(weights: &mut [f32], input: &[f32], output: &[f32]) {
    for (&x, weights) in input.iter().zip(weights.chunks_mut(output.len().max(1))) {
        if x != 0.0 {
            weights.iter_mut().zip(output).for_each(|(sum, d)| *sum += x * d);
        }
    }
}

fn softmax(values: &mut [f32]) {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|x| *x = (*x - most).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|x| *x /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn table(rows: usize, seed: u64) -> Matrix<f32> {
        let mut rng = stream(seed, 0, Purpose::Split, 0);
        Matrix::new(3, (0..3 * rows).map(|_| rng.random::<f32>() * 2.0 - 1.0).collect())
    }

    #[test]
    fn a_network_learns_what_is_there() {
        let target = |inputs: &Matrix<f32>| {
            let row = |row: usize| inputs.row(row)[0].abs() + inputs.row(row)[1] * inputs.row(row)[2];
            Matrix::new(1, (0..inputs.rows()).map(row).collect())
        };
        let [train, validation, test] = [(900, 1), (200, 2), (300, 3)].map(|(rows, seed)| table(rows, seed));
        let (y, z) = (target(&train), target(&validation));
        let network = Network::fit(Loss::Squares, (&train, &y), Some((&validation, &z)));
        let (found, truth) = (network.predict(&test), target(&test));
        let wrong: f64 =
            found.values().iter().zip(truth.values()).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let (mean, deviation) = scaling(&truth)[0];
        assert!(wrong / 300.0 < 0.1 * deviation.powi(2), "{wrong} {mean} {deviation}");
    }

    #[test]
    fn a_network_tells_classes_apart() {
        let class =
            |inputs: &Matrix<f32>, row: usize| usize::from(inputs.row(row)[0] * inputs.row(row)[1] > 0.0);
        let target = |inputs: &Matrix<f32>| {
            let row = |row: usize| [0, 1].map(|other| f32::from(u8::from(class(inputs, row) == other)));
            Matrix::new(2, (0..inputs.rows()).flat_map(row).collect())
        };
        let [train, test] = [(900, 1), (300, 3)].map(|(rows, seed)| table(rows, seed));
        let network = Network::fit(Loss::Classes, (&train, &target(&train)), None);
        let found = network.classes(&test);
        let right = (0..300).filter(|&row| found[row] == class(&test, row)).count();
        assert!(right > 270, "{right}");
    }
}
