//! clkhash's linkage schema and its encoding, bit for bit, for linking with an organisation that uses
//! clkhash.
//!
//! A linkage schema (version 3, JSON) describes how each column of a table is checked, normalised, split into
//! tokens and hashed into a Bloom filter, the cryptographic long-term key of Schnell, Bachteler and Reiher
//! (2009). Under a given schema and secret, this module and Python's clkhash 0.18.3 produce equal bits. The
//! folder `tests/clkhash` contains keys made by clkhash. [`Schema`] is the parsed schema, [`Encoder`]
//! encodes, and [`write_clks`] and [`read_clks`] handle the files.
//!
//! The module refuses anything that it would encode differently, and anything that clkhash ignores silently:
//!
//! - schemas of versions 1 and 2, which clkhash itself can convert;
//! - unknown properties, among them `xorFolds`, which clkhash's own JSON schema has but its program never
//!   reads (the property that folds is `xor_folds`);
//! - filters that do not consist of whole words of 64 bits, and settings beyond the limits that the messages
//!   name;
//! - regular expressions with look-around, references to groups, word boundaries or possessive parts;
//! - dates by week of the year, by time zone, or in the machine's locale (`%U %W %V %G %z %Z %c %x %X`);
//! - numbers compared by distance whose tokens are beyond 2^125.
//!
//! Text follows Python: lengths and q-grams count code points, and a text is upper case if converting it to
//! upper case changes nothing. Python 3.11 has Unicode 14, and Rust has a later version. The case of letters
//! in newer scripts may therefore differ, but their hashes do not. UTF-16, UTF-32 and BLAKE2 follow Python on
//! little-endian machines, which is nearly all of them.
//!
//! [`crate::clk`] is this project's own encoding. Keys of the two encodings cannot be compared.

mod schema;

mod compare;
mod date;
mod encode;
mod feature;
mod format;
mod hash;
mod json;
mod pattern;
mod python;
mod serial;

pub use encode::{Encoder, ValueError};
pub use json::SchemaError;
pub use schema::{Identifier, Schema};
pub use serial::{ClksError, from_base64, read_clks, to_base64, write_clks};
