//! The report of a cell: where it is, whether it counts, and what happens to one that does not.
//!
//! A report counts only if its experiment, its data and its version of results are those of the cell. The record itself
//! is in `fet-records`.

use std::fs;
use std::io;
use std::path::PathBuf;

use fet_records::{Identity, Report, Spent};

use super::cell::Cell;

/// The report of a cell, if the cell is done.
pub(crate) fn of(cell: &Cell) -> Option<Report> {
    let report = serde_json::from_slice(&fs::read(path(cell)).ok()?).ok()?;
    counts(&report, &cell.identity).then_some(report)
}

/// Whether a report is of the run that `identity` describes, and has a result.
fn counts(report: &Report, identity: &Identity) -> bool {
    report.experiment == identity.experiment
        && report.data.files == identity.data
        && report.program.results == identity.results
        && !report.best.test.is_nan()
}

/// What is wrong with the report of a cell, if there is one and it cannot be read.
pub(crate) fn problem(cell: &Cell) -> Option<String> {
    let bytes = fs::read(path(cell)).ok()?;
    serde_json::from_slice::<Report>(&bytes).err().map(|error| error.to_string())
}

/// Moves a report away that does not count: `fet` refuses to write over one.
pub(crate) fn move_away(cell: &Cell) -> io::Result<()> {
    let path = path(cell);
    if path.exists() { fs::rename(&path, path.with_extension("old.json")) } else { Ok(()) }
}

/// ε; infinite where it has no bound.
pub(crate) fn epsilon(privacy: &Spent) -> f64 {
    privacy.epsilon.unwrap_or(f64::INFINITY)
}

fn path(cell: &Cell) -> PathBuf {
    cell.folder.join("report.json")
}
