//! Fuzz tests of every reader of bytes.
//!
//! Each input is a valid input with seeded changes, identified by its reader, seed and number. The fuzzer
//! calls a reader as the program does. It compares an accepted input with an independent reading of the same
//! bytes. For formats with a checksum, it compares with the written values. The changes are blind: they do
//! not use the reader's code coverage.

#[cfg(unix)]
pub mod campaign;
#[cfg(unix)]
pub mod command;
mod contract;
pub mod readers;

use crate::message;

pub use contract::{FuzzReader, ReaderOutcome};

/// Returns the problem with a message for people, if any: the message is empty, or it exposes internals of
/// the program.
pub fn unclear(message: &str) -> Option<&'static str> {
    if message.trim().is_empty() { Some("it is empty") } else { message::jargon(message).next() }
}
