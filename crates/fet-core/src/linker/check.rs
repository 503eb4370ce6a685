//! The checks that linkers start with. The data holder's side makes them, on messages from another party.

use super::LinkError;
use crate::data::{KeyKind, Keys, Matrix, TextTable};

/// Checks keys for linkers of numbers: numbers on both sides, equal numbers of key columns, and enough
/// records or permission to pad.
pub fn check_numbers<'a>(
    queries: &'a Keys,
    records: &'a Keys,
    neighbours: usize,
    pad: bool,
) -> Result<(&'a Matrix<f64>, &'a Matrix<f64>), LinkError> {
    let numbers = |keys: &'a Keys| keys.numbers().ok_or_else(|| LinkError::kind(KeyKind::Numbers, keys));
    let (queries, records) = (numbers(queries)?, numbers(records)?);
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, pad)?;
    // The queries come from another party and are not checked yet.
    check_finite(queries)?;
    check_finite(records).map_err(LinkError::of_own_table)?;
    Ok((queries, records))
}

fn check_finite(keys: &Matrix<f64>) -> Result<(), LinkError> {
    let Some(place) = keys.values().iter().position(|x| !x.is_finite()) else { return Ok(()) };
    let problem = format!("its numbers must be finite; one of them is {}", keys.values()[place]);
    Err(LinkError::Value { row: place / keys.columns(), problem })
}

/// Checks keys in the same way for linkers of text.
pub fn check_text<'a>(
    queries: &'a Keys,
    records: &'a Keys,
    neighbours: usize,
    pad: bool,
) -> Result<(&'a TextTable, &'a TextTable), LinkError> {
    let text = |keys: &'a Keys| keys.text().ok_or_else(|| LinkError::kind(KeyKind::Text, keys));
    let (queries, records) = (text(queries)?, text(records)?);
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, pad)?;
    Ok((queries, records))
}

/// Checks keys in the same way for linkers of numbers or text: both sides must have the same kind.
pub fn check_either(queries: &Keys, records: &Keys, neighbours: usize, pad: bool) -> Result<(), LinkError> {
    let same =
        matches!((queries, records), (Keys::Numbers(_), Keys::Numbers(_)) | (Keys::Text(_), Keys::Text(_)));
    if !same {
        return Err(LinkError::Mixed { queries: queries.kind_name(), records: records.kind_name() });
    }
    check_shapes(queries.columns(), records.columns(), records.rows(), neighbours, pad)
}

/// 2^53: 64-bit floats represent all smaller integers exactly, but not all larger ones.
pub const APART: f64 = 9_007_199_254_740_992.0;

/// Checks keys for linkers that compare numbers for equality: refuses numbers of 2^53 and more, which cannot
/// be compared exactly.
pub fn check_apart(keys: &Keys) -> Result<(), LinkError> {
    let Some(numbers) = keys.numbers() else { return Ok(()) };
    // The comparison is false for NaN too.
    let is_apart = |number: &f64| number.abs() < APART;
    let Some(place) = numbers.values().iter().position(|number| !is_apart(number)) else { return Ok(()) };
    let problem = format!(
        "must be below 2^53 in size, because larger integers cannot be compared exactly; it is {} \
         (read such keys as texts)",
        numbers.values()[place]
    );
    Err(LinkError::Value { row: place / numbers.columns(), problem })
}

/// Checks that the numbers of key columns are equal, and that there are enough records or permission to pad.
pub fn check_shapes(
    queries: usize,
    records: usize,
    rows: usize,
    neighbours: usize,
    pad: bool,
) -> Result<(), LinkError> {
    if queries != records {
        return Err(LinkError::KeyMismatch { queries, records });
    }
    if rows == 0 || (rows < neighbours && !pad) {
        return Err(LinkError::TooFewRecords { neighbours, records: rows });
    }
    Ok(())
}
