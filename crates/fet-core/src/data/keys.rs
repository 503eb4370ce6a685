//! Keys, which identify a party's records: numbers, texts, or a linker's encoding of either.
//!
//! A linker works on keys; a model never sees a text. Record preparation makes the numbers that it sees instead.
//! Nothing here compares keys.

use std::fmt;

use super::{Form, Matrix};

/// One key for each record of a party.
#[derive(Clone, PartialEq)]
pub enum Keys {
    /// Numbers such as coordinates, [n, m].
    Numbers(Matrix<f64>),
    /// Texts such as names and addresses.
    Text(TextTable),
    /// What a linker sends in place of keys; only that linker can read it.
    Sealed(Sealed),
}

/// The kind of keys that a linker accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Numbers.
    Numbers,
    /// Texts.
    Text,
    /// Either.
    Either,
}

impl KeyKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Numbers => "numbers",
            Self::Text => "text",
            Self::Either => "numbers or text",
        }
    }

    /// Whether keys are of this kind.
    pub fn fits(self, keys: &Keys) -> bool {
        match keys {
            Keys::Numbers(_) => self != Self::Text,
            Keys::Text(_) => self != Self::Numbers,
            Keys::Sealed(_) => true,
        }
    }
}

impl Keys {
    /// The number of records.
    pub fn rows(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.rows(),
            Self::Text(keys) => keys.rows(),
            Self::Sealed(keys) => keys.rows,
        }
    }

    /// The number of key columns.
    pub fn columns(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.columns(),
            Self::Text(keys) => keys.columns(),
            Self::Sealed(keys) => keys.columns,
        }
    }

    /// The keys, if they are numbers.
    pub fn numbers(&self) -> Option<&Matrix<f64>> {
        if let Self::Numbers(keys) = self { Some(keys) } else { None }
    }

    /// The keys, if they are texts.
    pub fn text(&self) -> Option<&TextTable> {
        if let Self::Text(keys) = self { Some(keys) } else { None }
    }

    /// What they are, in messages.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Numbers(_) => "numbers",
            Self::Text(_) => "text",
            Self::Sealed(_) => "sealed by another linker",
        }
    }

    /// The named rows, in the order given.
    ///
    /// # Panics
    /// If the keys are sealed: sealed keys have no single rows.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(keys) => Self::Numbers(keys.select_rows(rows)),
            Self::Text(keys) => Self::Text(keys.select_rows(rows)),
            Self::Sealed(_) => panic!("sealed keys are a message, not a table"),
        }
    }

    /// The payload of a message with them, in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(keys) => 8 * keys.values().len() as u64,
            Self::Text(keys) => 4 * keys.ends.len() as u64 + keys.text.len() as u64,
            Self::Sealed(keys) => keys.bytes.len() as u64,
        }
    }
}

impl From<Matrix<f64>> for Keys {
    fn from(keys: Matrix<f64>) -> Self {
        Self::Numbers(keys)
    }
}

/// Shows the shape, never the values.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({}, {} x {})", self.kind_name(), self.rows(), self.columns())
    }
}

/// A table of texts, row by row; an empty text is a missing value.
///
/// One buffer holds the text of all cells, so that a million short cells do not take a million allocations.
#[derive(Clone, PartialEq, Eq)]
pub struct TextTable {
    columns: usize,
    text: String,
    /// The end of each cell in `text`.
    ends: Vec<usize>,
    /// The forms of the columns, where they were decided by other cells than these; empty where these decide.
    forms: Vec<Form>,
}

impl TextTable {
    /// A table of these cells, `columns` of which make a row.
    ///
    /// # Panics
    /// If the cells do not fill whole rows: the caller made the table.
    pub fn new(columns: usize, cells: Vec<String>) -> Self {
        Self::from_cells(columns, cells)
    }

    /// A table of these cells, which may be any kind of text.
    ///
    /// # Panics
    /// If the cells do not fill whole rows.
    pub fn from_cells<T: AsRef<str>>(columns: usize, cells: impl IntoIterator<Item = T>) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for cell in cells {
            text.push_str(cell.as_ref());
            ends.push(text.len());
        }
        text.shrink_to_fit();
        ends.shrink_to_fit();
        Self::from_ends(columns, text, ends)
    }

    fn from_ends(columns: usize, text: String, ends: Vec<usize>) -> Self {
        assert!(columns > 0 && ends.len().is_multiple_of(columns), "{} cells, rows of {columns}", ends.len());
        Self { columns, text, ends, forms: Vec::new() }
    }

    /// A table from the end of each cell in `text`, or `None` if the cells do not cover the text exactly.
    pub(crate) fn try_from_ends(columns: usize, text: String, ends: Vec<usize>) -> Option<Self> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let are_cells = starts.zip(&ends).all(|(start, &end)| text.get(start..end).is_some());
        let is_whole = ends.last().copied().unwrap_or_default() == text.len();
        (are_cells && is_whole).then(|| Self::from_ends(columns, text, ends))
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len() / self.columns
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The cell at this position, counting row by row.
    fn cell(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }

    /// One column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = &str> + Clone {
        (column..self.ends.len()).step_by(self.columns).map(|at| self.cell(at))
    }

    /// The forms of its columns: those that were given, or those that its cells decide.
    pub fn forms(&self) -> Vec<Form> {
        if self.forms.is_empty() {
            return (0..self.columns).map(|column| Form::of(self.column(column))).collect();
        }
        self.forms.clone()
    }

    /// The forms that other cells decided; empty if these decide.
    pub fn given_forms(&self) -> &[Form] {
        &self.forms
    }

    /// The same table with the forms of a larger one, as new records have those of the records that a model was trained with. Forms of
    /// another number of columns are left out.
    #[must_use]
    pub fn with_forms(self, forms: Vec<Form>) -> Self {
        let forms = if forms.len() == self.columns { forms } else { Vec::new() };
        Self { forms, ..self }
    }

    /// One row.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = &str> {
        (row * self.columns..(row + 1) * self.columns).map(|at| self.cell(at))
    }

    /// All cells, row by row.
    pub fn cells(&self) -> Vec<&str> {
        (0..self.ends.len()).map(|at| self.cell(at)).collect()
    }

    /// The text of all cells and the end of each cell in it.
    pub(crate) fn parts(&self) -> (&str, &[usize]) {
        (&self.text, &self.ends)
    }

    /// The named rows, in the order given.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let rows = rows.iter().flat_map(|&row| self.row(row));
        Self::from_cells(self.columns, rows).with_forms(self.forms())
    }
}

impl fmt::Debug for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextTable[{} x {}]", self.rows(), self.columns)
    }
}

/// Bytes that only the linker that made them can read, and the number of keys they encode.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    rows: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Sealed {
    /// `bytes` that encode `rows` keys of `columns` columns.
    pub fn new(rows: usize, columns: usize, bytes: Vec<u8>) -> Self {
        Self { rows, columns, bytes }
    }

    /// The number of keys it encodes.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns of those keys.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The bytes that are sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed[{} keys, {} bytes]", self.rows, self.bytes.len())
    }
}
