//! What the caller may decide about reading a table: kinds, missing marks, columns, delimiter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::written::Decimal;

/// The usual marks of missing cells beside an empty cell.
pub const MARKS: [&str; 6] = ["NA", "N/A", "NaN", "null", "None", "?"];

/// How a table is read. The default infers everything.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The kinds of columns by name; the other columns' kinds are inferred.
    pub kinds: BTreeMap<String, Kind>,
    /// Those of `kinds` that were inferred from another table, and not said by whoever knows this one: a cell that could be read
    /// in two ways is not settled by them.
    pub inferred: BTreeSet<String>,
    /// What stands for a missing cell beside an empty one, whatever its case, once spaces around the cell are taken off; the usual marks
    /// ([`MARKS`]) if none is named, where the kind of a column is not set to category. Where it is set to text only an empty cell is
    /// missing: "None" and "NA" are names, too.
    pub missing: Vec<String>,
    /// The columns to read, in this order; all if none.
    pub columns: Option<Vec<String>>,
    /// Columns not to read.
    pub drop: Vec<String>,
    /// The byte between the cells of a text file; it is detected if none.
    pub delimiter: Option<u8>,
    /// Whether a column without any value is read, as text, and not refused.
    pub keep_empty: bool,
    /// Whether columns whose kind is not set are keys that are compared for equality: numbers where every cell is one without a leading zero
    /// and 64 bits tell it from its neighbours, else strings; only an empty cell is missing.
    pub identifiers: bool,
    /// Whether cells of columns that are set to text keep the spaces around them.
    pub keep_spaces: bool,
}

impl Options {
    /// The kind of a column that somebody declared. A kind that was inferred from another table is none, but that of texts, whose marks count
    /// for nothing.
    pub(crate) fn declared(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name).filter(|kind| **kind != Kind::Category || !self.inferred.contains(name))
    }
}

/// The byte between cells that a setting names: one character, or "tab".
pub fn delimiter(name: &str) -> Option<u8> {
    match name.as_bytes() {
        b"tab" => Some(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Some(*byte),
        _ => None,
    }
}

/// What the cells of a column are. As text: `number`, `number:plain`, `number:1,234.5`, `time`, `category`, `date`, `date:FORMAT`, `text`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Kind {
    /// Finite numbers in double precision.
    Number,
    /// Finite numbers with a point before the decimals, and without signs between groups of digits: `number:plain`.
    Plain,
    /// Finite numbers with or without a unit and signs between groups of three digits: `number:1,234.5` or `number:1.234,5`.
    Amount(Decimal),
    /// Times of day, read as hours: 10:45 is 10.75.
    Time,
    /// Names out of a list.
    Category,
    /// Points in time.
    Date {
        /// How the cells are written, as in chrono's `strftime` (`%d/%m/%Y`); none for the forms that are inferred.
        format: Option<String>,
    },
    /// Anything else.
    Text,
}

/// A text that names no kind.
#[derive(Debug, thiserror::Error)]
#[error(
    "\"{0}\" is no kind; it must be number, number:plain, number:1,234.5 (or number:1.234,5), time, category, date, date:FORMAT (as date:%d/%m/%Y) or text"
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

/// The marks of missing cells, ready to compare.
pub(crate) struct Missing {
    marks: Vec<String>,
    /// Whether a mark begins with this byte, in either case: most cells are told apart by their first byte.
    begins: [bool; 256],
    /// Whether the caller named the marks: then they count in categories, too.
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

    /// The cell, mostly without the spaces around it; none if it is missing. `kind` is that which the caller gave.
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
