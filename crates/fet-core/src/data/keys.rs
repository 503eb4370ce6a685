//! Keys, which identify a party's records: numbers, texts, or a linker's encoding of either.
//!
//! A linker works on keys; a model never sees a text. It sees numbers that record preparation computes. This
//! module does not compare keys.

use std::fmt;

use sha2::{Digest, Sha256};

use super::forms::Form;
use super::matrix::Matrix;

/// One key for each record of a party.
#[derive(Clone, PartialEq)]
pub enum Keys {
    /// Numbers such as coordinates, [n, m].
    Numbers(Matrix<f64>),
    /// Texts such as names and addresses.
    Text(TextTable),
    /// A linker's encoding of the keys; only that linker can read it.
    Sealed(Sealed),
}

/// The kind of keys that a linker accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Numbers.
    Numbers,
    /// Texts.
    Text,
    /// Numbers or texts.
    Either,
}

impl KeyKind {
    /// Returns the name of the kind, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Numbers => "numbers",
            Self::Text => "text",
            Self::Either => "numbers or text",
        }
    }

    /// Returns true if keys are of this kind.
    pub fn fits(self, keys: &Keys) -> bool {
        match keys {
            Keys::Numbers(_) => self != Self::Text,
            Keys::Text(_) => self != Self::Numbers,
            Keys::Sealed(_) => true,
        }
    }
}

impl Keys {
    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.rows(),
            Self::Text(keys) => keys.rows(),
            Self::Sealed(keys) => keys.rows,
        }
    }

    /// Returns the number of key columns.
    pub fn columns(&self) -> usize {
        match self {
            Self::Numbers(keys) => keys.columns(),
            Self::Text(keys) => keys.columns(),
            Self::Sealed(keys) => keys.columns,
        }
    }

    /// Returns the keys, if they are numbers.
    pub fn numbers(&self) -> Option<&Matrix<f64>> {
        if let Self::Numbers(keys) = self { Some(keys) } else { None }
    }

    /// Returns the keys, if they are texts.
    pub fn text(&self) -> Option<&TextTable> {
        if let Self::Text(keys) = self { Some(keys) } else { None }
    }

    /// Returns the name of the keys' kind, for messages.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Numbers(_) => "numbers",
            Self::Text(_) => "text",
            Self::Sealed(_) => "sealed by another linker",
        }
    }

    /// Returns the named rows, in the order given.
    ///
    /// # Panics
    /// If the keys are sealed, because sealed keys cannot be divided into rows.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(keys) => Self::Numbers(keys.select_rows(rows)),
            Self::Text(keys) => Self::Text(keys.select_rows(rows)),
            Self::Sealed(_) => panic!("sealed keys are a message, not a table"),
        }
    }

    /// Returns a digest of each record's key. Equal keys have equal digests.
    ///
    /// # Panics
    /// If the keys are sealed, because sealed keys cannot be divided into rows.
    pub fn digests(&self) -> Vec<i64> {
        let of = |hash: Sha256| {
            let digest: [u8; 32] = hash.finalize().into();
            i64::from_le_bytes(digest[..8].try_into().expect("eight bytes"))
        };
        let all = 0..self.rows();
        match self {
            Self::Numbers(keys) => all
                .map(|row| {
                    // Both zeros are one number.
                    let number = |hash: Sha256, key: &f64| hash.chain_update((key + 0.0).to_le_bytes());
                    of(keys.row(row).iter().fold(Sha256::new(), number))
                })
                .collect(),
            Self::Text(keys) => all
                .map(|row| {
                    let text = |hash: Sha256, cell: &str| {
                        hash.chain_update((cell.len() as u64).to_le_bytes()).chain_update(cell)
                    };
                    of(keys.row(row).fold(Sha256::new(), text))
                })
                .collect(),
            Self::Sealed(_) => panic!("sealed keys are a message, not a table"),
        }
    }

    /// Returns the payload of a message with these keys, in bytes.
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
/// One buffer holds the text of all cells, so that a million short cells do not need a million allocations.
#[derive(Clone, PartialEq, Eq)]
pub struct TextTable {
    columns: usize,
    text: String,
    /// End of each cell in `text`.
    ends: Vec<usize>,
    /// Forms of the columns, if other cells decided them; empty if the cells of this table decide.
    forms: Vec<Form>,
}

impl TextTable {
    /// Creates a table of these cells, in rows of `columns` cells.
    ///
    /// # Panics
    /// If the cells do not fill whole rows, which is an error of the caller.
    pub fn new(columns: usize, cells: Vec<String>) -> Self {
        Self::from_cells(columns, cells)
    }

    /// Creates a table of these cells, of any string type.
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

    /// Creates a table from the end of each cell in `text`, or returns `None` if the cells do not cover the
    /// text exactly.
    pub(crate) fn try_from_ends(columns: usize, text: String, ends: Vec<usize>) -> Option<Self> {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let are_cells = starts.zip(&ends).all(|(start, &end)| text.get(start..end).is_some());
        let is_whole = ends.last().copied().unwrap_or_default() == text.len();
        (are_cells && is_whole).then(|| Self::from_ends(columns, text, ends))
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len() / self.columns
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the cell at this position, counted row by row.
    fn cell(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }

    /// Returns the cells of one column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = &str> + Clone {
        (column..self.ends.len()).step_by(self.columns).map(|at| self.cell(at))
    }

    /// Returns the forms of the columns: the given forms, or the forms that the cells decide.
    pub fn forms(&self) -> Vec<Form> {
        if self.forms.is_empty() {
            return (0..self.columns).map(|column| Form::detect(self.column(column))).collect();
        }
        self.forms.clone()
    }

    /// Returns the forms that other cells decided; empty if the cells of this table decide.
    pub fn given_forms(&self) -> &[Form] {
        &self.forms
    }

    /// Returns the same table with the forms of a larger one: new records have the forms of the training
    /// records. Ignores forms for another number of columns.
    #[must_use]
    pub fn with_forms(self, forms: Vec<Form>) -> Self {
        let forms = if forms.len() == self.columns { forms } else { Vec::new() };
        Self { forms, ..self }
    }

    /// Returns the cells of one row.
    pub fn row(&self, row: usize) -> impl ExactSizeIterator<Item = &str> {
        (row * self.columns..(row + 1) * self.columns).map(|at| self.cell(at))
    }

    /// Returns all cells, row by row.
    pub fn cells(&self) -> Vec<&str> {
        (0..self.ends.len()).map(|at| self.cell(at)).collect()
    }

    /// Returns the text of all cells and the end of each cell in it.
    pub(crate) fn parts(&self) -> (&str, &[usize]) {
        (&self.text, &self.ends)
    }

    /// Returns the named rows, in the order given.
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

/// Bytes that only the linker that made them can read, with the number of keys that they encode.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    rows: usize,
    columns: usize,
    bytes: Vec<u8>,
}

impl Sealed {
    /// Wraps `bytes` that encode `rows` keys of `columns` columns.
    pub fn new(rows: usize, columns: usize, bytes: Vec<u8>) -> Self {
        Self { rows, columns, bytes }
    }

    /// Returns the number of encoded keys.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns of those keys.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed[{} keys, {} bytes]", self.rows, self.bytes.len())
    }
}
