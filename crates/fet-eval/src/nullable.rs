//! Reading numbers that JSON cannot hold, and values that may be `null` but must not be missing.
//!
//! `serde_json` writes NaN and infinities as `null`. Which of them a `null` was is known by the field.

use serde::{Deserialize, Deserializer};

/// A number; NaN where it is `null`.
pub(crate) fn nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A number; infinite where it is `null`.
pub(crate) fn infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Numbers; infinite where they are `null`.
pub(crate) fn all_infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let all: Vec<Option<f64>> = Vec::deserialize(deserializer)?;
    Ok(all.into_iter().map(|number| number.unwrap_or(f64::INFINITY)).collect())
}

/// A value or `null`. Serde takes a missing field for `null` where the type is an `Option`; with this function it does
/// not.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}
