//! Converts the cells of an Arrow array to numbers, points in time, or text.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};

use crate::date;
use crate::error::Fault;
use crate::number::{self, EXACT};
use crate::table::MISSING_DATE;

const DAY: i64 = 86_400_000_000;

/// Invalid cell.
pub(super) struct Bad {
    /// Row of the cell in the array, from 0.
    pub(super) row: usize,
    pub(super) value: String,
    pub(super) fault: Fault,
}

/// Properties that some cells have.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) rounded: bool,
    pub(super) finer: bool,
}

/// Adds the cells of an array of numbers; NaN counts as missing.
pub(super) fn numbers(array: &dyn Array, values: &mut Vec<f64>, seen: &mut Seen) -> Result<(), Bad> {
    use DataType as T;
    match array.data_type() {
        T::Int8 => exact::<Int8Type>(array, values, f64::from),
        T::Int16 => exact::<Int16Type>(array, values, f64::from),
        T::Int32 => exact::<Int32Type>(array, values, f64::from),
        T::UInt8 => exact::<UInt8Type>(array, values, f64::from),
        T::UInt16 => exact::<UInt16Type>(array, values, f64::from),
        T::UInt32 => exact::<UInt32Type>(array, values, f64::from),
        T::Int64 => wide::<Int64Type>(array, values, seen, |value| value as f64),
        T::UInt64 => wide::<UInt64Type>(array, values, seen, |value| value as f64),
        T::Float16 => finite::<Float16Type>(array, values, |value| value.to_f64()),
        T::Float32 => finite::<Float32Type>(array, values, f64::from),
        T::Float64 => finite::<Float64Type>(array, values, |value| value),
        T::Decimal32(_, scale) => decimals::<Decimal32Type>(array, values, *scale, i128::from),
        T::Decimal64(_, scale) => decimals::<Decimal64Type>(array, values, *scale, i128::from),
        T::Decimal128(_, scale) => decimals::<Decimal128Type>(array, values, *scale, |value| value),
        // The value exceeds 128 bits, so its digits are parsed instead.
        T::Decimal256(..) => decimals::<Decimal256Type>(array, values, i8::MIN, |_| 0),
        other => Err(unforeseen(other)),
    }
}

fn exact<T: ArrowPrimitiveType>(
    array: &dyn Array,
    values: &mut Vec<f64>,
    number: impl Fn(T::Native) -> f64,
) -> Result<(), Bad> {
    values.extend(array.as_primitive::<T>().iter().map(|cell| cell.map_or(f64::NAN, &number)));
    Ok(())
}

fn wide<T: ArrowPrimitiveType>(
    array: &dyn Array,
    values: &mut Vec<f64>,
    seen: &mut Seen,
    number: impl Fn(T::Native) -> f64,
) -> Result<(), Bad> {
    exact::<T>(array, values, number)?;
    let added = &values[values.len() - array.len()..];
    seen.rounded |= added.iter().any(|number| number.abs() >= EXACT);
    Ok(())
}

fn finite<T: ArrowPrimitiveType>(
    array: &dyn Array,
    values: &mut Vec<f64>,
    number: impl Fn(T::Native) -> f64,
) -> Result<(), Bad> {
    for (row, cell) in array.as_primitive::<T>().iter().enumerate() {
        let number = cell.map_or(f64::NAN, &number);
        if number.is_infinite() {
            let fault = Fault::new("must be a finite number", "replace it, or write it as missing");
            return Err(Bad { row, value: number.to_string(), fault });
        }
        values.push(if number.is_nan() { f64::NAN } else { number });
    }
    Ok(())
}

