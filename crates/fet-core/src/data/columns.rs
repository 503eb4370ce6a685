//! A party's own columns: plain numbers, or typed columns as they are in the party's table.

use std::fmt;

use fet_tables::Table;
use fet_tables::prepare::Rules;

use super::matrix::Matrix;

/// A party's own columns, before preparation.
#[derive(Debug, Clone)]
pub enum Features {
    /// Numbers, [rows, d].
    Numbers(Matrix<f32>),
    /// Numbers, categories, dates and texts.
    Columns(Columns),
}

/// Typed columns, and their owner's rules for preparing them for a model.
#[derive(Clone)]
pub struct Columns {
    /// The columns.
    pub table: Table,
    /// Rules that turn the columns into numbers.
    pub rules: Rules,
}

impl Features {
    /// Returns the number of records; 0 for a table without columns.
    pub fn rows(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.rows(),
            Self::Columns(columns) => columns.table.rows,
        }
    }

    /// Returns the number of columns, before they are prepared.
    pub fn columns(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.columns(),
            Self::Columns(columns) => columns.table.columns.len(),
        }
    }

    /// Returns the numbers, or `None` if the columns are typed.
    pub fn numbers(&self) -> Option<&Matrix<f32>> {
        match self {
            Self::Numbers(numbers) => Some(numbers),
            Self::Columns(_) => None,
        }
    }

    /// Returns the name of a column, or its number, from 1, if it is unnamed.
    pub fn name(&self, column: usize) -> String {
        match self {
            Self::Numbers(_) => format!("column {}", column + 1),
            Self::Columns(columns) => columns.table.columns[column].name.clone(),
        }
    }

    /// Returns the same columns with the rows of one column permuted: row i of that column has the value of
    /// row `order[i]`.
    ///
    /// # Panics
    /// If there is no such column, or `order` does not fit the records.
    #[must_use]
    pub fn shuffled(&self, column: usize, order: &[usize]) -> Self {
        let mut other = self.clone();
        match &mut other {
            Self::Numbers(numbers) => {
                let (width, own) = (numbers.columns(), numbers.clone());
                for (row, &from) in order.iter().enumerate() {
                    numbers.values_mut()[row * width + column] = own.row(from)[column];
                }
            }
            Self::Columns(columns) => {
                let values = &mut columns.table.columns[column].values;
                *values = values.select(order);
            }
        }
        other
    }

    /// Returns the named records, in the order given.
    ///
    /// # Panics
    /// If there is no such record.
    #[must_use]
    pub fn select_rows(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(numbers.select_rows(rows)),
            Self::Columns(Columns { table, rules }) => {
                let table = table.select_rows(rows).expect("the records exist");
                Self::Columns(Columns { table, rules: rules.clone() })
            }
        }
    }
}

impl From<Matrix<f32>> for Features {
    fn from(numbers: Matrix<f32>) -> Self {
        Self::Numbers(numbers)
    }
}

/// Shows the shape, never the values.
impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Columns[{} x {}]", self.table.rows, self.table.columns.len())
    }
}
