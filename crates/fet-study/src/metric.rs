//! Formatting of a metric's values for people: accuracy in per cent, RMSE unchanged.
//!
//! Numbers for programs are never changed here.

use fet_records::{Metric, MetricName};

/// A metric and its values in words and digits.
pub(crate) trait MetricText {
    /// The metric as a column header.
    fn title(&self) -> String;

    /// A value, or a spread of values, with the metric's digits.
    fn show(&self, value: f64) -> String;

    /// A value with its metric, as in a sentence.
    fn phrase(&self, value: f64) -> String;

    /// A value in the unit that it is shown in.
    fn scaled(&self, value: f64) -> f64;

    /// The size of a difference, as in a sentence.
    fn amount(&self, difference: f64) -> String;
}

impl MetricText for Metric {
    fn title(&self) -> String {
        match self.name {
            MetricName::Accuracy => "accuracy, %".to_string(),
            MetricName::Rmse => "RMSE".to_string(),
        }
    }

    fn show(&self, value: f64) -> String {
        match self.name {
            MetricName::Accuracy => format!("{:.2}", self.scaled(value)),
            MetricName::Rmse => format!("{value:.3}"),
        }
    }

    fn phrase(&self, value: f64) -> String {
        match self.name {
            MetricName::Accuracy => format!("accuracy {} %", self.show(value)),
            MetricName::Rmse => format!("RMSE {}", self.show(value)),
        }
    }

    fn scaled(&self, value: f64) -> f64 {
        match self.name {
            MetricName::Accuracy => 100.0 * value,
            MetricName::Rmse => value,
        }
    }

    fn amount(&self, difference: f64) -> String {
        let unit = match self.name {
            MetricName::Accuracy => "points",
            MetricName::Rmse => "RMSE",
        };
        format!("{} {unit}", self.show(difference))
    }
}
