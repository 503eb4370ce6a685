//! Keys: what a party's records are known by. Numbers, texts, or what a linker made of either.
//!
//! A linker works on keys; a model never sees a text. The numbers that it sees instead are made where records are prepared. Nothing here
//! compares keys.

use std::fmt;

use super::Matrix;

/// One key for each record of a party.
#[derive(Clone, PartialEq)]
pub enum Keys {
    /// Coordinates and the like, [n, m].
    Numbers(Matrix<f64>),
    /// Names, addresses and the like.
    Text(TextTable),
    /// What a linker sends in place of keys; only that linker can read it.
    Sealed(Sealed),
}

/// What keys a linker takes.
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
    /// How many records there are.
    pub fn rows(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.rows(),
            Self::Text(keys) => keys.rows(),
            Self::Sealed(keys) => keys.rows,
        }
    }

    /// How many columns a key has.
    pub fn columns(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.columns(),
            Self::Text(keys) => keys.columns(),
            Self::Sealed(keys) => keys.columns,
        }
    }

    /// The keys, where they are numbers.
    pub fn numbers(&self) -> Option<&Matrix<f64>> {
        if let Self::Numbers(keys) = self { Some(keys) } else { None }
    }

    /// The keys, where they are texts.
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
    /// If the keys are sealed: only whole tables are.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(keys) => Self::Numbers(keys.select_rows(rows)),
            Self::Text(keys) => Self::Text(keys.select_rows(rows)),
            Self::Sealed(_) => panic!("sealed keys are a message, not a table"),
        }
    }

    /// How many bytes of payload a message with them has.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Numbers(keys) => 8 * keys.values().len() as u64,
            Self::Text(keys) => keys.cells.iter().map(|cell| 4 + cell.len() as u64).sum(),
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
#[derive(Clone, PartialEq, Eq)]
pub struct TextTable {
    columns: usize,
    cells: Vec<String>,
}

impl TextTable {
    /// A table of `cells.len() / columns` rows.
    ///
    /// # Panics
    /// If the cells do not fill whole rows: the caller made the table.
    pub fn new(columns: usize, cells: Vec<String>) -> Self {
        assert!(
            columns > 0 && cells.len().is_multiple_of(columns),
            "{} cells, rows of {columns}",
            cells.len()
        );
        Self { columns, cells }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// How many columns there are.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[String] {
        &self.cells[row * self.columns..(row + 1) * self.columns]
    }

    /// All cells, row by row.
    pub fn cells(&self) -> &[String] {
        &self.cells
    }

    /// The named rows, in the order given.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        Self { columns: self.columns, cells: rows.iter().flat_map(|&row| self.row(row)).cloned().collect() }
    }
}

impl fmt::Debug for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextTable[{} x {}]", self.rows(), self.columns)
    }
}

/// Bytes that only the linker that made them can read, and of how many keys they speak.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    rows: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Sealed {
    /// `bytes` that stand for `rows` keys of `columns` columns.
    pub fn new(rows: usize, columns: usize, bytes: Vec<u8>) -> Self {
        Self { rows, columns, bytes }
    }

    /// How many keys it stands for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns those keys had.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// What is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed[{} keys, {} bytes]", self.rows, self.bytes.len())
    }
}
