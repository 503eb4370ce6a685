//! The settings of scores: which metric selects the epoch, what is scored by group, and how often intervals hold the truth.

use fet_eval::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run is scored. Every metric of the task is computed; this says which one counts. It is the primary's affair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub coverage: f64,
}

impl Default for ScoreSettings {
    fn default() -> Self {
        Self { metric: None, groups: String::new(), coverage: 0.9 }
    }
}
