//! Table of the contributions of the other parties.

use fet_eval::{Direction, Metric};

use super::super::added::Added;
use super::super::row::ComparisonVerdict;
use super::super::statistics::CONFIDENCE;
use super::super::statistics::paired::PairedComparison;
use super::super::summary::{StudySummary, power_note, reversible_note};
use super::table::{DIFFERENCE, ReportTable, TableRow, against, over_rows};

/// Title of the section.
pub(super) const TITLE: &str = "Contribution of the other parties";

/// Titles of the columns with intervals from the predictions.
const BY_ROWS: &str = "95 % by test rows";
const BY_ROWS_AND_SPLITS: &str = "95 % by test rows and splits";

/// Returns the table, with a row for each variant that has a control variant, or `None` if no variant has
/// one.
pub(super) fn table(summary: &StudySummary<'_>) -> Option<ReportTable> {
    let metric = summary.metric.filter(|_| !summary.added.is_empty())?;
    let header =
        ["variant", "without other parties", "pairs", "", "p", "effect d", BY_ROWS, BY_ROWS_AND_SPLITS];
    let mut header = header.map(String::from).to_vec();
    header[DIFFERENCE] = format!("{}, with minus without (95 %)", metric.title());
    let row = |added: &Added| {
        let name = |index: usize| summary.rows[index].variant.run();
        let [difference, p, effect] = against(Some(&added.comparison), Some(metric));
        let pairs = added.comparison.n.to_string();
        let [rows, splits] = over_rows(&added.comparison, metric);
        let fields = vec![name(added.index), name(added.control), pairs, difference, p, effect, rows, splits];
        TableRow { fields, differs: added.verdict.differs() }
    };
    Some(ReportTable { header, rows: summary.added.iter().map(row).collect() })
}

/// Returns notes that explain the table.
pub(super) fn notes(summary: &StudySummary<'_>, metric: Metric) -> Vec<String> {
    let better = match metric.direction() {
        Direction::Minimise => "below 0 the other parties help",
        Direction::Maximise => "above 0 the other parties help",
    };
    let unit = summary.grid.unit();
    let tested = summary.added.iter().filter(|added| added.comparison.test.is_some()).count();
    let mut notes = vec![format!(
        "Each method compared with the same method without other parties, over the {unit} that both have: {better}. Bold, or * in plain text: p below {:.2} after \
         Holm's correction for {tested} comparison{}; comparisons with the base are a separate family.",
        1.0 - CONFIDENCE,
        if tested == 1 { "" } else { "s" }
    )];
    let known = || summary.added.iter().filter_map(|added| added.comparison.over_rows.as_ref().ok());
    if known().next().is_some() {
        let splits = match known().all(|found| found.same_rows) {
            true => "All runs have the same split, so the second interval holds for these training rows.",
            false => "It allows for rows that the splits share (Nadeau and Bengio 2003).",
        };
        notes.push(format!(
            "{BY_ROWS}: the same models on other test rows, from resampled rows. {BY_ROWS_AND_SPLITS}: other runs on other \
             test rows; read this interval before you rely on a difference. {splits}"
        ));
    }
    let with = |verdict: fn(ComparisonVerdict) -> bool| -> Vec<(String, &PairedComparison)> {
        let own = summary.added.iter().filter(|added| verdict(added.verdict));
        own.map(|added| (summary.rows[added.index].variant.run(), &added.comparison)).collect()
    };
    notes.extend(reversible_note(unit, &with(ComparisonVerdict::differs)));
    let open = with(|verdict| verdict == ComparisonVerdict::NotShown);
    notes.extend(power_note("Contributions", metric, &open));
    let undefined = |added: &Added| {
        let reason = added.comparison.over_rows.as_ref().err()?;
        Some(format!("{}: {reason}", summary.rows[added.index].variant.run()))
    };
    let undefined: Vec<String> = summary.added.iter().filter_map(undefined).collect();
    if let Some(first) = undefined.first() {
        notes.push(format!(
            "—: the intervals by test rows are undefined for {} of {} comparisons ({first}).",
            undefined.len(),
            summary.added.len()
        ));
    }
    notes
}
