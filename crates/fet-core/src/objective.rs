//! Losses and metrics of the three tasks.
//!
//! The loss is computed on the device, on scaled labels; the metric on the host, in the label's own unit.

mod tensor;

pub use fet_records::{Direction, Metric, MetricName};

use crate::data::Task;

/// What is minimised and what is reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The task.
    pub task: Task,
    /// The number of outputs: classes of a multi-class task, else 1.
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

    /// A label as the model sees it: scaled to [0, 1] for a regression, otherwise unchanged.
    pub fn scale(&self, label: f32) -> f32 {
        match self.task {
            Task::Regression => ((f64::from(label) - self.minimum) / self.range) as f32,
            Task::Binary | Task::Multiclass => label,
        }
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
