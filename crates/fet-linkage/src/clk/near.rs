//! Numbers and dates as sets of tokens, so that near numbers have tokens in common (Vatsalan, Christen 2016;
//! Karapiperis, Gkoulalas-Divanis, Verykios 2018).
//!
//! The tokens of a number are the points of a grid around it. Two numbers that are k grid steps apart have
//! all but k points in common. The number of common points therefore falls linearly with distance and reaches
//! 0 at [`Near::reach`].

use chrono::{Datelike, NaiveDate};

use crate::text::{is_number, normalise};

/// Comparison of numbers or dates of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// Distance from which two values have nothing in common, above 0; in days for dates.
    pub reach: f64,
    /// True if the values are dates.
    pub dates: bool,
}

/// Number of grid points of a number.
const POINTS: i64 = 11;
/// Number of tokens of a number: its points, and the number itself.
pub(super) const TOKENS: usize = POINTS as usize + 1;

impl Near {
    /// Returns the number or day in a cell and its place on the grid, or `None` if the cell is compared as
    /// text.
    pub fn read(self, cell: &str) -> Option<(f64, i64)> {
        self.place(&normalise(cell))
    }

    fn place(self, normal: &str) -> Option<(f64, i64)> {
        let value =
            if self.dates { f64::from(date(normal)?.num_days_from_ce()) } else { normal.parse().ok()? };
        let steps = (value * POINTS as f64 / self.reach).round();
        // Below this limit a float represents every whole step.
        (steps.abs() < (1u64 << 52) as f64).then_some((value, steps as i64))
    }

    /// Returns a date in one spelling, or `None` if the text is not a date.
    pub(super) fn year_month_day(self, normal: &str) -> Option<String> {
        let date = date(normal).filter(|_| self.dates)?;
        Some(date.format("%Y%m%d").to_string())
    }

    /// Calls `take` with the points of a normal form and with a token that only an equal number has. Returns
    /// `false` without a call if the text is not a number or date, or if it is too far from 0 for the grid.
    pub(super) fn points(self, normal: &str, mut take: impl FnMut(String)) -> bool {
        let Some((value, middle)) = self.place(normal) else { return false };
        (middle - POINTS / 2..=middle + POINTS / 2).for_each(|point| take(point.to_string()));
        take(format!("={value}"));
        true
    }
}

/// Returns the day in a normal form of eight digits, or of more digits if a time follows, with the year
/// first. The caller must resolve other orders, since one cell does not reveal its order.
fn date(normal: &str) -> Option<NaiveDate> {
    if !matches!(normal.len(), 8 | 12 | 14) || !is_number(normal) {
        return None;
    }
    let part = |range: std::ops::Range<usize>| normal[range].parse::<u32>().ok();
    let day = |year: u32, month: u32, day: u32| {
        let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
        (1000..3000).contains(&year).then_some(date)
    };
    day(part(0..4)?, part(4..6)?, part(6..8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(near: Near, cell: &str) -> Vec<String> {
        let mut all = Vec::new();
        let known = near.points(&normalise(cell), |point| all.push(point));
        assert_eq!(known, !all.is_empty());
        all
    }

    fn common(near: Near, a: &str, b: &str) -> usize {
        let others = points(near, b);
        points(near, a).iter().filter(|point| others.contains(point)).count()
    }

    #[test]
    fn similarity_of_numbers_falls_linearly() {
        let price = Near { reach: 1.1, dates: false };
        for (other, expected) in [
            ("12.99", 12),
            ("13.09", 10),
            ("13.49", 6),
            ("13.99", 1),
            ("14.09", 0),
            ("-12.99", 0),
            ("1299", 0),
        ] {
            assert_eq!(common(price, "12.99", other), expected, "{other}");
        }
        assert_eq!(common(price, "$ 12,99", "12.990"), 12, "one number in two spellings");
        assert_eq!(common(price, "-5", "5"), 0);
    }

    #[test]
    fn dates_are_counted_in_days() {
        let born = Near { reach: 11.0, dates: true };
        for (other, expected) in [
            ("1990-02-03", 12),
            ("1990/2/3", 12),
            ("03.02.1990", 0),
            ("1990-02-03 00:00:00", 12),
            ("1990-02-05", 9),
            ("1990-01-31", 8),
            ("1990-02-14", 0),
            ("1991-02-03", 0),
        ] {
            assert_eq!(common(born, "19900203", other), expected, "{other}");
        }
        assert_eq!(common(born, "2000-02-29", "2000-3-1"), 10, "over a leap day");
    }

    #[test]
    fn texts_other_than_numbers_have_no_points() {
        for cell in ["", "about 5", "1e400", "12/3", "inf"] {
            assert!(points(Near { reach: 1.0, dates: false }, cell).is_empty(), "{cell}");
        }
        for cell in ["1990", "1990-13-40", "25.12.1990", "0999-01-01", "3000-01-01", "seven", "123456789"] {
            assert!(points(Near { reach: 1.0, dates: true }, cell).is_empty(), "{cell}");
        }
        assert!(points(Near { reach: 1e-300, dates: false }, "5").is_empty(), "no grid is so fine");
    }
}
