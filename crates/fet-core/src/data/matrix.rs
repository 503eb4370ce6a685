//! Table of numbers.

use std::fmt;

/// A dense table, row by row.
#[derive(Clone, PartialEq)]
pub struct Matrix<T> {
    columns: usize,
    values: Vec<T>,
}

impl<T: Copy> Matrix<T> {
    /// Creates a table of `values.len() / columns` rows.
    ///
    /// # Panics
    /// If the values do not fill whole rows, which is an error of the caller.
    pub fn new(columns: usize, values: Vec<T>) -> Self {
        // Without columns, only a table without values is valid.
        assert!(
            values.len().is_multiple_of(columns),
            "{} values do not fill rows of {columns}",
            values.len()
        );
        Self { columns, values }
    }

    /// Returns the number of rows; 0 for a table without columns.
    pub fn rows(&self) -> usize {
        self.values.len().checked_div(self.columns).unwrap_or(0)
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns one row.
    pub fn row(&self, index: usize) -> &[T] {
        &self.values[index * self.columns..(index + 1) * self.columns]
    }

    /// Returns all values, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns all values for modification, row by row.
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Returns the named rows, in the order given.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|&row| self.row(row)).copied().collect();
        Self { columns: self.columns, values }
    }

    /// Returns the named columns, in the order given.
    #[must_use]
    pub fn select_columns(&self, columns: &[usize]) -> Self {
        let values = (0..self.rows()).flat_map(|r| columns.iter().map(move |&c| self.row(r)[c])).collect();
        Self { columns: columns.len(), values }
    }
}

/// Shows the shape, never the values: a table belongs to one party.
impl<T: Copy> fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix[{} x {}]", self.rows(), self.columns)
    }
}
