//! Losses and metrics of the three tasks.
//!
//! The loss is computed on the device, on scaled labels; the metric on the host, in the label's own unit.

mod target;
mod tensor;

pub use fet_eval::{Direction, Metric};
pub use target::{FittedTarget, LabelScale, TargetTransformation};

use serde::{Deserialize, Serialize};

use crate::data::Task;

/// The loss that training minimises and the metric that the run reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// The task.
    pub task: Task,
    /// Number of outputs: the number of classes for a multi-class task, otherwise 1.
    pub outputs: usize,
    /// Smallest training label of a regression; labels are scaled to [0, 1] with it.
    pub minimum: f64,
    /// Largest minus smallest training label of a regression.
    pub range: f64,
}

impl Objective {
    /// Returns the selection metric for settings that name none.
    pub fn metric(&self) -> Metric {
        match self.task {
            Task::Regression => Metric::Rmse,
            Task::Binary | Task::Multiclass => Metric::Accuracy,
        }
    }

    /// Returns the corresponding task of `fet-eval`.
    pub fn scored(&self) -> fet_eval::Task {
        match self.task {
            Task::Regression => fet_eval::Task::Regression,
            Task::Binary => fet_eval::Task::Binary,
            Task::Multiclass => fet_eval::Task::Multiclass { classes: self.outputs },
        }
    }

    /// Returns a label as the model sees it: scaled to [0, 1] for a regression, otherwise unchanged.
    pub fn scale(&self, label: f64) -> f32 {
        match self.task {
            Task::Regression => ((label - self.minimum) / self.range) as f32,
            Task::Binary | Task::Multiclass => label as f32,
        }
    }

    /// Converts activated outputs to predictions in 64 bits: a number in the label's own unit for a
    /// regression, the probability of class 1 for a binary task, or one probability for each class.
    pub fn predictions(&self, outputs: &[f32]) -> Vec<f64> {
        match self.task {
            Task::Regression => {
                outputs.iter().map(|&output| f64::from(output) * self.range + self.minimum).collect()
            }
            Task::Binary => outputs.iter().map(|&output| f64::from(output)).collect(),
            Task::Multiclass => outputs.chunks_exact(self.outputs).flat_map(softmax).collect(),
        }
    }
}

fn softmax(outputs: &[f32]) -> Vec<f64> {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> =
        outputs.iter().map(|&output| (f64::from(output) - f64::from(largest)).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}
