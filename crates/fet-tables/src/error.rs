//! What is wrong with a table: the file, the place, the rule, the value and what to do. Messages stay on this machine;
//! they show cells.

use std::fmt;

use thiserror::Error;

/// Why a table cannot be read, changed or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file as a whole: it is absent, cut, or of a form that is not read here.
    #[error("{file}: {problem}")]
    File {
        /// The file, or "standard input".
        file: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A row that does not fit the header.
    #[error("{file} {place}: {problem}")]
    Row {
        /// The file, or "standard input".
        file: String,
        /// Where the row is.
        place: Place,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A column as a whole.
    #[error("{file} column `{column}`: {problem}")]
    Column {
        /// The file, or "standard input".
        file: String,
        /// The name of the column.
        column: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// One cell.
    #[error(transparent)]
    Cell(Box<BadCell>),
    /// A row or column that the table in memory does not have.
    #[error("the table {0}")]
    Absent(String),
}

/// A cell that cannot stand.
#[derive(Debug, Error)]
#[error("{file} {place} column `{column}`: {rule}; it is \"{value}\" ({advice})")]
pub struct BadCell {
    /// The file, or "standard input".
    pub file: String,
    /// Where the row is.
    pub place: Place,
    /// The name of the column.
    pub column: String,
    /// What the cell must be.
    pub rule: String,
    /// The cell, shortened to 40 characters.
    pub value: String,
    /// What to do.
    pub advice: String,
}

impl TableError {
    pub(crate) fn file(file: &str, problem: impl Into<String>) -> Self {
        Self::File { file: file.into(), problem: problem.into() }
    }

    pub(crate) fn column(file: &str, column: &str, problem: impl Into<String>) -> Self {
        Self::Column { file: file.into(), column: column.into(), problem: problem.into() }
    }

    pub(crate) fn cell(file: &str, place: Place, column: &str, value: &str, fault: Fault) -> Self {
        let Fault { rule, advice } = fault;
        let value = shortened(value);
        let (file, column) = (file.into(), column.into());
        Self::Cell(Box::new(BadCell { file, place, column, rule, value, advice }))
    }
}

/// Where a row is: the line of a text file where it begins, from 1, the header's line included; or its number in a file without
/// lines, from 0, as rows count everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text file.
    Line(u64),
    /// A row of a Parquet or Arrow file.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row} (from 0)"),
        }
    }
}

/// The rule that a cell breaks, and what to do about it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) rule: String,
    pub(crate) advice: String,
}

impl Fault {
    pub(crate) fn new(rule: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { rule: rule.into(), advice: advice.into() }
    }
}

/// The first 40 characters of a cell; control characters, which a terminal would obey, are escaped.
pub fn shortened(value: &str) -> String {
    let (start, more) = match value.char_indices().nth(40) {
        Some((end, _)) => (&value[..end], "…"),
        None => (value, ""),
    };
    if !start.contains(char::is_control) {
        return format!("{start}{more}");
    }
    let escaped =
        start.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() });
    escaped.chain([more.to_string()]).collect()
}
