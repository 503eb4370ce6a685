//! Range of the fitted values, which bounds the effect of later values outside it.

use serde::{Deserialize, Serialize};

/// Least and greatest fitted value, with a margin around them.
///
/// Values within the margin are unchanged; values beyond it are clamped to the nearer end of the margin. The
/// margin of a fitted range is one standard deviation of the fitted values, so that no fitted value changes.
/// The margin of a declared range is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FittedRange {
    low: f64,
    high: f64,
    margin: f64,
}

impl FittedRange {
    /// Returns the range of these values, which must not be NaN. Without values the range is 0 to 0.
    pub fn fit(values: impl IntoIterator<Item = f64>) -> Self {
        let mut fitting = Fitting::default();
        values.into_iter().for_each(|value| fitting.add(value));
        fitting.range()
    }

    /// Creates a declared range, which does not depend on values.
    pub fn declared([low, high]: [f64; 2]) -> Self {
        Self { low, high, margin: 0.0 }
    }

    /// Returns the least and the greatest value.
    pub fn ends(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Returns true if all fitted values are equal, so that a model learns nothing from them.
    pub fn is_constant(&self) -> bool {
        self.low == self.high
    }

    /// Returns true for a declared range. A fitted range of different values always has a margin.
    pub fn is_declared(&self) -> bool {
        self.low < self.high && self.margin == 0.0
    }

    /// Returns true if the value is within the margin.
    pub fn has(&self, value: f64) -> bool {
        (self.low - self.margin..=self.high + self.margin).contains(&value)
    }

    /// Clamps a value to the range and its margin.
    pub fn clamp(&self, value: f64) -> f64 {
        value.max(self.low - self.margin).min(self.high + self.margin)
    }
}

/// Accumulated moments of values, for their range.
#[derive(Debug, Clone, Default)]
pub(super) struct Fitting {
    count: f64,
    /// First value, subtracted from all values, so that large numbers with small differences keep their
    /// digits.
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
