//! Formatting of a metric's values for people: shares in per cent, everything else in its own unit.
//!
//! Numbers for programs are never changed here.

use super::{Metric, Unit};

impl Metric {
    /// Its name in a sentence.
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

    /// The metric with its unit, as a column header or the title of an axis.
    pub fn title(self) -> String {
        match self.unit() {
            Unit::Share => format!("{}, %", self.label()),
            Unit::Label | Unit::Nats | Unit::One => self.label().to_string(),
        }
    }

    /// A value, or a spread of values, with the metric's digits: as many as tell 10,000 rows apart, three in the label's
    /// own unit.
    pub fn show(self, value: f64) -> String {
        let digits = match self.unit() {
            Unit::Share => 2,
            Unit::Label => 3,
            Unit::Nats | Unit::One => 4,
        };
        format!("{:.digits$}", self.scaled(value))
    }

    /// A value with its metric, as in a sentence.
    pub fn phrase(self, value: f64) -> String {
        let per_cent = if self.unit() == Unit::Share { " %" } else { "" };
        format!("{} {}{per_cent}", self.label(), self.show(value))
    }

    /// A value in the unit that it is shown in.
    pub fn scaled(self, value: f64) -> f64 {
        if self.unit() == Unit::Share { 100.0 * value } else { value }
    }

    /// The size of a difference, as in a sentence.
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
