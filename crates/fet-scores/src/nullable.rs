//! Deserialization of fields that can be `null` but must be present.
//!
//! This module repeats a function of `fet-records`, which depends on this crate.

use serde::{Deserialize, Deserializer};

/// Reads a value or `null`. By default, serde accepts a missing field of type `Option`; this function refuses
/// it.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}
