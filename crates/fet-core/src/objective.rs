//! Losses and metrics of the three tasks.
//!
//! The loss is computed on the device, on scaled labels; the metric on the host, in the label's own unit.

use burn::tensor::{Tensor, TensorData, activation};
pub use fet_records::{Direction, Metric, MetricName};

use crate::data::Task;
use crate::parameters::host;

/// What is minimised and what is reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The task.
    pub task: Task,
    /// How many outputs the model has: classes of a multi-class task, else 1.
    pub outputs: usize,
    /// Smallest training label of a regression; labels are scaled to [0, 1] with it.
    pub minimum: f64,
    /// Largest minus smallest training label of a regression.
    pub range: f64,
}

impl Objective {
    /// The metric of the task.
    pub fn metric(&self) -> Metric {
        match self.task {
            Task::Regression => Metric { name: MetricName::Rmse, direction: Direction::Minimise },
            Task::Binary | Task::Multiclass => {
                Metric { name: MetricName::Accuracy, direction: Direction::Maximise }
            }
        }
    }

    /// A label as the model sees it: scaled to [0, 1] for a regression, as it is otherwise.
    pub fn scale(&self, label: f32) -> f32 {
        match self.task {
            Task::Regression => ((f64::from(label) - self.minimum) / self.range) as f32,
            Task::Binary | Task::Multiclass => label,
        }
    }

    /// What the model's last layer becomes: a sigmoid for one output, nothing for several.
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

    /// For each row of an activated output its share of the metric: a squared error in the label's own
    /// unit, or 1 where the class is right.
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

    /// The metric of all rows' shares.
    pub fn metric_of(&self, scores: &[f64]) -> f64 {
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        match self.task {
            Task::Regression => mean.sqrt(),
            Task::Binary | Task::Multiclass => mean,
        }
    }
}
