//! The range of the values that a preparation was fitted on, and the bound on the effect of values outside it.

use serde::{Deserialize, Serialize};

/// The least and the greatest fitted value, and the margin around them.
///
/// Values within the margin are taken as they are; values beyond it become the nearer end of the margin. The margin of a
/// fitted range is one standard deviation of the fitted values, so that each of them is left as it is; the margin of a
/// declared range is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedRange {
    low: f64,
    high: f64,
    margin: f64,
}

impl FittedRange {
    /// Returns the range of these values, which must not be NaN; 0 to 0 without any.
    pub fn fit(values: impl IntoIterator<Item = f64>) -> Self {
        let mut fitting = Fitting::default();
        values.into_iter().for_each(|value| fitting.add(value));
        fitting.range()
    }

    /// A declared range: nothing about it follows from values.
    pub fn declared([low, high]: [f64; 2]) -> Self {
        Self { low, high, margin: 0.0 }
    }

    /// Least and greatest.
    pub fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Returns true if all fitted values are the same: a model learns nothing from them.
    pub fn is_constant(&self) -> bool {
        self.low == self.high
    }

    /// Returns true for a declared range: only a range of different fitted values has a margin.
    pub fn is_declared(&self) -> bool {
        self.low < self.high && self.margin == 0.0
    }

    /// Returns true if the value is taken as it is.
    pub fn has(&self, value: f64) -> bool {
        (self.low - self.margin..=self.high + self.margin).contains(&value)
    }

    /// The nearest value that is taken as it is.
    pub fn clamp(&self, value: f64) -> f64 {
        value.max(self.low - self.margin).min(self.high + self.margin)
    }
}

/// Moments of values, which give their range.
#[derive(Debug, Clone, Default)]
pub(super) struct Fitting {
    count: f64,
    /// Values count from the first on, so that large numbers that differ little keep their digits.
    first: f64,
    low: f64,
    high: f64,
    sum: f64,
    squares: f64,
}

impl Fitting {
    pub(super) fn add(&mut self, value: f64) {
        if self.count == 0.0 {
            (self.first, self.low, self.high) = (value, value, value);
        }
        (self.low, self.high) = (self.low.min(value), self.high.max(value));
        let shifted = value - self.first;
        self.count += 1.0;
        self.sum += shifted;
        self.squares += shifted * shifted;
    }

    pub(super) fn range(&self) -> FittedRange {
        let count = self.count.max(1.0);
        let variance = (self.squares / count - (self.sum / count).powi(2)).max(0.0);
        FittedRange { low: self.low, high: self.high, margin: variance.sqrt() }
    }
}
