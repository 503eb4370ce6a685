//! Writes the results of a study into its folder: for programs (CSV, JSON), documents (Markdown, LaTeX) and
//! people (`report.html`).
//!
//! Every file is derived from the summary; `fet-chart` draws the charts.

mod added;
mod defences;
mod details;
mod figures;
mod html;
mod json;
mod metrics;
pub(crate) mod table;

use std::path::Path;

use anyhow::{Context, Result};

use super::results;
use super::summary::StudySummary;
use crate::output::write;

pub(crate) use table::ReportTable;

/// Returns the names of the files, in display order.
pub(crate) fn files(summary: &StudySummary<'_>) -> String {
    let always = "report.html, table.md, table.tex, results.csv, costs.csv, curves.csv, results.json";
    let attacked = if summary.defences.is_some() { ", attacks.csv, leakage.svg" } else { "" };
    format!("{always}{attacked}")
}

/// Writes all files of a study. Returns the tables for display, and the notes on the last table.
pub(crate) fn write_study(
    summary: &StudySummary<'_>,
    folder: &Path,
) -> Result<(Vec<ReportTable>, Vec<String>)> {
    let table = ReportTable::new(summary);
    let every = metrics::table(summary);
    let added = added::table(summary);
    let attacked = summary.defences.as_ref();
    let defences = attacked.map(|defences| defences::table(summary, defences));
    let notes = attacked.map_or_else(Vec::new, defences::notes);
    let mut markdown = table.markdown();
    markdown.extend(summary.notes.iter().map(|note| format!("\n{note}\n")));
    if let (Some(added), Some(metric)) = (&added, summary.metric) {
        markdown.push_str(&format!("\n{}:\n\n{}", added::TITLE, added.markdown()));
        markdown.extend(added::notes(summary, metric).iter().map(|note| format!("\n{note}\n")));
    }
    if let Some(every) = &every {
        markdown.push_str(&format!("\nEvery metric:\n\n{}", every.markdown()));
        markdown.extend(metrics::notes(summary).iter().map(|note| format!("\n{note}\n")));
    }
    if let (Some(attacked), Some(defences)) = (attacked, &defences) {
        let caption = defences::caption(summary, attacked);
        markdown.push_str(&format!("\n{}\n{caption}\n", defences.markdown()));
        markdown.extend(notes.iter().map(|note| format!("\n{note}\n")));
    }
    let files = [
        ("results.csv", Some(results::results(summary.results, folder))),
        ("costs.csv", Some(results::costs(summary.results, folder))),
        ("curves.csv", Some(results::curves(summary.results))),
        ("results.json", Some(json::text(summary)?)),
        ("table.md", Some(markdown)),
        ("table.tex", Some(table.latex())),
        ("attacks.csv", attacked.map(|_| results::attacks(summary.results))),
        ("leakage.svg", attacked.and_then(|defences| figures::leakage_file(summary, defences))),
        (
            "report.html",
            Some(html::text(summary, &table, [added.as_ref(), every.as_ref(), defences.as_ref()])?),
        ),
    ];
    for (name, text) in files {
        let path = folder.join(name);
        match text {
            Some(text) => write(&path, &text)?,
            // Remove a file of an earlier form of the study, because it does not describe the present form.
            None if path.exists() => {
                std::fs::remove_file(&path).with_context(|| path.display().to_string())?
            }
            None => {}
        }
    }
    Ok((std::iter::once(table).chain(added).chain(defences).collect(), notes))
}
