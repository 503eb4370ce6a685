//! Table of the contributions of the other parties.

use fet_eval::{Direction, Metric};
use serde_json::Value;

use super::super::added::Added;
use super::super::statistics::CONFIDENCE;
use super::super::summary::{ComparisonVerdict, StudySummary};
use super::json::compared;
use super::table::{DIFFERENCE, ReportTable, TableRow, against};

/// Title of the section.
pub(super) const TITLE: &str = "Contribution of the other parties";

/// Returns the table, with a row for each variant that has a control variant, or `None` if no variant has
/// one.
pub(super) fn table(summary: &StudySummary<'_>) -> Option<ReportTable> {
    let metric = summary.metric.filter(|_| !summary.added.is_empty())?;
    let header = ["variant", "without other parties", "pairs", "", "p", "effect d"].map(String::from);
    let mut header = header.to_vec();
    header[DIFFERENCE] = format!("{}, with minus without (95 %)", metric.title());
    let row = |added: &Added| {
        let name = |index: usize| summary.rows[index].variant.name.clone();
        let [difference, p, effect] = against(Some(&added.comparison), Some(metric));
        let pairs = added.comparison.n.to_string();
        let fields = vec![name(added.index), name(added.control), pairs, difference, p, effect];
        TableRow {
            fields,
            differs: matches!(added.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse),
        }
    };
    Some(ReportTable { header, rows: summary.added.iter().map(row).collect() })
}

/// Returns notes that explain the table.
pub(super) fn notes(summary: &StudySummary<'_>, metric: Metric) -> Vec<String> {
    let better = match metric.direction() {
        Direction::Minimise => "below 0 the other parties help",
        Direction::Maximise => "above 0 the other parties help",
    };
    let tested = summary.added.iter().filter(|added| added.comparison.test.is_some()).count();
    vec![format!(
        "Each method compared with the same method without other parties, over the seeds that both have: {better}. Bold: p below {:.2} after \
         Holm's correction for {tested} comparison{}.",
        1.0 - CONFIDENCE,
        if tested == 1 { "" } else { "s" }
    )]
}

/// Returns the contributions as JSON, with unrounded numbers.
pub(super) fn json(summary: &StudySummary<'_>) -> Vec<Value> {
    let one = |added: &Added| {
        let name = |index: usize| &summary.rows[index].variant.name;
        let mut value = compared(&added.comparison);
        value["variant"] = name(added.index).as_str().into();
        value["control"] = name(added.control).as_str().into();
        value
    };
    summary.added.iter().map(one).collect()
}
