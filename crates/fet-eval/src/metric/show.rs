//! Formatting of metric values for people: shares in per cent, other metrics in their unit.
//!
//! Machine-readable output does not use this module.

use super::{Metric, Unit};

impl Metric {
    /// Returns the metric's name for use in a sentence.
    pub fn label(self) -> &'static str {
        match self {
            Self::Rmse => "RMSE",
            Self::Mae => "MAE",
            Self::R2 => "R²",
            Self::Mape => "MAPE",
            Self::MedianAbsoluteError => "median absolute error",
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced accuracy",
            Self::MacroF1 => "macro F1",
            Self::AucRoc => "AUC ROC",
            Self::AucPr => "AUC PR",
            Self::LogLoss => "log loss",
            Self::Brier => "Brier score",
            Self::CalibrationError => "calibration error",
        }
    }

    /// Returns the metric's name with its unit, for a column header or the title of an axis.
    pub fn title(self) -> String {
        match self.unit() {
            Unit::Share => format!("{}, %", self.label()),
            Unit::Label | Unit::Nats | Unit::One => self.label().to_string(),
        }
    }

    /// Formats a value or a spread with the metric's digits: enough to distinguish 10,000 rows, and three for
    /// the label's unit.
    pub fn show(self, value: f64) -> String {
        let digits = match self.unit() {
            Unit::Share => 2,
            Unit::Label => 3,
            Unit::Nats | Unit::One => 4,
        };
        format!("{:.digits$}", self.scaled(value))
    }

    /// Formats a value with its metric, for use in a sentence.
    pub fn phrase(self, value: f64) -> String {
        let per_cent = if self.unit() == Unit::Share { " %" } else { "" };
        format!("{} {}{per_cent}", self.label(), self.show(value))
    }

    /// Converts a value to the unit for display.
    pub fn scaled(self, value: f64) -> f64 {
        if self.unit() == Unit::Share { 100.0 * value } else { value }
    }

    /// Formats the size of a difference for use in a sentence.
    pub fn amount(self, difference: f64) -> String {
        let unit = if self.unit() == Unit::Share { "points" } else { self.label() };
        format!("{} {unit}", self.show(difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_in_their_unit() {
        for (metric, title, shown, phrase, amount) in [
            (Metric::Rmse, "RMSE", "0.123", "RMSE 0.123", "0.123 RMSE"),
            (
                Metric::MedianAbsoluteError,
                "median absolute error",
                "0.123",
                "median absolute error 0.123",
                "0.123 median absolute error",
            ),
            (Metric::R2, "R²", "0.1235", "R² 0.1235", "0.1235 R²"),
            (Metric::Mape, "MAPE, %", "12.35", "MAPE 12.35 %", "12.35 points"),
            (Metric::Accuracy, "accuracy, %", "12.35", "accuracy 12.35 %", "12.35 points"),
            (Metric::AucRoc, "AUC ROC", "0.1235", "AUC ROC 0.1235", "0.1235 AUC ROC"),
            (Metric::LogLoss, "log loss", "0.1235", "log loss 0.1235", "0.1235 log loss"),
        ] {
            let value = 0.123_46;
            let found = (metric.title(), metric.show(value), metric.phrase(value), metric.amount(value));
            assert_eq!(found, (title.into(), shown.into(), phrase.into(), amount.into()), "{metric}");
        }
        assert!(Metric::ALL.iter().all(|metric| !metric.label().contains('-')), "labels are for people");
    }
}