/// Adds the cells of an array of decimals, each as the double nearest to its digits. Up to 2^53, with at most
/// 22 decimals, the digits and the power of ten are exact, so that one division gives the result. Otherwise
/// the decimal's text is parsed.
fn decimals<T: ArrowPrimitiveType + DecimalType>(
    array: &dyn Array,
    values: &mut Vec<f64>,
    scale: i8,
    whole: impl Fn(T::Native) -> i128,
) -> Result<(), Bad> {
    let cells = array.as_primitive::<T>();
    for (row, cell) in cells.iter().enumerate() {
        values.push(match cell.map(&whole) {
            None => f64::NAN,
            Some(whole) if (0..=22).contains(&scale) && whole.unsigned_abs() <= 1 << 53 => {
                whole as f64 / 10_f64.powi(i32::from(scale))
            }
            Some(_) => {
                let text = cells.value_as_string(row);
                number::number(&text).filter(|number| number.is_finite()).ok_or_else(|| {
                    let fault =
                        Fault::new("must be a decimal within double precision", "write a smaller number");
                    Bad { row, value: text, fault }
                })?
            }
        });
    }
    Ok(())
}

/// Adds the cells of an array of points in time, in microseconds since 1970 UTC.
pub(super) fn dates(array: &dyn Array, values: &mut Vec<i64>, seen: &mut Seen) -> Result<(), Bad> {
    each_date(array, seen, |at| {
        values.push(at.unwrap_or(MISSING_DATE));
        Ok(())
    })
}

