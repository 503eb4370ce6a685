//! Settings for reading a table: kinds, marks of missing cells, columns and the delimiter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::written::Decimal;

/// Usual marks of missing cells. An empty cell is always missing.
pub const MARKS: [&str; 6] = ["NA", "N/A", "NaN", "null", "None", "?"];

/// Settings for reading a table. By default everything is inferred.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Kinds of columns by name. The kinds of the other columns are inferred.
    pub kinds: BTreeMap<String, Kind>,
    /// Columns of `kinds` whose kind was inferred from another table, instead of set by someone who knows
    /// this table. Such a kind does not settle cells with two readings.
    pub inferred: BTreeSet<String>,
    /// Marks of missing cells, compared without case after trimming spaces; an empty cell is always missing.
    /// If the list is empty, the usual marks ([`MARKS`]) apply, except in columns set to category. In columns
    /// set to text only an empty cell is missing, because "None" and "NA" may be names.
    pub missing: Vec<String>,
    /// Columns to read, in this order; `None` reads all columns.
    pub columns: Option<Vec<String>>,
    /// Columns to skip.
    pub drop: Vec<String>,
    /// Byte between the cells of a text file; `None` detects it.
    pub delimiter: Option<u8>,
    /// True if a column without any value is read as text. Otherwise the reader refuses it.
    pub keep_empty: bool,
    /// True if columns without a set kind are keys that are compared for equality. Such a column is numeric
    /// only if every cell is a number without a leading zero that 64 bits distinguish from its neighbours;
    /// otherwise its cells are strings. Only an empty cell is missing.
    pub identifiers: bool,
    /// True if cells of columns set to text keep their surrounding spaces.
    pub keep_spaces: bool,
}

impl Options {
    /// Returns the kind that decides which marks of missing cells apply to a column. A category inferred from
    /// another table counts as undeclared, so that the same marks apply as in that table.
    pub(crate) fn declared(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name).filter(|kind| **kind != Kind::Category || !self.inferred.contains(name))
    }
}

/// Parses the delimiter of a setting: one character, or "tab".
pub fn delimiter(name: &str) -> Option<u8> {
    match name.as_bytes() {
        b"tab" => Some(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Some(*byte),
        _ => None,
    }
}

/// Kind of a column. Text form: `number`, `number:1,234.5`, `time`, `category`, `date`, `date:FORMAT`,
/// `text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Kind {
    /// Finite numbers in double precision.
    Number,
    /// Finite numbers with a point before the decimals, and without signs between groups of digits: `number:plain`.
    Plain,
    /// Finite numbers with or without a unit and signs between groups of three digits: `number:1,234.5` or `number:1.234,5`.
    Amount(Decimal),
    /// Times of day, read as hours: 10:45 becomes 10.75.
    Time,
    /// Names from a list.
    Category,
    /// Points in time.
    Date {
        /// Format of the cells, as in chrono's `strftime` (`%d/%m/%Y`); `None` for the formats that are
        /// inferred.
        format: Option<String>,
    },
    /// Any other text.
    Text,
}

/// Text that is not the name of a kind.
#[derive(Debug, thiserror::Error)]
#[error(
    "\"{0}\" is not a kind; it must be number, number:plain, number:1,234.5 (or number:1.234,5), time, category, date, date:FORMAT (as date:%d/%m/%Y) or text"
)]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        match text {
            "number" => Ok(Self::Number),
            "number:plain" => Ok(Self::Plain),
            "category" => Ok(Self::Category),
            "date" => Ok(Self::Date { format: None }),
            "text" => Ok(Self::Text),
            "time" => Ok(Self::Time),
            _ if text.starts_with("number:") => {
                let example = &text["number:".len()..];
                let forms = [Decimal::Point, Decimal::Comma];
                let mut fits = forms.into_iter().filter(|form| form.number(example) == Some(1234.5));
                fits.next().map(Self::Amount).ok_or_else(|| UnknownKind(text.into()))
            }
            _ => match text.strip_prefix("date:") {
                Some(format) if crate::date::is_format(format) => {
                    Ok(Self::Date { format: Some(format.into()) })
                }
                _ => Err(UnknownKind(text.into())),
            },
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("number"),
            Self::Plain => f.write_str("number:plain"),
            Self::Amount(Decimal::Point) => f.write_str("number:1,234.5"),
            Self::Amount(Decimal::Comma) => f.write_str("number:1.234,5"),
            Self::Time => f.write_str("time"),
            Self::Category => f.write_str("category"),
            Self::Date { format: None } => f.write_str("date"),
            Self::Date { format: Some(format) } => write!(f, "date:{format}"),
            Self::Text => f.write_str("text"),
        }
    }
}

impl TryFrom<String> for Kind {
    type Error = UnknownKind;

    fn try_from(text: String) -> Result<Self, UnknownKind> {
        text.parse()
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.to_string()
    }
}

/// Marks of missing cells, prepared for comparison.
pub(crate) struct Missing {
    marks: Vec<String>,
    /// True for each byte that begins a mark, in either case: the first byte rules out most cells.
    begins: [bool; 256],
    /// True if the caller named the marks, which then apply to categories, too.
    named: bool,
    keep_spaces: bool,
}

impl Missing {
    pub(crate) fn new(options: &Options) -> Self {
        let named = !options.missing.is_empty();
        let usual = || MARKS.into_iter().map(String::from).collect();
        let marks: Vec<String> = match &options.missing {
            _ if options.identifiers => Vec::new(),
            marks if named => marks.clone(),
            _ => usual(),
        };
        let mut begins = [false; 256];
        for first in marks.iter().filter_map(|mark| mark.trim().bytes().next()) {
            begins[usize::from(first.to_ascii_lowercase())] = true;
            begins[usize::from(first.to_ascii_uppercase())] = true;
        }
        let marks = marks.iter().map(|mark| mark.trim().to_string()).collect();
        Self { marks, begins, named, keep_spaces: options.keep_spaces }
    }

    /// Returns the cell, trimmed unless a text column keeps its spaces, or `None` if the cell is missing.
    /// `kind` is the declared kind.
    pub(crate) fn present<'a>(&self, cell: &'a str, kind: Option<&Kind>) -> Option<&'a str> {
        let text = kind == Some(&Kind::Text);
        let cell = if text && self.keep_spaces { cell } else { cell.trim() };
        if text {
            return (!cell.is_empty()).then_some(cell);
        }
        let missing = match cell.bytes().next() {
            None => true,
            Some(_) if kind == Some(&Kind::Category) && !self.named => false,
            Some(first) => {
                self.begins[usize::from(first)]
                    && self.marks.iter().any(|mark| mark.eq_ignore_ascii_case(cell))
            }
        };
        (!missing).then_some(cell)
    }
}
