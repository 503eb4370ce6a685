//! What a table holds, for the person who holds it: kinds, missing cells, ranges, frequent values. It shows cells, so it is
//! printed where the table lies and never sent.

mod show;

use std::collections::HashSet;
use std::hash::Hash;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::date;
use crate::error::shortened;
use crate::table::{Column, MISSING_CODE, MISSING_DATE, Table, Values};

/// Distinct values are counted up to this many.
const MOST_DISTINCT: usize = 10_000;
/// How many of the most frequent categories are named.
const TOP: usize = 5;

/// What a table holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of rows.
    pub rows: usize,
    /// The columns in their order.
    pub columns: Vec<ColumnSummary>,
    /// The notes of the table.
    pub notes: Vec<String>,
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSummary {
    /// The column's name.
    pub name: String,
    /// "number", "category", "date" or "text".
    pub kind: String,
    /// How many cells are missing.
    pub missing: usize,
    /// Their share of all rows, from 0 to 1; 0 if there are no rows.
    pub missing_share: f64,
    /// How many different values there are among the present cells; at most 10,000 are counted.
    pub distinct: usize,
    /// There are more different values than were counted.
    pub distinct_more: bool,
    /// The first present cell, shortened to 40 characters.
    pub example: Option<String>,
    /// What there is to say of the kind; none if no cell is present.
    pub figures: Option<Figures>,
}

/// What there is to say of the present cells of a column. Of an even number of cells, the median is the mean of the middle
/// two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figures {
    /// Of numbers, in their own unit.
    Number {
        /// The least.
        min: f64,
        /// Their sum by their number.
        mean: f64,
        /// The middle one.
        median: f64,
        /// The greatest.
        max: f64,
    },
    /// Of dates, in ISO 8601, UTC.
    Date {
        /// The earliest.
        min: String,
        /// The mean, to the microsecond.
        mean: String,
        /// The middle one.
        median: String,
        /// The latest.
        max: String,
    },
    /// Of categories.
    Category {
        /// The most frequent five with their numbers of rows, equally frequent ones by name.
        top: Vec<(String, usize)>,
    },
    /// Of texts.
    Text {
        /// The characters of the shortest.
        shortest: usize,
        /// The characters of the longest.
        longest: usize,
    },
}

/// Describes a table.
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
            // Both zeros are one value.
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

/// The number of different values, and whether there are more than were counted.
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
    // Each by its share, so that the sum of large numbers stays finite.
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

/// The number of categories that occur, and the most frequent.
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
