//! Keys for Python code.

use fet_core::data::Keys;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Cells of keys, row by row, and the number of columns.
pub(crate) enum Cells {
    Numbers(Vec<u8>, usize),
    Texts(Vec<String>, usize),
}

impl Cells {
    pub(crate) fn new(keys: &Keys) -> Self {
        match keys {
            Keys::Text(keys) => {
                Self::Texts(keys.cells().into_iter().map(String::from).collect(), keys.columns())
            }
            keys => {
                let values = keys.numbers().map_or(&[][..], |keys| keys.values());
                Self::Numbers(values.iter().flat_map(|value| value.to_ne_bytes()).collect(), keys.columns())
            }
        }
    }

    pub(crate) fn python(self, py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, usize)> {
        match self {
            Self::Numbers(bytes, columns) => Ok((PyBytes::new(py, &bytes).into_any(), columns)),
            Self::Texts(cells, columns) => Ok((cells.into_bound_py_any(py)?, columns)),
        }
    }
}