fn each_date(
    array: &dyn Array,
    seen: &mut Seen,
    cell: impl FnMut(Option<i64>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    use DataType as T;
    match array.data_type() {
        T::Date32 => points::<Date32Type>(array, |days| i64::from(days).checked_mul(DAY), cell),
        T::Date64 => points::<Date64Type>(array, |millis| millis.checked_mul(1000), cell),
        T::Timestamp(TimeUnit::Second, _) => {
            points::<TimestampSecondType>(array, |seconds| seconds.checked_mul(1_000_000), cell)
        }
        T::Timestamp(TimeUnit::Millisecond, _) => {
            points::<TimestampMillisecondType>(array, |millis| millis.checked_mul(1000), cell)
        }
        T::Timestamp(TimeUnit::Microsecond, _) => points::<TimestampMicrosecondType>(array, Some, cell),
        T::Timestamp(TimeUnit::Nanosecond, _) => {
            let micros = |nanos: i64| {
                seen.finer |= nanos % 1000 != 0;
                Some(nanos.div_euclid(1000))
            };
            points::<TimestampNanosecondType>(array, micros, cell)
        }
        other => Err(unforeseen(other)),
    }
}

fn points<T: ArrowPrimitiveType>(
    array: &dyn Array,
    mut micros: impl FnMut(T::Native) -> Option<i64>,
    mut cell: impl FnMut(Option<i64>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    for (row, stored) in array.as_primitive::<T>().iter().enumerate() {
        let at = stored.map(|stored| (stored, micros(stored).filter(|at| date::is_held(*at))));
        match at {
            None => cell(None),
            Some((_, Some(at))) => cell(Some(at)),
            Some((_, None)) => Err(Fault::new("must be in the years 0 to 9999", "write it as missing")),
        }
        .map_err(|fault| {
            let value = at.map_or(String::new(), |(stored, _)| format!("{stored:?} since 1970"));
            Bad { row, value, fault }
        })?;
    }
    Ok(())
}

/// Calls `cell` with each cell as text, or with `None` for a missing cell.
pub(super) fn each_text(
    array: &dyn Array,
    mut cell: impl FnMut(Option<&str>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    use DataType as T;
    match array.data_type() {
        T::Null => strings(std::iter::repeat_n(None, array.len()), cell),
        T::Utf8 => strings(array.as_string::<i32>().iter(), cell),
        T::LargeUtf8 => strings(array.as_string::<i64>().iter(), cell),
        T::Utf8View => strings(array.as_string_view().iter(), cell),
        T::Binary => bytes(array.as_binary::<i32>().iter(), cell),
        T::LargeBinary => bytes(array.as_binary::<i64>().iter(), cell),
        T::BinaryView => bytes(array.as_binary_view().iter(), cell),
        T::Boolean => {
            let name = |value: bool| if value { "true" } else { "false" };
            strings(array.as_boolean().iter().map(|value| value.map(name)), cell)
        }
        T::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let names = texts(&**dictionary.values())?;
            let keys = if names.is_empty() { vec![0; array.len()] } else { dictionary.normalized_keys() };
            let name = |row: usize| {
                let name = names.get(keys[row]).and_then(Option::as_deref);
                name.filter(|_| !dictionary.keys().is_null(row))
            };
            strings((0..array.len()).map(name), cell)
        }
        T::Date32 | T::Date64 | T::Timestamp(..) => {
            each_date(array, &mut Seen::default(), |at| cell(at.map(date::text).as_deref()))
        }
        T::Int64 => printed::<Int64Type>(array, cell, |value| Some(value.to_string())),
        T::UInt64 => printed::<UInt64Type>(array, cell, |value| Some(value.to_string())),
        T::Float32 => {
            printed::<Float32Type>(array, cell, |value| (!value.is_nan()).then(|| value.to_string()))
        }
        T::Decimal128(..) => decimal_texts::<Decimal128Type>(array, cell),
        T::Decimal256(..) => decimal_texts::<Decimal256Type>(array, cell),
        _ => {
            let mut values = Vec::new();
            numbers(array, &mut values, &mut Seen::default())?;
            let texts = values.iter().map(|value| (!value.is_nan()).then(|| number::text(*value)));
            owned(texts, cell)
        }
    }
}

fn texts(array: &dyn Array) -> Result<Vec<Option<String>>, Bad> {
    let mut texts = Vec::with_capacity(array.len());
    each_text(array, |text| {
        texts.push(text.map(String::from));
        Ok(())
    })?;
    Ok(texts)
}

fn strings<'a>(
    texts: impl Iterator<Item = Option<&'a str>>,
    mut cell: impl FnMut(Option<&str>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    for (row, text) in texts.enumerate() {
        cell(text).map_err(|fault| Bad { row, value: text.unwrap_or_default().into(), fault })?;
    }
    Ok(())
}

fn owned(
    texts: impl Iterator<Item = Option<String>>,
    mut cell: impl FnMut(Option<&str>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    for (row, text) in texts.enumerate() {
        cell(text.as_deref()).map_err(|fault| Bad { row, value: text.unwrap_or_default(), fault })?;
    }
    Ok(())
}

fn bytes<'a>(
    cells: impl Iterator<Item = Option<&'a [u8]>>,
    mut cell: impl FnMut(Option<&str>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    for (row, bytes) in cells.enumerate() {
        let text = bytes.map(std::str::from_utf8).transpose().map_err(|error| {
            let rule = format!("must be valid UTF-8; byte {} of the cell is not", error.valid_up_to() + 1);
            let value = String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            Bad { row, value, fault: Fault::new(rule, "write the column as text, or add it to `drop`") }
        })?;
        cell(text).map_err(|fault| Bad { row, value: text.unwrap_or_default().into(), fault })?;
    }
    Ok(())
}

fn printed<T: ArrowPrimitiveType>(
    array: &dyn Array,
    cell: impl FnMut(Option<&str>) -> Result<(), Fault>,
    text: impl Fn(T::Native) -> Option<String>,
) -> Result<(), Bad> {
    owned(array.as_primitive::<T>().iter().map(|value| value.and_then(&text)), cell)
}

fn decimal_texts<T: ArrowPrimitiveType + DecimalType>(
    array: &dyn Array,
    cell: impl FnMut(Option<&str>) -> Result<(), Fault>,
) -> Result<(), Bad> {
    let cells = array.as_primitive::<T>();
    owned((0..cells.len()).map(|row| (!cells.is_null(row)).then(|| cells.value_as_string(row))), cell)
}

/// Returns the error for an array whose type differs from the type of its column, which means a damaged file.
fn unforeseen(found: &DataType) -> Bad {
    let fault = Fault::new("must have the column's type", "the file is damaged; write it again");
    Bad { row: 0, value: found.to_string(), fault }
}
