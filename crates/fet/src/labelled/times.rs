//! Periods of rows with a label: days, months, quarters or years, joined until each has enough rows.

use chrono::{DateTime, Datelike};
use fet_eval::conformal::Conformal;
use fet_eval::{Coverage, Predictions};
use fet_tables::{Column, MISSING_DATE, Values};

use super::{Bias, Labelled, covered};
use crate::bounds;

/// Minimum number of rows of a period.
const LEAST: usize = 30;
/// Maximum number of periods.
const MOST: usize = 24;
/// Probability below which the coverage of a period warns, over all periods together.
const ALPHA: f64 = 1e-3;
const DAY: i64 = 86_400_000_000;
/// Greatest span of each unit except years, in days.
const SPANS: [(Unit, i64); 3] = [(Unit::Day, 62), (Unit::Month, 3 * 366), (Unit::Quarter, 10 * 366)];

/// Dates of new rows.
pub(crate) struct Times {
    column: String,
    /// Microseconds since 1970-01-01 UTC of each row; `None` without a date.
    at: Vec<Option<i64>>,
}

/// Rows of successive dates.
#[derive(Debug, PartialEq)]
struct Period {
    name: String,
    rows: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Day,
    Month,
    Quarter,
    Year,
}

impl Unit {
    fn name(self, at: i64) -> String {
        let Some(date) = DateTime::from_timestamp_micros(at) else { return String::new() };
        match self {
            Self::Day => date.format("%Y-%m-%d").to_string(),
            Self::Month => date.format("%Y-%m").to_string(),
            Self::Quarter => format!("{} Q{}", date.format("%Y"), (date.month0() / 3) + 1),
            Self::Year => date.format("%Y").to_string(),
        }
    }
}

impl Times {
    /// Returns the dates of a column; `None` if it holds no date.
    pub(crate) fn from_column(column: &Column) -> Option<Self> {
        let Values::Date(dates) = &column.values else { return None };
        let at: Vec<Option<i64>> = dates.iter().map(|&at| (at != MISSING_DATE).then_some(at)).collect();
        at.iter().any(Option::is_some).then(|| Self { column: column.name.clone(), at })
    }
}

/// Returns the periods of rows with these dates, in order.
fn periods(mut dated: Vec<(i64, usize)>) -> Vec<Period> {
    dated.sort_unstable();
    let (Some(first), Some(last)) = (dated.first(), dated.last()) else { return Vec::new() };
    let days = (last.0 - first.0) / DAY;
    let unit = SPANS.iter().find(|(_, span)| days <= *span).map_or(Unit::Year, |(unit, _)| *unit);
    let least = LEAST.max(dated.len().div_ceil(MOST));
    let (mut found, mut names): (Vec<Vec<usize>>, Vec<[String; 2]>) = (Vec::new(), Vec::new());
    for (at, row) in dated {
        let name = unit.name(at);
        match names.last_mut().zip(found.last_mut()) {
            Some((names, rows)) if names[1] == name || rows.len() < least => {
                names[1] = name;
                rows.push(row);
            }
            _ => {
                names.push([name.clone(), name]);
                found.push(vec![row]);
            }
        }
    }
    // The last period can lack rows.
    if found.len() > 1 && found.last().is_some_and(|rows| rows.len() < least) {
        let (rows, end) = (found.pop().unwrap_or_default(), names.pop());
        if let Some((names, end)) = names.last_mut().zip(end) {
            names[1].clone_from(&end[1]);
        }
        found.last_mut().into_iter().for_each(|last| last.extend(&rows));
    }
    let name = |[from, to]: [String; 2]| if from == to { from } else { format!("{from} to {to}") };
    names.into_iter().map(name).zip(found).map(|(name, rows)| Period { name, rows }).collect()
}

