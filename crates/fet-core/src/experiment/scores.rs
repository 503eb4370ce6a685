//! The settings of scores: which metric selects the epoch, what is scored by group, and how often intervals hold the truth.

use fet_scores::Metric;
use serde::{Deserialize, Serialize};

use crate::registry::Violation;

/// How a run is scored. Every metric of the task is computed; this says which one counts. It is the primary's affair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScoreSettings {
    /// The metric that selects the epoch, drives the schedule of the learning rate and stands in tables; if there is none,
    /// "rmse" for a regression and "accuracy" for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// A column of the primary's table, dropped or not: test rows are also scored by its values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub groups: String,
    /// The probability with which the interval of a prediction, or its set of classes, is to hold the truth.
    pub coverage: f64,
}

impl Default for ScoreSettings {
    fn default() -> Self {
        Self { metric: None, groups: String::new(), coverage: 0.9 }
    }
}

impl ScoreSettings {
    /// Refuses settings that no run can have.
    pub(super) fn check(&self) -> Result<(), Violation> {
        if self.coverage > 0.0 && self.coverage < 1.0 {
            return Ok(());
        }
        Err(Violation::new("coverage", "must be above 0 and below 1", self.coverage).within("scores"))
    }
}
