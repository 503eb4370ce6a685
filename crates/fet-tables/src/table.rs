//! Table in memory, stored by column, with selection of columns and rows.

use std::collections::{BTreeMap, HashSet};

use fet_io::did_you_mean;

use crate::error::TableError;
use crate::options::Kind;
use crate::texts::Texts;

/// Code of a missing cell in a column of categories.
pub const MISSING_CODE: u32 = u32::MAX;

/// Value of a missing cell in a column of dates.
pub const MISSING_DATE: i64 = i64::MIN;

/// Columns with equal numbers of rows, and the notes of the reader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Columns, in the order of the file or of `Options::columns`.
    pub columns: Vec<Column>,
    /// Number of rows.
    pub rows: usize,
    /// Decisions of the reader that a person may want to know, one sentence each. The notes may quote cells.
    pub notes: Vec<String>,
    /// Kinds of the columns with a special format, such as dates with the day first and amounts. Another
    /// table can be read with the same formats.
    pub forms: BTreeMap<String, Kind>,
    /// The number of cells with each style, by column: units of amounts ("the unit %"), and times and zones of dates ("a time and no zone").
    pub styles: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name of the column, unique in its table.
    pub name: String,
    /// Cells of the column.
    pub values: Values,
}

/// Cells of a column, all of one kind. Two columns are equal if their cells are equal; a missing cell equals
/// a missing cell.
#[derive(Clone, Debug)]
pub enum Values {
    /// Finite numbers; NaN for a missing cell.
    Number(Vec<f64>),
    /// Categories. `names` are sorted and distinct, and `codes` are indices into `names`, or [`MISSING_CODE`]
    /// for a missing cell.
    Category {
        /// One code for each row.
        codes: Vec<u32>,
        /// Names of the categories, by code.
        names: Vec<String>,
    },
    /// Microseconds since 1970-01-01T00:00:00 UTC, in the years 0 to 9999; [`MISSING_DATE`] for a missing
    /// cell.
    Date(Vec<i64>),
    /// Texts.
    Text(Texts),
}

impl Table {
    /// Creates a table of these columns, without notes.
    ///
    /// # Errors
    /// Fails if two columns share a name, or if their numbers of rows differ.
    pub fn new(columns: Vec<Column>) -> Result<Self, TableError> {
        let rows = columns.first().map_or(0, |column| column.values.len());
        let mut names = HashSet::new();
        for column in &columns {
            let (name, found) = (&column.name, column.values.len());
            if found != rows {
                return Err(TableError::Absent(format!(
                    "has {rows} rows in `{}` and {found} rows in `{name}`; all columns must have the same number of rows",
                    columns[0].name
                )));
            }
            if !names.insert(name) {
                return Err(TableError::Absent(format!("has two columns called `{name}`; rename one")));
            }
        }
        Ok(Self { columns, rows, ..Self::default() })
    }

    /// Returns the column called `name`.
    ///
    /// # Errors
    /// Fails if the table has no such column. The message names the most similar column.
    pub fn column(&self, name: &str) -> Result<&Column, TableError> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let hint = did_you_mean(name, self.columns.iter().map(|column| column.name.as_str()));
            TableError::Absent(format!("lacks the column `{name}`{hint}"))
        })
    }

    /// Returns a table of the named columns, in the given order, with the notes of this table.
    ///
    /// # Errors
    /// Fails if a name is unknown or appears twice.
    pub fn select_columns<S: AsRef<str>>(&self, names: &[S]) -> Result<Self, TableError> {
        let columns =
            names.iter().map(|name| self.column(name.as_ref()).cloned()).collect::<Result<Vec<_>, _>>()?;
        let selected = Self::new(columns)?;
        Ok(Self {
            rows: self.rows,
            notes: self.notes.clone(),
            forms: self.forms.clone(),
            styles: self.styles.clone(),
            ..selected
        })
    }

    /// Returns a table of the rows with these numbers (from 0), in the given order. A number may appear
    /// twice. Categories keep all their names, so that the codes agree between both tables.
    ///
    /// # Errors
    /// Fails if a number exceeds the last row.
    pub fn select_rows(&self, rows: &[usize]) -> Result<Self, TableError> {
        if let Some(past) = rows.iter().find(|row| **row >= self.rows) {
            return Err(TableError::Absent(format!(
                "has {} rows; row {past} (from 0) does not exist",
                self.rows
            )));
        }
        let columns = self
            .columns
            .iter()
            .map(|column| Column { name: column.name.clone(), values: column.values.select(rows) })
            .collect();
        let (notes, forms, styles) = (self.notes.clone(), self.forms.clone(), self.styles.clone());
        Ok(Self { columns, rows: rows.len(), notes, forms, styles })
    }
}

impl Values {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Number(values) => values.len(),
            Self::Category { codes, .. } => codes.len(),
            Self::Date(values) => values.len(),
            Self::Text(texts) => texts.len(),
        }
    }

    /// Returns true if the column is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of missing cells.
    pub fn missing(&self) -> usize {
        match self {
            Self::Number(values) => values.iter().filter(|value| value.is_nan()).count(),
            Self::Category { codes, .. } => codes.iter().filter(|code| **code == MISSING_CODE).count(),
            Self::Date(values) => values.iter().filter(|value| **value == MISSING_DATE).count(),
            Self::Text(texts) => texts.iter().filter(Option::is_none).count(),
        }
    }

    /// Returns each cell as text; a missing cell gives an empty text.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Number(values) => {
                let text =
                    |value: &f64| if value.is_nan() { String::new() } else { crate::number::text(*value) };
                values.iter().map(text).collect()
            }
            Self::Category { codes, names } => {
                codes.iter().map(|code| names.get(*code as usize).cloned().unwrap_or_default()).collect()
            }
            Self::Date(values) => {
                let text = |value: &i64| {
                    if *value == MISSING_DATE { String::new() } else { crate::date::text(*value) }
                };
                values.iter().map(text).collect()
            }
            Self::Text(texts) => texts.iter().map(|text| text.unwrap_or_default().to_string()).collect(),
        }
    }

    /// Returns "number", "category", "date" or "text".
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::Category { .. } => "category",
            Self::Date(_) => "date",
            Self::Text(_) => "text",
        }
    }

    /// Returns the cells of these rows.
    ///
    /// # Panics
    /// Panics if a row does not exist.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Number(values) => Self::Number(rows.iter().map(|&row| values[row]).collect()),
            Self::Category { codes, names } => {
                Self::Category { codes: rows.iter().map(|&row| codes[row]).collect(), names: names.clone() }
            }
            Self::Date(values) => Self::Date(rows.iter().map(|&row| values[row]).collect()),
            Self::Text(texts) => Self::Text(rows.iter().map(|&row| texts.get(row)).collect()),
        }
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => {
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                a.len() == b.len() && a.iter().zip(b).all(same)
            }
            (Self::Category { codes: a, names: of_a }, Self::Category { codes: b, names: of_b }) => {
                a == b && of_a == of_b
            }
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            _ => false,
        }
    }
}
