//! Dates: age, and position in the year, the week and the day.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::number::Numbers;
use super::rules::Scaling;
use crate::table::MISSING_DATE;

const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;
/// Parts of a date in addition to its age; the parts of the day are last.
const PARTS: [&str; 6] = ["year, sin", "year, cos", "week, sin", "week, cos", "day, sin", "day, cos"];

/// Preparation of a column of dates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dates {
    /// Reference date for ages, in microseconds since 1970.
    origin: i64,
    age: Numbers,
    /// True if the time of day has columns, because some date has a time.
    times: bool,
}

impl Dates {
    /// Fits the preparation to these dates. There must be at least one date, and none may be missing. Ages
    /// count back from the latest date.
    pub(super) fn fit(dates: &[i64], scaling: Scaling) -> Self {
        let origin = dates.iter().copied().max().unwrap_or(0);
        let times = dates.iter().any(|date| date.rem_euclid(DAY as i64) != 0);
        let ages = dates.iter().map(|&date| age(origin, date)).collect();
        Self { origin, age: Numbers::fit(ages, scaling), times }
    }

    /// Creates the preparation from a declared range.
    pub(super) fn within([low, high]: [i64; 2]) -> Self {
        Self { origin: high, age: Numbers::within([0.0, age(high, low)]), times: true }
    }

    /// Returns the first and the last fitted date, or the declared range, in microseconds since 1970.
    pub(super) fn ends(&self) -> [i64; 2] {
        let [least, greatest] = self.age.range().ends();
        [greatest, least].map(|age| self.origin.saturating_sub((age * DAY).round() as i64))
    }

    /// Returns true if all fitted dates are equal.
    pub(super) fn is_constant(&self) -> bool {
        self.age.range().is_constant()
    }

    /// Returns true if the age of the date is within the range and its margin, so that it is not clamped.
    pub(super) fn has(&self, date: i64) -> bool {
        self.age.range().has(age(self.origin, date))
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once("age").chain(PARTS.into_iter().take(self.width() - 1))
    }

    pub(super) fn width(&self) -> usize {
        if self.times { 7 } else { 5 }
    }

    /// Writes a date and returns true if it is missing. A missing date gets the mean age, and zeros for its
    /// position in the year.
    pub(super) fn write(&self, date: i64, out: &mut [f32]) -> bool {
        if date == MISSING_DATE {
            out[0] = self.age.scaled(f64::NAN) as f32;
            return true;
        }
        out[0] = self.age.scaled(age(self.origin, date)) as f32;
        let since = date as f64;
        // 1970 began on a Thursday; a year has 365.2425 days.
        for (pair, length) in out[1..self.width()].chunks_exact_mut(2).zip([365.2425 * DAY, 7.0 * DAY, DAY]) {
            let (sin, cos) = (TAU * (since / length).rem_euclid(1.0)).sin_cos();
            (pair[0], pair[1]) = (sin as f32, cos as f32);
        }
        false
    }
}

/// Returns the number of days from `date` to `origin`.
fn age(origin: i64, date: i64) -> f64 {
    origin.saturating_sub(date) as f64 / DAY
}
