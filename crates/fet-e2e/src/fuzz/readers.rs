//! Readers under test, with the properties that each must have.

#[cfg(feature = "columnar")]
mod columnar;
mod delimited;
mod frame;
mod json;
mod settings;
mod source;
mod state;

use super::contract::FuzzReader;

/// All readers.
pub const ALL: &[FuzzReader] = &[
    FuzzReader { name: "toml", sound: settings::experiments, ends: Some(&['=', ',']), read: settings::toml },
    FuzzReader {
        name: "set",
        sound: settings::assignments,
        ends: Some(&['=', '.', ',']),
        read: settings::set,
    },
    FuzzReader { name: "csv", sound: delimited::tables, ends: Some(&[',', '"']), read: delimited::read },
    #[cfg(feature = "columnar")]
    FuzzReader { name: "parquet", sound: columnar::parquet, ends: None, read: columnar::read },
    #[cfg(feature = "columnar")]
    FuzzReader { name: "arrow", sound: columnar::arrow, ends: None, read: columnar::read },
    FuzzReader { name: "idx", sound: source::images, ends: None, read: source::idx },
    FuzzReader { name: "libsvm", sound: source::rows, ends: Some(&[' ', ':']), read: source::libsvm },
    FuzzReader { name: "checkpoint", sound: state::states, ends: None, read: state::checkpoint },
    FuzzReader { name: "cache", sound: state::links, ends: None, read: state::cache },
    FuzzReader { name: "json", sound: json::records, ends: Some(&[':', ',']), read: json::read },
    FuzzReader { name: "frame", sound: frame::messages, ends: None, read: frame::read },
];

impl FuzzReader {
    /// Returns the reader with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|reader| reader.name == name)
    }
}
