//! Output activation and loss of a batch, on tensors.

use burn::tensor::{Tensor, TensorData, activation};

use super::Objective;
use crate::data::Task;

/// Smallest probability that counts as positive: slightly above the smallest normal 32-bit float.
const SMALLEST: f64 = 1.2e-38;

impl Objective {
    /// Applies the output activation: a sigmoid for one output, none for several.
    pub fn activate(&self, output: Tensor<2>) -> Tensor<2> {
        match self.task {
            Task::Regression | Task::Binary => activation::sigmoid(output),
            Task::Multiclass => output,
        }
    }

    /// Returns the mean loss of a batch, with each row's loss multiplied by its weight; without weights all
    /// rows count equally.
    ///
    /// # Shapes
    /// - output: [B, outputs], activated; labels: B, scaled; weights: B or empty; result: one number
    pub fn loss(&self, output: Tensor<2>, labels: &[f32], weights: &[f32]) -> Tensor<1> {
        let rows = labels.len();
        let device = output.device();
        let weighted = |loss: Tensor<2>| match weights {
            [] => loss,
            weights => loss * Tensor::<2>::from_data(TensorData::new(weights.to_vec(), [rows, 1]), &device),
        };
        let target = || Tensor::<2>::from_data(TensorData::new(labels.to_vec(), [rows, 1]), &device);
        match self.task {
            Task::Regression => {
                let error = output - target();
                weighted(error.clone() * error).mean()
            }
            Task::Binary => {
                // The logarithm of 0 is -100 with gradient 0, as in PyTorch's BCELoss, because a model may
                // reach probability 0.
                let log = |p: Tensor<2>| {
                    let none = p.clone().lower_elem(SMALLEST);
                    p.clamp_min(SMALLEST).log().mask_fill(none, -100.0)
                };
                let (y, p) = (target(), output);
                let positive = y.clone() * log(p.clone());
                let negative = y.neg().add_scalar(1.0) * log(p.neg().add_scalar(1.0));
                weighted(positive + negative).mean().neg()
            }
            Task::Multiclass => {
                let mut one_hot = vec![0.0f32; rows * self.outputs];
                for (row, &label) in labels.iter().enumerate() {
                    one_hot[row * self.outputs + label as usize] = 1.0;
                }
                let one_hot = Tensor::<2>::from_data(TensorData::new(one_hot, [rows, self.outputs]), &device);
                weighted(activation::log_softmax(output, 1) * one_hot).sum().div_scalar(rows as f64).neg()
            }
        }
    }
}
