//! Arrays inside a message: one length followed by raw little-endian words, never element by element.
//!
//! A decoder compares the length with the available bytes before it allocates, and allocates at most that
//! number of bytes. Use the module as `#[serde(with = "array")]`.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::Pod;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

/// A word with the same little-endian bytes in memory and in a message.
pub(crate) trait Word: Pod {
    /// Converts the value between the byte order of this machine and the byte order of a message.
    fn turned(self) -> Self;
}

macro_rules! words {
    ($($word:ty => $turn:expr;)*) => {
        $(impl Word for $word {
            fn turned(self) -> Self {
                $turn(self)
            }
        })*
    };
}

words! {
    u8 => |x: u8| x;
    u32 => u32::to_le;
    u64 => u64::to_le;
    i64 => i64::to_le;
    f32 => |x: f32| f32::from_bits(x.to_bits().to_le());
    f64 => |x: f64| f64::from_bits(x.to_bits().to_le());
}

/// Writes the words of `values`.
pub(crate) fn serialize<T: Word, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    if cfg!(target_endian = "little") {
        return serializer.serialize_bytes(bytemuck::cast_slice(values));
    }
    let turned: Vec<T> = values.iter().map(|value| value.turned()).collect();
    serializer.serialize_bytes(bytemuck::cast_slice(&turned))
}

/// Reads words; refuses bytes that do not fill whole words.
pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_bytes(Words(PhantomData))
}

struct Words<T>(PhantomData<T>);

impl<T: Word> Visitor<'_> for Words<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "words of {} bytes", size_of::<T>())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        if !bytes.len().is_multiple_of(size_of::<T>()) {
            let problem = format!("{} bytes do not fill words of {}", bytes.len(), size_of::<T>());
            return Err(E::custom(problem));
        }
        let mut values: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
        if cfg!(target_endian = "big") {
            values.iter_mut().for_each(|value| *value = value.turned());
        }
        Ok(values)
    }
}
