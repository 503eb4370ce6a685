//! Exceptions of the package.

use pyo3::prelude::*;

pyo3::import_exception!(fet.errors, FetError);
pyo3::import_exception!(fet.errors, InputError);

/// Makes an exception of an error: `fet.InputError` where the command exits with 2, else `fet.FetError`.
pub(crate) fn raised(error: &anyhow::Error) -> PyErr {
    let text = fet_io::shorten(&format!("{error:#}"));
    match fet::exit::code(error) {
        2 => InputError::new_err(text),
        _ => FetError::new_err(text),
    }
}
