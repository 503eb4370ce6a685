//! Errors of tables: the file, the place, the rule, the value and advice. The messages quote cells, so they
//! stay on this machine.

use std::fmt;

use thiserror::Error;

/// Failure to read, change or write a table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// Problem with a whole file: it is absent, truncated, or in an unsupported format.
    #[error("{file}: {problem}")]
    File {
        /// File name, or "standard input".
        file: String,
        /// Problem and advice.
        problem: String,
    },
    /// Row that does not match the header.
    #[error("{file} {place}: {problem}")]
    Row {
        /// File name, or "standard input".
        file: String,
        /// Place of the row.
        place: Place,
        /// Problem and advice.
        problem: String,
    },
    /// Problem with a whole column.
    #[error("{file} column `{column}`: {problem}")]
    Column {
        /// File name, or "standard input".
        file: String,
        /// Name of the column.
        column: String,
        /// Problem and advice.
        problem: String,
    },
    /// Problem with one cell.
    #[error(transparent)]
    Cell(Box<BadCell>),
    /// Problem with a table in memory, such as a row or column that it lacks.
    #[error("the table {0}")]
    Absent(String),
}

/// Invalid cell.
#[derive(Debug, Error)]
#[error("{file} {place} column `{column}`: {rule}; it is \"{value}\" ({advice})")]
pub struct BadCell {
    /// File name, or "standard input".
    pub file: String,
    /// Place of the row.
    pub place: Place,
    /// Name of the column.
    pub column: String,
    /// Rule that the cell breaks.
    pub rule: String,
    /// Cell, shortened to 40 characters.
    pub value: String,
    /// Advice for the user.
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

/// Place of a row. In a text file this is the line on which the row begins, counted from 1 including the
/// header. In other files it is the row number, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Line of a text file.
    Line(u64),
    /// Row of a Parquet or Arrow file.
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

/// Rule that a cell breaks, with advice.
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

/// Returns the first 40 characters of a cell. Control characters, which could affect a terminal, are escaped.
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
