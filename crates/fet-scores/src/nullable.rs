//! Reading values that may be `null` but must not be missing.
//!
//! It repeats a function of `fet-records`, which depends on this crate.

use serde::{Deserialize, Deserializer};

/// A value or `null`. Serde takes a missing field for `null` where the type is an `Option`; with this function it does
/// not.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}
