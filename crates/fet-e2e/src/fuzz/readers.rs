//! Readers under test, with the properties that each must have.

#[cfg(feature = "columnar")]
mod columnar;
mod delimited;
mod frame;
mod json;
mod settings;
mod source;
mod state;

use super::{Outcome, Reader};

/// All readers.
pub const ALL: &[Reader] = &[
    Reader { name: "toml", sound: settings::experiments, ends: Some(&['=', ',']), read: settings::toml },
    Reader { name: "set", sound: settings::assignments, ends: Some(&['=', '.', ',']), read: settings::set },
    Reader { name: "csv", sound: delimited::tables, ends: Some(&[',', '"']), read: delimited::read },
    #[cfg(feature = "columnar")]
    Reader { name: "parquet", sound: columnar::parquet, ends: None, read: columnar::read },
    #[cfg(feature = "columnar")]
    Reader { name: "arrow", sound: columnar::arrow, ends: None, read: columnar::read },
    Reader { name: "idx", sound: source::images, ends: None, read: source::idx },
    Reader { name: "libsvm", sound: source::rows, ends: Some(&[' ', ':']), read: source::libsvm },
    Reader { name: "checkpoint", sound: state::states, ends: None, read: state::checkpoint },
    Reader { name: "cache", sound: state::links, ends: None, read: state::cache },
    Reader { name: "json", sound: json::records, ends: Some(&[':', ',']), read: json::read },
    Reader { name: "frame", sound: frame::messages, ends: None, read: frame::read },
];

/// Converts a result to an outcome: the problem with an accepted input, if any, or the error message.
fn outcome<E: std::fmt::Display>(result: Result<Option<String>, E>) -> Outcome {
    match result {
        Ok(None) => Outcome::Accepted,
        Ok(Some(wrong)) => Outcome::Wrong(wrong),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}
