//! Evaluation of a model on its validation and test rows: every metric, the interval of the main metric, and
//! the errors.
//!
//! The evaluation holds no row and no prediction. However, a residual can come from a single row, and a group
//! can consist of a single row. Other crates draw the charts.

mod groups;
mod residuals;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::bootstrap::{BootstrapSettings, Interval, bootstrap};
use crate::calibration::{Bin, Bins, reliability};
use crate::confusion::Confusion;
use crate::metric::{Metric, Task};
use crate::nullable;
use crate::predictions::Predictions;
use crate::scores::Scores;

pub use groups::{Group, Groups, LARGEST, Others};
pub use residuals::{Quantile, Residuals};

/// Maximum number of classes for a confusion matrix.
pub const CONFUSION_CLASSES: usize = 50;

/// Evaluation of a model on rows outside its training rows. All fields except `validation` describe the test
/// rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Every metric on the validation rows.
    pub validation: Scores,
    /// Every metric on the test rows.
    pub test: Scores,
    /// Bootstrap interval of the main metric.
    pub interval: Estimate,
    /// Confusion matrix. `None` for a regression or for more than [`CONFUSION_CLASSES`] classes.
    #[serde(deserialize_with = "nullable::given")]
    pub confusion: Option<Confusion>,
    /// Reliability curve in 15 equal bins: of class 1 for a binary task, of the predicted class for several
    /// classes. Empty for a regression.
    pub calibration: Vec<Bin>,
    /// Residuals of a regression. `None` for classes, or if a residual exceeds the range of `f64`.
    #[serde(deserialize_with = "nullable::given")]
    pub residuals: Option<Residuals>,
    /// Scores by group of rows. `None` if no column names groups.
    #[serde(deserialize_with = "nullable::given")]
    pub groups: Option<Groups>,
}

/// Interval of the main metric, or the reason why it is undefined.
///
/// As JSON: `{"interval": {..}}` or `{"undefined": ".."}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimate {
    /// Bootstrap interval.
    Interval(Interval),
    /// Reason why the interval is undefined.
    Undefined(String),
}

impl Evaluation {
    /// Evaluates predictions.
    ///
    /// - metric: main metric, for which the interval is computed
    /// - groups: name of a column, and the group of each test row
    ///
    /// [`BootstrapSettings::bounded`] sets the interval, which takes at most about two seconds for 20,000 test rows.
    /// The same generator gives the same interval. Panics if the number of group names differs from the
    /// number of test rows.
    pub fn compute(
        metric: Metric,
        validation: &Predictions<'_>,
        test: &Predictions<'_>,
        groups: Option<(&str, &[String])>,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let classes = test.task().classes();
        Self {
            validation: validation.scores(),
            test: test.scores(),
            interval: Estimate::compute(metric, test, rng),
            confusion: (1..=CONFUSION_CLASSES).contains(&classes).then(|| Confusion::new(test)),
            calibration: reliability(test, Bins::default()).unwrap_or_default(),
            residuals: if classes == 0 { Residuals::from_predictions(test) } else { None },
            groups: groups.map(|(column, names)| Groups::from_names(column, names, test)),
        }
    }

    /// Returns the evaluation of a model without usable predictions, for example after divergence: every
    /// metric is undefined.
    pub fn undefined(task: Task, reason: &str) -> Self {
        Self {
            validation: Scores::undefined(task, reason),
            test: Scores::undefined(task, reason),
            interval: Estimate::Undefined(reason.to_string()),
            confusion: None,
            calibration: Vec::new(),
            residuals: None,
            groups: None,
        }
    }
}

impl Estimate {
    fn compute(metric: Metric, rows: &Predictions<'_>, rng: &mut ChaCha8Rng) -> Self {
        match bootstrap(rows, metric, BootstrapSettings::bounded(rows, metric), rng) {
            Ok(interval) if interval.lower.is_finite() && interval.upper.is_finite() => {
                Self::Interval(interval)
            }
            Ok(_) => Self::Undefined(format!("{metric} exceeds the range of numbers")),
            Err(error) => Self::Undefined(error.to_string()),
        }
    }

    /// Returns half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        match self {
            Self::Interval(interval) => Some((interval.upper - interval.lower) / 2.0),
            Self::Undefined(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
