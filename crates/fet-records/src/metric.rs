//! Formatting of a metric's values for people: accuracy in per cent, RMSE unchanged.
//!
//! Numbers for programs are never changed here.

use super::{Metric, MetricName};

impl Metric {
    /// The metric with its unit, as a column header or the title of an axis.
    pub fn title(&self) -> String {
        match self.name {
            MetricName::Accuracy => "accuracy, %".to_string(),
            MetricName::Rmse => "RMSE".to_string(),
        }
    }

    /// A value, or a spread of values, with the metric's digits.
    pub fn show(&self, value: f64) -> String {
        match self.name {
            MetricName::Accuracy => format!("{:.2}", self.scaled(value)),
            MetricName::Rmse => format!("{value:.3}"),
        }
    }

    /// A value with its metric, as in a sentence.
    pub fn phrase(&self, value: f64) -> String {
        match self.name {
            MetricName::Accuracy => format!("accuracy {} %", self.show(value)),
            MetricName::Rmse => format!("RMSE {}", self.show(value)),
        }
    }

    /// A value in the unit that it is shown in.
    pub fn scaled(&self, value: f64) -> f64 {
        match self.name {
            MetricName::Accuracy => 100.0 * value,
            MetricName::Rmse => value,
        }
    }

    /// The size of a difference, as in a sentence.
    pub fn amount(&self, difference: f64) -> String {
        let unit = match self.name {
            MetricName::Accuracy => "points",
            MetricName::Rmse => "RMSE",
        };
        format!("{} {unit}", self.show(difference))
    }
}
