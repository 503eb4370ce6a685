//! Dates: how long ago, and where in the year, the week and the day.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::Scaling;
use super::number::Numbers;
use crate::table::MISSING_DATE;

const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;
/// The parts of a date beside its age; those of the day last.
const PARTS: [&str; 6] = ["year, sin", "year, cos", "week, sin", "week, cos", "day, sin", "day, cos"];

/// A column of dates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dates {
    /// Microseconds since 1970 from which ages count back.
    origin: i64,
    age: Numbers,
    /// Whether the time of day is of interest: some date has one.
    times: bool,
}

impl Dates {
    /// By the statistics of these dates, of which there is at least one; none is missing. Ages count back from the latest.
    pub(super) fn fit(dates: &[i64], scaling: Scaling) -> Self {
        let origin = dates.iter().copied().max().unwrap_or(0);
        let times = dates.iter().any(|date| date.rem_euclid(DAY as i64) != 0);
        let ages = dates.iter().map(|&date| age(origin, date)).collect();
        Self { origin, age: Numbers::fit(ages, scaling), times }
    }

    /// By a declared range.
    pub(super) fn within([low, high]: [i64; 2]) -> Self {
        Self { origin: high, age: Numbers::within([0.0, age(high, low)]), times: true }
    }

    /// The first and the last fitted date, or the declared range: microseconds since 1970.
    pub(super) fn ends(&self) -> [i64; 2] {
        let [least, greatest] = self.age.range().ends();
        [greatest, least].map(|age| self.origin.saturating_sub((age * DAY).round() as i64))
    }

    /// Whether all fitted dates are the same.
    pub(super) fn is_constant(&self) -> bool {
        self.age.range().is_constant()
    }

    /// Whether the age of a date is taken as it is.
    pub(super) fn has(&self, date: i64) -> bool {
        self.age.range().has(age(self.origin, date))
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once("age").chain(PARTS.into_iter().take(self.width() - 1))
    }

    pub(super) fn width(&self) -> usize {
        if self.times { 7 } else { 5 }
    }

    /// Writes a date; returns whether it is missing: then its age is the mean one, and it is nowhere in the year.
    pub(super) fn write(&self, date: i64, out: &mut [f32]) -> bool {
        if date == MISSING_DATE {
            out[0] = self.age.scaled(f64::NAN) as f32;
            return true;
        }
        out[0] = self.age.scaled(age(self.origin, date)) as f32;
        let since = date as f64;
        // 1970 began with a Thursday; a year has 365.2425 days.
        for (pair, length) in out[1..self.width()].chunks_exact_mut(2).zip([365.2425 * DAY, 7.0 * DAY, DAY]) {
            let (sin, cos) = (TAU * (since / length).rem_euclid(1.0)).sin_cos();
            (pair[0], pair[1]) = (sin as f32, cos as f32);
        }
        false
    }
}

/// Days from `date` to `origin`.
fn age(origin: i64, date: i64) -> f64 {
    origin.saturating_sub(date) as f64 / DAY
}
