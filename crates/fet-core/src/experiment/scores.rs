//! The settings of scores: the metric that selects the epoch, scores by group, and the coverage of intervals.

use fet_eval::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Scores of a run. The run computes every metric of the task; these settings choose the one that counts.
/// They concern only the primary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScoreSettings {
    /// Metric that selects the epoch, drives the schedule of the learning rate and appears in tables. By
    /// default it is "rmse" for a regression and "accuracy" for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// Column of the primary's table by whose values test rows are also scored; it may be a dropped column.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub groups: String,
    /// Target coverage: the probability that the interval of a prediction, or its set of classes, contains
    /// the true label.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub coverage: f64,
}

impl Default for ScoreSettings {
    fn default() -> Self {
        Self { metric: None, groups: String::new(), coverage: 0.9 }
    }
}
