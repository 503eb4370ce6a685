//! All metrics of some predictions.
//!
//! An undefined metric carries its reason. No value is ever NaN.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Task};
use crate::predictions::Predictions;
use crate::undefined::Undefined;
use crate::{calibration, classification, probability, ranking, regression};

impl Predictions<'_> {
    /// Computes one metric of these rows, or returns the reason why it is undefined.
    pub fn score(&self, metric: Metric) -> Result<f64, Undefined> {
        if !metric.fits(self.task()) {
            return Err(Undefined::Task { metric, task: self.task() });
        }
        let value = match metric {
            Metric::Rmse => Ok(regression::rmse(self)),
            Metric::Mae => Ok(regression::mae(self)),
            Metric::R2 => regression::r2(self),
            Metric::Mape => regression::mape(self),
            Metric::MedianAbsoluteError => Ok(regression::median_absolute_error(self)),
            Metric::Accuracy => Ok(classification::accuracy(self)),
            Metric::BalancedAccuracy => Ok(classification::balanced_accuracy(self)),
            Metric::MacroF1 => Ok(classification::macro_f1(self)),
            Metric::AucRoc => ranking::auc_roc(self),
            Metric::AucPr => ranking::auc_pr(self),
            Metric::LogLoss => Ok(probability::log_loss(self)),
            Metric::Brier => Ok(probability::brier(self)),
            Metric::CalibrationError => calibration::expected_error(self, calibration::Bins::default()),
        }?;
        if value.is_finite() { Ok(value) } else { Err(Undefined::Overflow { metric }) }
    }

    /// Computes every metric of the task.
    pub fn scores(&self) -> Scores {
        let value = |metric| match self.score(metric) {
            Ok(value) => ScoreValue::Value(value),
            Err(reason) => ScoreValue::Undefined(reason.to_string()),
        };
        Scores(Metric::for_task(self.task()).map(|metric| (metric, value(metric))).collect())
    }
}

/// Metrics of some predictions by name, in the order of [`Metric::ALL`].
///
/// As JSON: `{"accuracy": {"value": 0.9}, "auc-roc": {"undefined": "class 1 has no row"}}`. Deserialization
/// requires either every regression metric or every classification metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<Metric, ScoreValue>", into = "BTreeMap<Metric, ScoreValue>")]
pub struct Scores(BTreeMap<Metric, ScoreValue>);

/// Value of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreValue {
    /// Finite value.
    Value(f64),
    /// Reason why the metric is undefined.
    Undefined(String),
}

impl Scores {
    /// Returns scores with every metric of the task undefined, for the same reason.
    pub fn undefined(task: Task, reason: &str) -> Self {
        Self(
            Metric::for_task(task)
                .map(|metric| (metric, ScoreValue::Undefined(reason.to_string())))
                .collect(),
        )
    }

    /// Returns the value of a metric. `None` if the metric is undefined or belongs to another task.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match self.0.get(&metric)? {
            ScoreValue::Value(value) => Some(*value),
            ScoreValue::Undefined(_) => None,
        }
    }

    /// Returns the reason why a metric is undefined. `None` if the metric has a value or belongs to another
    /// task.
    pub fn reason(&self, metric: Metric) -> Option<&str> {
        match self.0.get(&metric)? {
            ScoreValue::Value(_) => None,
            ScoreValue::Undefined(reason) => Some(reason),
        }
    }

    /// Returns every metric of the task with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, &ScoreValue)> {
        self.0.iter().map(|(metric, value)| (*metric, value))
    }
}

impl TryFrom<BTreeMap<Metric, ScoreValue>> for Scores {
    type Error = ScoresError;

    fn try_from(scores: BTreeMap<Metric, ScoreValue>) -> Result<Self, ScoresError> {
        let first = *scores.keys().next().ok_or(ScoresError::Empty)?;
        let numbers = first.fits(Task::Regression);
        for metric in Metric::ALL {
            let is_of_task = metric.fits(Task::Regression) == numbers;
            match (is_of_task, scores.get(&metric)) {
                (true, None) => return Err(ScoresError::Missing(metric)),
                (false, Some(_)) => return Err(ScoresError::Mixed(first, metric)),
                (true, Some(ScoreValue::Value(value))) if !value.is_finite() => {
                    return Err(ScoresError::NotFinite(metric));
                }
                _ => {}
            }
        }
        Ok(Self(scores))
    }
}

