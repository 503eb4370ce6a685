//! Writes the results of a study into its folder: for programs (CSV, JSON), documents (Markdown, LaTeX) and people
//! (`report.html`).
//!
//! Every file is derived from the summary; `fet-chart` draws the charts.

mod figures;
mod html;
mod json;
mod table;

use std::path::Path;

use anyhow::Result;

use super::results;
use super::summary::Summary;
use crate::output::write;

pub(crate) use table::Table;

/// The files, in display order.
pub(crate) const FILES: &str =
    "report.html, table.md, table.tex, results.csv, costs.csv, curves.csv, results.json";

/// Writes all files of a study; returns the table for display.
pub(crate) fn all(summary: &Summary<'_>, folder: &Path) -> Result<Table> {
    let table = Table::new(summary);
    let notes: String = summary.notes.iter().map(|note| format!("\n{note}\n")).collect();
    let files = [
        ("results.csv", results::results(summary.results, folder)),
        ("costs.csv", results::costs(summary.results, folder)),
        ("curves.csv", results::curves(summary.results)),
        ("results.json", json::text(summary)?),
        ("table.md", table.markdown() + &notes),
        ("table.tex", table.latex()),
        ("report.html", html::text(summary, &table)?),
    ];
    for (name, text) in files {
        write(&folder.join(name), &text)?;
    }
    Ok(table)
}
