//! Metrics by name, with direction, unit and task.
//!
//! The modules behind [`Predictions::score`] compute the metrics. The module `show` formats values for
//! people.
//!
//! [`Predictions::score`]: crate::Predictions::score

mod show;

use std::fmt;

use fet_io::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Prediction task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Prediction of a number.
    Regression,
    /// Class 0 or 1; the output is the probability of class 1.
    Binary,
    /// One of several classes; the output is one probability per class.
    Multiclass {
        /// Number of classes, including classes without rows.
        classes: usize,
    },
}

impl Task {
    /// Returns the number of outputs per row.
    pub fn width(self) -> usize {
        match self {
            Self::Regression | Self::Binary => 1,
            Self::Multiclass { classes } => classes,
        }
    }

    /// Returns the number of classes; 0 for a regression.
    pub fn classes(self) -> usize {
        match self {
            Self::Regression => 0,
            Self::Binary => 2,
            Self::Multiclass { classes } => classes,
        }
    }
}

/// Direction of improvement of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Smaller is better.
    Minimise,
    /// Larger is better.
    Maximise,
}

impl Direction {
    /// Returns the improvement of `value` over `other`; positive if `value` is better.
    pub fn gain(self, value: f64, other: f64) -> f64 {
        match self {
            Self::Minimise => other - value,
            Self::Maximise => value - other,
        }
    }

    /// Returns true if `new` is better than `old`. Returns false if either is NaN.
    pub fn improves(self, new: f64, old: f64) -> bool {
        match self {
            Self::Minimise => new < old,
            Self::Maximise => new > old,
        }
    }
}

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Unit of the label.
    Label,
    /// Share of one: 0.1 is 10 per cent.
    Share,
    /// Nats, the natural unit of information.
    Nats,
    /// Number without a unit.
    One,
}

/// Metric. Each variant states its formula with true value `y` and prediction `p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// √(mean of (p − y)²).
    Rmse,
    /// Mean of |p − y|.
    Mae,
    /// 1 − Σ(p − y)² / Σ(y − ȳ)². For a constant truth, 1 if every prediction is exact and 0 otherwise, as in
    /// scikit-learn.
    R2,
    /// Mean of |p − y| / |y|, a share (0.1 is 10 per cent). Undefined if some |y| is 0 or less than
    /// [`MAPE_EPSILON`] times the mean of |y|, because this row would dominate the mean.
    Mape,
    /// Median of |p − y|; for an even number of rows, the mean of the two middle values.
    MedianAbsoluteError,
    /// Share of correctly classified rows. The predicted class of a binary task is 1 from p ≥ 0.5. For
    /// several classes it is the first most probable class.
    Accuracy,
    /// Mean recall over the classes that occur.
    BalancedAccuracy,
    /// Mean of 2·TP / (2·TP + FP + FN) over the classes that occur or are predicted.
    MacroF1,
    /// Area under the ROC curve: the probability that a row of the class scores higher than another row. Ties
    /// count half. For several classes, the mean of one-against-rest areas.
    AucRoc,
    /// Average precision: Σ (recallₖ − recallₖ₋₁) · precisionₖ over the distinct scores, without
    /// interpolation. For several classes, the mean of one-against-rest areas.
    AucPr,
    /// Mean of −ln(p of the true class), p clipped to [ε, 1 − ε], ε = 2⁻⁵² (as in scikit-learn since 1.5, for
    /// doubles).
    LogLoss,
    /// Binary: mean of (p − y)², from 0 to 1. Several classes: mean of Σ over classes of (p − y)², from 0 to
    /// 2 (as in scikit-learn since 1.7, `scale_by_half="auto"`).
    Brier,
    /// Expected calibration error in 15 equal bins (see [`calibration`](crate::calibration)).
    CalibrationError,
}

/// Minimum |y| for [`Metric::Mape`], as a share of the mean |y|.
pub const MAPE_EPSILON: f64 = 1e-6;

use Direction::{Maximise, Minimise};

impl Metric {
    /// Every metric, in the order of [`Scores`](crate::Scores).
    pub const ALL: [Self; 13] = [
        Self::Rmse,
        Self::Mae,
        Self::R2,
        Self::Mape,
        Self::MedianAbsoluteError,
        Self::Accuracy,
        Self::BalancedAccuracy,
        Self::MacroF1,
        Self::AucRoc,
        Self::AucPr,
        Self::LogLoss,
        Self::Brier,
        Self::CalibrationError,
    ];

