//! Failures of cells: the reason and the end of the log. A failure is a file in the cell's folder; a retry
//! removes the file.
//!
//! Failures are read from the folders alone, so that every engine and every later report gives the same
//! answer. This module runs no cells.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::report;
use crate::output::write;

/// Failure of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CellFailure {
    /// Short reason.
    pub(crate) problem: String,
}

/// Number of log lines shown for a failed cell.
const TAIL: usize = 12;

impl CellFailure {
    /// Returns the failure of a cell, if any.
    pub(crate) fn read(cell: &Cell) -> Option<Self> {
        serde_json::from_slice(&fs::read(path(cell)).ok()?).ok()
    }

    /// Records that a cell failed. If the file cannot be written, the view still shows the failure.
    pub(crate) fn note(cell: &Cell, problem: &str) -> Self {
        let failure = Self { problem: problem.to_string() };
        let text = serde_json::to_string(&failure).unwrap_or_default();
        let _ = write(&path(cell), &format!("{text}\n"));
        failure
    }

    /// Removes the failure of a cell before a retry.
    pub(crate) fn forget(cell: &Cell) -> io::Result<()> {
        match fs::remove_file(path(cell)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns the reason for a failed run, from its exit code or signal and its log.
pub(crate) fn explain(cell: &Cell, code: Option<i32>, signal: Option<i32>) -> String {
    let advice = match cell.identity.program {
        None => "; a smaller batch or `train.recompute=true` needs less memory",
        Some(_) => "",
    };
    let log = tail(cell);
    match (code, signal) {
        (_, Some(9)) | (Some(137), _) => {
            format!("was killed (signal 9): the usual reason is that memory ran out{advice}")
        }
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        (Some(0), _) => match report::problem(cell) {
            Some(problem) => format!("wrote a report that cannot be read: {problem}"),
            None if cell.identity.program.is_some() => "wrote no report.json".to_string(),
            None => "wrote no report of this experiment".to_string(),
        },
        (Some(code), _) if log.contains("training diverged") => format!("diverged (exit code {code})"),
        (Some(101), _) => "panicked (exit code 101)".to_string(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, None) => "ended for an unknown reason".to_string(),
    }
}

/// Returns the signal that ended a process.
#[cfg(unix)]
pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

/// Returns the signal that ended a process: always `None` on this platform.
#[cfg(not(unix))]
pub(crate) fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// Returns the path of a cell's log, which holds the standard error of its run, and those lines of its
/// standard output that are not events.
pub(crate) fn log(cell: &Cell) -> PathBuf {
    cell.folder.join("cell.log")
}

/// Converts a JSON log line to human-readable form; returns any other line unchanged.
fn in_words(line: &str) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let field = |name: &str| parsed.as_ref().and_then(|parsed| parsed.get(name)?.as_str());
    match (field("event"), field("message")) {
        (Some("error"), Some(message)) => format!("fet: {message}"),
        (Some("warning"), Some(message)) => format!("warning: {message}"),
        (Some(_), Some(message)) => message.to_string(),
        _ => line.to_string(),
    }
}

/// Returns the end of a cell's log.
pub(crate) fn tail(cell: &Cell) -> String {
    let text = fs::read(log(cell)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<String> = text.lines().map(in_words).collect();
    let end = &lines[lines.len().saturating_sub(TAIL)..];
    if end.is_empty() { "(it is empty)".to_string() } else { end.join("\n") }
}

fn path(cell: &Cell) -> PathBuf {
    cell.folder.join("failure.json")
}
