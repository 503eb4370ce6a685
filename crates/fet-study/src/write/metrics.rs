//! Table of every metric: the test metrics of each variant, and the bootstrap interval of the main metric.
//!
//! The crate `fet-eval` defines the metrics; this module rounds and explains them.

use fet_eval::{Estimate, Metric};
use serde_json::{Map, Value, json};

use super::super::pooled::{self, Values};
use super::super::row::Row;
use super::super::statistics::{mean, standard_deviation};
use super::super::summary::StudySummary;
use super::table::{ReportTable, TableRow, mean_and_deviation};

/// Text for an undefined metric.
pub(super) const UNDEFINED: &str = "–";

/// Returns the table, with a row for each variant and a column for each metric. If all variants share the
/// main metric, its interval follows in the next column. Returns `None` without results.
pub(super) fn table(summary: &StudySummary<'_>) -> Option<ReportTable> {
    let metrics = pooled::metrics(summary.results);
    if metrics.is_empty() {
        return None;
    }
    let is_main = |metric: Metric| summary.metric == Some(metric);
    let mut header = vec!["variant".to_string()];
    for metric in &metrics {
        header.push(metric.title());
        if is_main(*metric) {
            header.push(INTERVAL.to_string());
        }
    }
    let row = |row: &Row<'_>| {
        let mut fields = vec![row.variant.name.clone()];
        for &metric in &metrics {
            let n = row.results.len();
            fields.push(field(&pooled::metric(row, metric), n, |values| {
                mean_and_deviation(values, |value| metric.show(value))
            }));
            if is_main(metric) {
                let half = |values: &[f64]| format!("± {}", metric.show(mean(values)));
                fields.push(field(&pooled::half_widths(row), n, half));
            }
        }
        TableRow { fields, differs: false }
    };
    Some(ReportTable { header, rows: summary.rows.iter().map(row).collect() })
}

/// Title of the column with the interval.
const INTERVAL: &str = "95 % by test rows";

/// Formats a figure of `n` cells. If some cells do not define the figure, the field includes the number of
/// those that do.
fn field(values: &Values, n: usize, show: impl Fn(&[f64]) -> String) -> String {
    match values.values.len() {
        0 => UNDEFINED.to_string(),
        defined if defined < n => format!("{} (n = {defined})", show(&values.alone())),
        _ => show(&values.alone()),
    }
}

/// Returns notes that define the figures of the table, and give the reasons for undefined figures.
pub(super) fn notes(summary: &StudySummary<'_>) -> Vec<String> {
    let metrics = pooled::metrics(summary.results);
    if metrics.is_empty() {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "Every metric on the test rows, at the epoch that the main metric selected: mean ± standard deviation over {}. The \
             deviation shows the variation with another seed: other weights and batches, and another split if the seed determines \
             the split.",
        summary.grid.unit()
    )];
    if let Some(metric) = summary.metric {
        let resamples =
            summary.results.iter().filter_map(|result| match &result.report.evaluation.interval {
                Estimate::Interval(interval) => Some(interval.resamples),
                Estimate::Undefined(_) => None,
            });
        let (fewest, most) =
            resamples.fold((usize::MAX, 0), |(low, high), count| (low.min(count), high.max(count)));
        let drawn = match most {
            0 => String::new(),
            _ if fewest == most => format!(" from {most} resamples of the test rows"),
            _ => format!(" from {fewest} to {most} resamples of the test rows"),
        };
        notes.push(format!(
            "{INTERVAL}: half the width of the 95 % bootstrap interval of the {}{drawn}, mean over the cells. It shows the \
             variation with other test rows, for the same model. Neither figure includes the other.",
            metric.label()
        ));
    }
    let all = || summary.rows.iter().flat_map(|row| metrics.iter().map(move |metric| (row, *metric)));
    let lacking = |wanted: Metric| {
        let own = all().filter(|(_, metric)| *metric == wanted);
        missing(own.map(|(row, metric)| (row, pooled::metric(row, metric))))
    };
    for metric in &metrics {
        notes.extend(
            lacking(*metric).map(|why| format!("{UNDEFINED}: {} is undefined {why}", metric.label())),
        );
    }
    if summary.metric.is_some() {
        let own = summary.rows.iter().map(|row| (row, pooled::half_widths(row)));
        notes.extend(missing(own).map(|why| format!("{UNDEFINED}: the interval is undefined {why}")));
    }
    notes
}

/// Returns the number of cells with an undefined figure, and the reason of the first such cell.
fn missing<'a>(figures: impl Iterator<Item = (&'a Row<'a>, Values)>) -> Option<String> {
    let (mut all, mut count, mut first) = (0, 0, None);
    for (row, values) in figures {
        all += values.values.len() + values.undefined.len();
        count += values.undefined.len();
        let own = values.undefined.into_iter().next();
        first = first.or(own.map(|(seed, reason)| format!("{}, seed {seed}: {reason}", row.variant.name)));
    }
    first.map(|first| format!("in {count} of {all} cells ({first})."))
}

/// Returns the metrics of a row by name as JSON, with unrounded numbers.
pub(super) fn json(summary: &StudySummary<'_>, row: &Row<'_>) -> Value {
    let metrics = pooled::metrics(summary.results);
    let figures =
        metrics.iter().map(|metric| (metric.name().to_string(), figures(&pooled::metric(row, *metric))));
    Value::Object(figures.collect())
}

/// Returns the half widths of the main metric's intervals as JSON, with unrounded numbers.
pub(super) fn interval_json(row: &Row<'_>) -> Value {
    figures(&pooled::half_widths(row))
}

fn figures(values: &Values) -> Value {
    let alone = values.alone();
    let seeds: Map<String, Value> =
        values.values.iter().map(|(seed, value)| (seed.to_string(), json!(value))).collect();
    let undefined: Map<String, Value> =
        values.undefined.iter().map(|(seed, reason)| (seed.to_string(), json!(reason))).collect();
    // serde_json writes NaN and infinity as null.
    json!({
        "mean": mean(&alone), "std": standard_deviation(&alone), "n": alone.len(), "seeds": seeds, "undefined": undefined,
    })
}

#[cfg(test)]
#[path = "metrics/tests.rs"]
mod tests;