    /// Name in settings and reports, direction and unit.
    fn facts(self) -> (&'static str, Direction, Unit) {
        match self {
            Self::Rmse => ("rmse", Minimise, Unit::Label),
            Self::Mae => ("mae", Minimise, Unit::Label),
            Self::R2 => ("r2", Maximise, Unit::One),
            Self::Mape => ("mape", Minimise, Unit::Share),
            Self::MedianAbsoluteError => ("median-absolute-error", Minimise, Unit::Label),
            Self::Accuracy => ("accuracy", Maximise, Unit::Share),
            Self::BalancedAccuracy => ("balanced-accuracy", Maximise, Unit::Share),
            Self::MacroF1 => ("macro-f1", Maximise, Unit::One),
            Self::AucRoc => ("auc-roc", Maximise, Unit::One),
            Self::AucPr => ("auc-pr", Maximise, Unit::One),
            Self::LogLoss => ("log-loss", Minimise, Unit::Nats),
            Self::Brier => ("brier", Minimise, Unit::One),
            Self::CalibrationError => ("calibration-error", Minimise, Unit::Share),
        }
    }

    /// Returns the metric's name in settings and reports.
    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Returns the metric's direction of improvement.
    pub fn direction(self) -> Direction {
        self.facts().1
    }

    /// Returns the metric's unit.
    pub fn unit(self) -> Unit {
        self.facts().2
    }

    /// Returns true if the metric is defined for `task`.
    pub fn fits(self, task: Task) -> bool {
        (self <= Self::MedianAbsoluteError) == (task == Task::Regression)
    }

    /// Returns the metrics of `task`.
    pub fn for_task(task: Task) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |metric| metric.fits(task))
    }

    /// Returns the metric with this name. The error for an unknown name suggests the most similar name.
    pub fn parse(name: &str) -> Result<Self, UnknownMetric> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name);
            UnknownMetric {
                name: name.into(),
                hint: did_you_mean(&name.to_lowercase().replace('_', "-"), known),
                known: known.join(", "),
            }
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Unknown metric name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric \"{name}\"{hint} (known: {known})")]
pub struct UnknownMetric {
    name: String,
    hint: String,
    known: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_a_round_trip_and_match_serde() {
        for metric in Metric::ALL {
            assert_eq!(Metric::parse(metric.name()), Ok(metric));
            let json = serde_json::to_string(&metric).expect("a name");
            assert_eq!(json, format!("\"{metric}\""));
        }
        assert!(Metric::ALL.is_sorted(), "the order of the list is the order of the scores");
    }

    #[test]
    fn suggests_the_nearest_name() {
        for (given, nearest) in
            [("acuracy", "accuracy"), ("auc_roc", "auc-roc"), ("RMSE", "rmse"), ("logloss", "log-loss")]
        {
            let error = Metric::parse(given).expect_err("unknown").to_string();
            assert!(error.contains(&format!("did you mean \"{nearest}\"?")), "{error}");
        }
        let error = Metric::parse("zzz").expect_err("unknown").to_string();
        assert!(!error.contains("did you mean") && error.contains("calibration-error"), "{error}");
    }

    #[test]
    fn each_task_has_its_own_metrics() {
        assert_eq!(Metric::for_task(Task::Regression).count(), 5);
        assert_eq!(Metric::for_task(Task::Binary).count(), 8);
        assert_eq!(Metric::for_task(Task::Multiclass { classes: 3 }).count(), 8);
        assert_eq!(Metric::Accuracy.direction().gain(0.9, 0.8).signum(), 1.0);
        assert_eq!(Metric::Rmse.direction().gain(0.9, 0.8).signum(), -1.0);
        for (metric, new, old, expect) in [
            (Metric::Accuracy, 0.9, 0.8, true),
            (Metric::Accuracy, 0.8, 0.8, false),
            (Metric::Rmse, 0.9, 0.8, false),
            (Metric::Rmse, 0.8, 0.8, false),
            (Metric::Rmse, 0.7, 0.8, true),
            (Metric::Rmse, f64::NAN, 0.8, false),
            (Metric::Rmse, 0.8, f64::NAN, false),
        ] {
            assert_eq!(metric.direction().improves(new, old), expect, "{metric}: {new} after {old}");
        }
    }
}
