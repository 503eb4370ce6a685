//! Deserialization of numbers that JSON cannot represent, and of fields that can be `null` but must be
//! present.
//!
//! `serde_json` writes NaN and infinities as `null`. The field determines the meaning of `null`.

use serde::{Deserialize, Deserializer};

/// Reads a number, with `null` as NaN.
pub(crate) fn nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Reads a number, with `null` as infinity.
pub(crate) fn infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Reads numbers, with `null` as infinity.
pub(crate) fn all_infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let all: Vec<Option<f64>> = Vec::deserialize(deserializer)?;
    Ok(all.into_iter().map(|number| number.unwrap_or(f64::INFINITY)).collect())
}

/// Reads a value or `null`. By default, serde accepts a missing field of type `Option`; this function refuses
/// it.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}
