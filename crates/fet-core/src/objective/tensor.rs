//! Output activation, loss and score of a batch, on tensors.

use burn::tensor::{Tensor, TensorData, activation};

use super::Objective;
use crate::data::Task;
use crate::parameters::host;

impl Objective {
    /// The output activation: a sigmoid for one output, none for several.
    pub fn activate(&self, output: Tensor<2>) -> Tensor<2> {
        match self.task {
            Task::Regression | Task::Binary => activation::sigmoid(output),
            Task::Multiclass => output,
        }
    }

    /// The mean loss of a batch.
    ///
    /// # Shapes
    /// - output: [B, outputs], activated; labels: B, scaled; result: one number
    pub fn loss(&self, output: Tensor<2>, labels: &[f32]) -> Tensor<1> {
        let rows = labels.len();
        let device = output.device();
        let target = || Tensor::<2>::from_data(TensorData::new(labels.to_vec(), [rows, 1]), &device);
        match self.task {
            Task::Regression => {
                let error = output - target();
                (error.clone() * error).mean()
            }
            Task::Binary => {
                // The logarithm is clamped at -100, as PyTorch's BCELoss does.
                let log = |p: Tensor<2>| p.log().clamp_min(-100.0);
                let (y, p) = (target(), output);
                let positive = y.clone() * log(p.clone());
                let negative = y.neg().add_scalar(1.0) * log(p.neg().add_scalar(1.0));
                (positive + negative).mean().neg()
            }
            Task::Multiclass => {
                let mut one_hot = vec![0.0f32; rows * self.outputs];
                for (row, &label) in labels.iter().enumerate() {
                    one_hot[row * self.outputs + label as usize] = 1.0;
                }
                let one_hot = Tensor::<2>::from_data(TensorData::new(one_hot, [rows, self.outputs]), &device);
                (activation::log_softmax(output, 1) * one_hot).sum().div_scalar(rows as f64).neg()
            }
        }
    }

    /// Each row's share of the metric, from the activated output: a squared error in the label's own unit, or 1 if the
    /// class is right.
    pub fn score(&self, output: Tensor<2>, raw_labels: &[f32]) -> Vec<f64> {
        let width = self.outputs;
        let output = host(output);
        let rows = output.chunks_exact(width).zip(raw_labels);
        rows.map(|(row, &label)| match self.task {
            Task::Regression => {
                let predicted = f64::from(row[0]) * self.range + self.minimum;
                (predicted - f64::from(label)).powi(2)
            }
            Task::Binary => f64::from(u8::from((row[0] >= 0.5) == (label >= 0.5))),
            Task::Multiclass => {
                let best = (0..width).fold(0, |best, c| if row[c] > row[best] { c } else { best });
                f64::from(u8::from(best == label as usize))
            }
        })
        .collect()
    }
}
