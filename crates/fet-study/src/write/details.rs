//! Prediction errors of each variant, for the page: its charts over seeds, and the scores of groups.
//!
//! The module `pooled` combines the seeds, and `errors` draws the charts.

use fet_eval::Metric;
use serde::Serialize;

use super::super::pooled::{self, ByGroup, GroupOver};
use super::super::row::Row;
use super::super::statistics::mean;
use super::super::summary::StudySummary;
use super::errors::{ErrorChart, error_charts};
use super::metrics::UNDEFINED;
use super::table::mean_and_deviation;

/// Collapsible details of one run.
#[derive(Debug, Serialize)]
pub(super) struct Detail {
    name: String,
    /// Number of cells.
    seeds: usize,
    charts: Vec<ErrorChart>,
    groups: Option<GroupTable>,
}

/// Scores of groups.
#[derive(Debug, Serialize)]
struct GroupTable {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Returns the details of every run that has a chart or groups. Variants that differ only in the attack are
/// one run.
pub(super) fn details(summary: &StudySummary<'_>) -> Vec<Detail> {
    let of = |(name, row): (String, &Row<'_>)| {
        let seeds = row.results.len();
        let charts = error_charts(&row.reports());
        let metrics = pooled::metrics(summary.results);
        let groups = pooled::groups(row).map(|groups| group_table(&groups, &metrics));
        (!charts.is_empty() || groups.is_some()).then_some(Detail { name, seeds, charts, groups })
    };
    summary.distinct().into_iter().filter_map(of).collect()
}

fn group_table(groups: &ByGroup, metrics: &[Metric]) -> GroupTable {
    let row = |group: &GroupOver, name: String| {
        let mut fields = vec![name, group.rows.len().to_string(), format!("{:.1}", mean(&group.rows))];
        fields.extend(metrics.iter().map(|metric| {
            let values = group.values(*metric);
            if values.is_empty() {
                UNDEFINED.to_string()
            } else {
                let n = if values.len() < group.scores.len() {
                    format!(" (n = {})", values.len())
                } else {
                    String::new()
                };
                format!("{}{n}", mean_and_deviation(&values, |value| metric.show(value)))
            }
        }));
        fields
    };
    let mut header = vec![groups.column.clone(), "seeds".to_string(), "rows".to_string()];
    header.extend(metrics.iter().map(|metric| metric.title()));
    let mut rows: Vec<Vec<String>> =
        groups.groups.iter().map(|group| row(group, group.name.clone())).collect();
    rows.extend(groups.others.iter().map(|others| row(others, "all others".to_string())));
    GroupTable { title: format!("By {}", groups.column), header, rows }
}

#[cfg(test)]
#[path = "details/tests.rs"]
mod tests;