impl From<Scores> for BTreeMap<Metric, ScoreValue> {
    fn from(scores: Scores) -> Self {
        scores.0
    }
}

/// Error of incomplete or mixed scores.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScoresError {
    /// No metrics.
    #[error("scores are missing")]
    Empty,
    /// Missing metric of the task.
    #[error("the scores lack {0}")]
    Missing(Metric),
    /// Metrics of two tasks.
    #[error("{0} and {1} are metrics of different tasks")]
    Mixed(Metric, Metric),
    /// Value that is not finite.
    #[error("{0} is not finite")]
    NotFinite(Metric),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_ordered_and_survive_json() {
        let rows = Predictions::new(Task::Binary, &[0.0, 0.0], &[0.25, 0.5]).expect("right");
        let scores = rows.scores();
        let json = serde_json::to_string(&scores).expect("json");
        assert!(json.starts_with(r#"{"accuracy":{"value":0.5},"balanced-accuracy""#), "{json}");
        assert!(json.contains(r#""auc-roc":{"undefined":"class 1 has no row;"#), "{json}");
        assert_eq!(serde_json::from_str::<Scores>(&json).expect("read back"), scores);
        assert_eq!(scores.get(Metric::Accuracy), Some(0.5));
        assert_eq!(scores.get(Metric::AucRoc), None);
        assert_eq!(scores.get(Metric::Rmse), None);
        assert!(scores.iter().map(|(metric, _)| metric).eq(Metric::for_task(Task::Binary)));
        assert_eq!((scores.reason(Metric::Accuracy), scores.reason(Metric::Rmse)), (None, None));
        assert!(scores.reason(Metric::AucRoc).is_some_and(|reason| reason.starts_with("class 1 has no row")));
        let none = Scores::undefined(Task::Binary, "the model diverged");
        assert!(none.iter().all(|(metric, _)| none.reason(metric) == Some("the model diverged")));
        let number = Predictions::new(Task::Regression, &[1.0], &[1.0]).expect("right").scores();
        let number = serde_json::to_string(&number).expect("json");
        let with_number = format!("{},", number.trim_end_matches('}').to_string() + "}");
        for (from, to, expect) in [
            (json.as_str(), "{}", "scores are missing"),
            (r#""accuracy":{"value":0.5},"#, "", "the scores lack accuracy"),
            (r#""brier""#, r#""mae""#, "the scores lack rmse"),
            ("{", &with_number, "rmse and accuracy are metrics of different tasks"),
            (r#""brier""#, r#""new""#, "unknown variant `new`"),
            (r#"{"value":0.5}"#, r#"{"value":0.5,"new":1}"#, "expected"),
        ] {
            let text = json.replacen(from, to, 1);
            let error = serde_json::from_str::<Scores>(&text).expect_err(&text).to_string();
            assert!(error.contains(expect), "{error} of {text}");
        }
    }

    #[test]
    fn undefined_scores_have_a_reason() {
        let number = Task::Regression;
        for (task, truth, output, metric, expect) in [
            (
                number,
                vec![1.0],
                vec![1.0],
                Metric::Accuracy,
                "accuracy is not a metric of the task Regression",
            ),
            (number, vec![1.0], vec![1.0], Metric::R2, "at least 2 rows, not 1"),
            (number, vec![1.0, 0.0], vec![1.0, 1.0], Metric::Mape, "row 1 (from 0) is 0"),
            (number, vec![1e9, -1.0], vec![1.0, 1.0], Metric::Mape, "row 1 (from 0) is -1, below 500"),
            (number, vec![1e200], vec![-1e200], Metric::Rmse, "exceeds the range"),
            (Task::Binary, vec![1.0, 1.0], vec![0.1, 0.2], Metric::AucRoc, "class 1 has every row"),
            (Task::Binary, vec![0.0], vec![0.1], Metric::AucPr, "class 1 has no row"),
        ] {
            let rows = Predictions::new(task, &truth, &output).expect("right");
            let error = rows.score(metric).expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}
