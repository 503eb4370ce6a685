//! What is known of a model on its validation and its test rows: every metric, how far the main one may be off, and where
//! the model is wrong.
//!
//! Pictures of it are for others to draw. It holds no row and no prediction, but a residual may be that of one row, and a
//! group may be one row.

mod groups;
mod residuals;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::bootstrap::{Interval, Settings, bootstrap};
use crate::calibration::{Bin, Bins, reliability};
use crate::confusion::Confusion;
use crate::metric::{Metric, Task};
use crate::nullable;
use crate::predictions::Predictions;
use crate::scores::Scores;

pub use groups::{Group, Groups, LARGEST, Others};
pub use residuals::{Quantile, Residuals};

/// With more classes there is no confusion matrix.
pub const CONFUSION_CLASSES: usize = 50;

/// What is known of a model on rows that it was not trained on. All but the first field is of the test rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Every metric on the validation rows.
    pub validation: Scores,
    /// Every metric on the test rows.
    pub test: Scores,
    /// The bootstrap interval of the main metric.
    pub interval: Estimate,
    /// Which class is taken for which; nothing for a regression, or with more than [`CONFUSION_CLASSES`] classes.
    #[serde(deserialize_with = "nullable::given")]
    pub confusion: Option<Confusion>,
    /// The curve of class 1 of two, or of the predicted class of several, in 15 equal bins; empty for a regression.
    pub calibration: Vec<Bin>,
    /// The errors of a regression; nothing for classes, or where an error exceeds the range of numbers.
    #[serde(deserialize_with = "nullable::given")]
    pub residuals: Option<Residuals>,
    /// The scores of groups of rows; nothing where no column names groups.
    #[serde(deserialize_with = "nullable::given")]
    pub groups: Option<Groups>,
}

/// An interval of the main metric, or why there is none.
///
/// As JSON: `{"interval": {..}}` or `{"undefined": ".."}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimate {
    /// The interval.
    Interval(Interval),
    /// Why there is none.
    Undefined(String),
}

impl Evaluation {
    /// Evaluates predictions.
    ///
    /// - metric: the main one, of which the interval is
    /// - groups: the name of a column, and the group of each test row
    ///
    /// The interval is of [`Settings::bounded`], so that it takes about two seconds at most for 20,000 test rows. The same
    /// generator gives the same interval. Panics if there is not one group name for each test row.
    pub fn of(
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
            interval: Estimate::of(metric, test, rng),
            confusion: (1..=CONFUSION_CLASSES).contains(&classes).then(|| Confusion::new(test)),
            calibration: reliability(test, Bins::default()).unwrap_or_default(),
            residuals: if classes == 0 { Residuals::of(test) } else { None },
            groups: groups.map(|(column, names)| Groups::of(column, names, test)),
        }
    }

    /// The evaluation of a model whose predictions are none, say because it diverged: nothing is defined.
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
    fn of(metric: Metric, rows: &Predictions<'_>, rng: &mut ChaCha8Rng) -> Self {
        match bootstrap(rows, metric, Settings::bounded(rows, metric), rng) {
            Ok(interval) if interval.lower.is_finite() && interval.upper.is_finite() => {
                Self::Interval(interval)
            }
            Ok(_) => Self::Undefined(format!("{metric} exceeds the range of numbers")),
            Err(error) => Self::Undefined(error.to_string()),
        }
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        match self {
            Self::Interval(interval) => Some((interval.upper - interval.lower) / 2.0),
            Self::Undefined(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
