//! clkhash's linkage schema and its encoding, bit for bit: for linking with an organisation that uses clkhash.
//!
//! A linkage schema (version 3, JSON) says how each column of a table is checked, brought to one form, cut into tokens and
//! hashed into a Bloom filter, the cryptographic long-term key of Schnell, Bachteler and Reiher (2009). What this module
//! encodes under a schema and a secret equals, bit for bit, what Python's clkhash 0.18.3 encodes under them;
//! `tests/clkhash` holds keys that clkhash made. [`Schema`] is read, [`Encoder`] encodes, [`write_clks`] and [`read_clks`]
//! are the files.
//!
//! What would be encoded otherwise, or what clkhash reads past in silence, is refused and never guessed:
//!
//! - schemas of versions 1 and 2: clkhash itself converts them;
//! - properties that the schema does not know, among them `xorFolds`, which clkhash's own JSON schema has but its program
//!   never reads: `xor_folds` folds;
//! - filters that are not whole words of 64 bits, and settings beyond the limits that the messages name;
//! - regular expressions with look-around, references to groups, word boundaries or possessive parts;
//! - dates by week of the year, by time zone, or as the machine's language writes them (`%U %W %V %G %z %Z %c %x %X`);
//! - numbers compared by distance whose tokens are beyond 2^125.
//!
//! Text follows Python: lengths and q-grams count code points, and a text is upper case if making it upper case changes
//! nothing. Python 3.11 knows Unicode 14, Rust a later version: scripts newer than that may be judged otherwise, and are
//! hashed alike. UTF-16, UTF-32 and BLAKE2 follow Python on machines with the low byte first, that is nearly all.
//!
//! [`crate::clk`] is this project's own encoding; neither can be compared with the other.

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
pub use schema::{Identifier, Schema, SchemaError};
pub use serial::{ClksError, from_base64, read_clks, to_base64, write_clks};