impl Labelled<'_> {
    /// Returns the error and the coverage of each period, and a warning about periods that the bounds cover too
    /// rarely. Returns `None` if there are fewer than two periods.
    pub(crate) fn by_time(
        &self,
        times: &Times,
        conformal: Option<&Conformal>,
    ) -> anyhow::Result<Option<(String, Option<String>)>> {
        let dated = self.known.iter().enumerate().filter_map(|(at, &row)| Some((times.at[row]?, at)));
        let dated: Vec<(i64, usize)> = dated.collect();
        let without = self.known.len() - dated.len();
        let periods = periods(dated);
        if periods.len() < 2 {
            return Ok(None);
        }
        let metric = self.run.report.metric;
        let head = ["rows".to_string(), metric.title(), "bias".to_string(), "coverage".to_string()];
        let mut lines = vec![line(&format!("by `{}`", times.column), &head)];
        let mut short = Vec::new();
        for Period { name, rows } in &periods {
            let width = self.objective.outputs;
            let truth: Vec<f64> = rows.iter().map(|&at| self.truth[at]).collect();
            let outputs: Vec<f64> =
                rows.iter().flat_map(|at| &self.outputs[at * width..(at + 1) * width]).copied().collect();
            let members = Predictions::new(self.objective.scored(), &truth, &outputs)?;
            let score =
                members.score(metric).map_or_else(|_| "undefined".to_string(), |value| metric.show(value));
            let bias = Bias::from_predictions(&members);
            let bias = bias.map_or_else(|| "-".to_string(), |bias| bias.shown(rows.len()));
            let coverage = conformal.map(|conformal| (conformal, Coverage::new(conformal, &members)));
            let share = coverage.as_ref().map_or_else(|| "-".to_string(), |(_, found)| covered(&found.all));
            lines.push(line(name, &[rows.len().to_string(), score, bias, share]));
            if let Some((conformal, found)) = coverage
                && found.shortfall(conformal) * (periods.len() as f64) < ALPHA
            {
                short.push((name, found));
            }
        }
        if without > 0 {
            let (rows, have) = if without == 1 { ("row", "has") } else { ("rows", "have") };
            lines.push(format!("{without} {rows} with a label {have} no date."));
        }
        let warning = short.first().map(|(name, found)| {
            format!(
                "in {} of {} periods of `{}` the bounds contain the true value too rarely, first in {name}: {}, not {} as stated",
                short.len(),
                periods.len(),
                times.column,
                found.all.share().map_or_else(|| "-".to_string(), bounds::shown),
                bounds::shown(found.stated)
            )
        });
        Ok(Some((format!("{}\n", lines.join("\n")), warning)))
    }
}

fn line(name: &str, [rows, score, bias, coverage]: &[String; 4]) -> String {
    format!("{name:<30} {rows:>8}  {score:<18} {bias:<20} {coverage}").trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns names and numbers of rows for dates at these days since 1970.
    fn found(days: impl Iterator<Item = i64>) -> Vec<(String, usize)> {
        let dated = days.enumerate().map(|(row, day)| (day * DAY, row)).collect();
        periods(dated).into_iter().map(|period| (period.name, period.rows.len())).collect()
    }

    #[test]
    fn joins_units_until_each_period_has_enough_rows() {
        // 60 rows a day on two days, and 10 on a third.
        let days = (0..130).map(|row| row / 60);
        assert_eq!(
            found(days),
            [("1970-01-01".to_string(), 60), ("1970-01-02 to 1970-01-03".to_string(), 70)]
        );
        // One row a day over a year: 31, 28 + 31, 30 + 31, ...
        let months = found(0..365);
        assert_eq!(months[0], ("1970-01".to_string(), 31));
        assert_eq!(months[1], ("1970-02 to 1970-03".to_string(), 59));
        assert_eq!(months.iter().map(|month| month.1).sum::<usize>(), 365);
        assert!(months.iter().all(|month| month.1 >= LEAST), "{months:?}");
        // One row every tenth day over five years, and over forty.
        assert_eq!(found((0..180).map(|row| 10 * row))[0], ("1970 Q1 to 1970 Q4".to_string(), 37));
        assert_eq!(found((0..1_500).map(|row| 10 * row))[0].0, "1970 to 1971");
        assert!(found((0..100_000).map(|row| row / 4)).len() <= MOST);
        assert_eq!((found(0..29).len(), found(std::iter::empty()).len()), (1, 0));
    }
}
