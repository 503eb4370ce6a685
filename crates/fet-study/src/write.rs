//! Writes the results of a study into its folder: for programs (CSV, JSON), documents (Markdown, LaTeX) and
//! people (`report.html`).
//!
//! Every file is derived from the summary; `fet-chart` draws the charts.

mod added;
mod defences;
mod details;
mod errors;
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

pub use errors::{ErrorChart, error_charts};
pub(crate) use table::ReportTable;

/// Returns the names of the files, in display order.
pub(crate) fn files(summary: &StudySummary<'_>) -> String {
    let always = "report.html, table.md, table.tex, results.csv, costs.csv, curves.csv, results.json";
    let attacked = if summary.defences.is_some() { ", attacks.csv, leakage.svg" } else { "" };
    format!("{always}{attacked}")
}

/// Writes all files of a study. Returns the tables for display, and the notes on contributions and defences.
pub(crate) fn write_study(
    summary: &StudySummary<'_>,
    folder: &Path,
) -> Result<(Vec<ReportTable>, Vec<String>)> {
    let table = ReportTable::new(summary);
    let every = metrics::table(summary);
    let added = added::table(summary);
    let attacked = summary.defences.as_ref();
    let defences = attacked.map(|defences| defences::table(summary, defences));
    let of_added = summary.metric.filter(|_| added.is_some()).map(|metric| added::notes(summary, metric));
    let of_added = of_added.unwrap_or_default();
    let of_defences = attacked.map_or_else(Vec::new, defences::notes);
    let mut markdown = String::new();
    // The comparison of each method with its control variant comes first.
    if let Some(added) = &added {
        markdown.push_str(&format!("{}:\n\n{}", added::TITLE, added.markdown()));
        markdown.extend(of_added.iter().map(|note| format!("\n{note}\n")));
        markdown.push_str("\nEvery variant:\n\n");
    }
    markdown.push_str(&table.markdown());
    markdown.extend(summary.notes.iter().map(|note| format!("\n{note}\n")));
    if let Some(every) = &every {
        markdown.push_str(&format!("\nEvery metric:\n\n{}", every.markdown()));
        markdown.extend(metrics::notes(summary).iter().map(|note| format!("\n{note}\n")));
    }
    if let (Some(attacked), Some(defences)) = (attacked, &defences) {
        let caption = defences::caption(summary, attacked);
        markdown.push_str(&format!("\n{}\n{caption}\n", defences.markdown()));
        markdown.extend(of_defences.iter().map(|note| format!("\n{note}\n")));
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
    let tables = added.into_iter().chain(std::iter::once(table)).chain(defences).collect();
    Ok((tables, [of_added, of_defences].concat()))
}
