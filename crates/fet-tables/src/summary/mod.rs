//! Summary of a table for its holder: kinds, missing cells, ranges and frequent values. The summary quotes
//! cells, so it is printed on the holder's machine and never sent.

mod show;

use std::collections::HashSet;
use std::hash::Hash;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::date;
use crate::error::shortened;
use crate::table::{Column, MISSING_CODE, MISSING_DATE, Table, Values};

/// Largest number of distinct values that are counted.
const MOST_DISTINCT: usize = 10_000;
/// Number of most frequent categories in a summary.
const TOP: usize = 5;

/// Summary of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of rows.
    pub rows: usize,
    /// Columns, in the table's order.
    pub columns: Vec<ColumnSummary>,
    /// Notes of the table.
    pub notes: Vec<String>,
}

/// Summary of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSummary {
    /// Name of the column.
    pub name: String,
    /// "number", "category", "date" or "text".
    pub kind: String,
    /// Number of missing cells.
    pub missing: usize,
    /// Share of missing cells, from 0 to 1; 0 without rows.
    pub missing_share: f64,
    /// Number of distinct values among the present cells, at most 10,000.
    pub distinct: usize,
    /// True if there are more distinct values than were counted.
    pub distinct_more: bool,
    /// First present cell, shortened to 40 characters.
    pub example: Option<String>,
    /// Figures specific to the kind; `None` if no cell is present.
    pub figures: Option<Figures>,
}

/// Figures of the present cells of a column, by kind. For an even number of cells, the median is the mean of
/// the middle two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Figures of numbers, in the column's unit.
    Number {
        /// Smallest number.
        min: f64,
        /// Mean.
        mean: f64,
        /// Median.
        median: f64,
        /// Largest number.
        max: f64,
    },
    /// Figures of dates, in ISO 8601, UTC.
    Date {
        /// Earliest date.
        min: String,
        /// Mean, to the microsecond.
        mean: String,
        /// Median.
        median: String,
        /// Latest date.
        max: String,
    },
    /// Figures of categories.
    Category {
        /// The five most frequent categories with their numbers of rows; equally frequent categories are
        /// ordered by name.
        top: Vec<(String, usize)>,
    },
    /// Figures of texts.
    Text {
        /// Length of the shortest text in characters.
        shortest: usize,
        /// Length of the longest text in characters.
        longest: usize,
    },
}

/// Summarises a table.
pub fn summary(table: &Table) -> Summary {
    let columns = table.columns.par_iter().map(of_column).collect();
    Summary { rows: table.rows, columns, notes: table.notes.clone() }
}

fn of_column(column: &Column) -> ColumnSummary {
    let (rows, missing) = (column.values.len(), column.values.missing());
    let ((distinct, distinct_more), example, figures) = match &column.values {
        Values::Number(values) => {
            let present: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            let example = present.first().map(|value| crate::number::text(*value));
            // 0 and -0 count as one value.
            (distinct(present.iter().map(|value| (value + 0.0).to_bits())), example, numbers(present))
        }
        Values::Date(values) => {
            let present: Vec<i64> = values.iter().copied().filter(|value| *value != MISSING_DATE).collect();
            let example = present.first().map(|value| date::text(*value));
            (distinct(present.iter().copied()), example, dates(present))
        }
        Values::Category { codes, names } => {
            let example = codes.iter().find_map(|code| names.get(*code as usize)).cloned();
            let (count, figures) = categories(codes, names);
            ((count.min(MOST_DISTINCT), count > MOST_DISTINCT), example, figures)
        }
        Values::Text(texts) => {
            let lengths = || texts.iter().flatten().map(|text| text.chars().count());
            let range = lengths().min().zip(lengths().max());
            let figures = range.map(|(shortest, longest)| Figures::Text { shortest, longest });
            (distinct(texts.iter().flatten()), texts.iter().flatten().next().map(String::from), figures)
        }
    };
    ColumnSummary {
        name: column.name.clone(),
        kind: column.values.kind().into(),
        missing,
        missing_share: if rows == 0 { 0.0 } else { missing as f64 / rows as f64 },
        distinct,
        distinct_more,
        example: example.as_deref().map(shortened),
        figures,
    }
}

/// Returns the number of distinct values, and true if there are more than were counted.
fn distinct<T: Eq + Hash>(values: impl Iterator<Item = T>) -> (usize, bool) {
    let mut seen = HashSet::new();
    for value in values {
        if !seen.contains(&value) {
            if seen.len() == MOST_DISTINCT {
                return (MOST_DISTINCT, true);
            }
            seen.insert(value);
        }
    }
    (seen.len(), false)
}

fn numbers(mut present: Vec<f64>) -> Option<Figures> {
    let min = present.iter().copied().min_by(f64::total_cmp)?;
    let max = present.iter().copied().max_by(f64::total_cmp)?;
    // Divide each value before summing, so that the sum of large numbers stays finite.
    let count = present.len() as f64;
    let sum: f64 = present.iter().sum();
    let mean = if sum.is_finite() { sum / count } else { present.iter().map(|value| value / count).sum() };
    let middle = present.len() / 2;
    let (before, upper, _) = present.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = before.iter().copied().max_by(f64::total_cmp);
    let median = match lower {
        Some(lower) if count % 2.0 == 0.0 => lower / 2.0 + upper / 2.0,
        _ => upper,
    };
    Some(Figures::Number { min, mean, median, max })
}

fn dates(mut present: Vec<i64>) -> Option<Figures> {
    let (min, max) = (*present.iter().min()?, *present.iter().max()?);
    let sum: i128 = present.iter().map(|at| i128::from(*at)).sum();
    let mean = i64::try_from(sum.div_euclid(present.len() as i128)).unwrap_or(max);
    let (middle, even) = (present.len() / 2, present.len().is_multiple_of(2));
    let (before, upper, _) = present.select_nth_unstable(middle);
    let upper = *upper;
    let median = match before.iter().max() {
        Some(lower) if even => lower + (upper - lower) / 2,
        _ => upper,
    };
    let text = date::text;
    Some(Figures::Date { min: text(min), mean: text(mean), median: text(median), max: text(max) })
}

/// Returns the number of categories that occur, and the most frequent categories.
fn categories(codes: &[u32], names: &[String]) -> (usize, Option<Figures>) {
    let mut counts = vec![0_usize; names.len()];
    for code in codes.iter().filter(|code| **code != MISSING_CODE) {
        counts[*code as usize] += 1;
    }
    let mut top: Vec<(String, usize)> =
        names.iter().cloned().zip(counts).filter(|(_, count)| *count > 0).collect();
    let occur = top.len();
    top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    top.truncate(TOP);
    (occur, (occur > 0).then_some(Figures::Category { top }))
}

#[cfg(test)]
mod tests;
