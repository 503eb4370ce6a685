//! Atomic files, append-only journals, SHA-256 checksums, standard streams that may close, and suggestions for mistyped names.
//!
//! All programs of the workspace write their files through this crate, and report invalid input and exit codes in the same way.

mod atomic;
pub mod chain;
mod checksum;
mod excerpt;
pub mod exit;
pub mod input;
mod journal;
mod lines;
pub mod memory;
mod names;
pub mod output;
mod streams;
mod whole;

pub use atomic::{check_writable, leave, sweep, write, write_private, write_with};
pub use checksum::{hex, sha256, sha256_of_file};
pub use excerpt::{Mark, excerpt, holds_key};
pub use journal::{Journal, JournalError, PAYLOAD};
pub use lines::{Lines, LinesError};
pub use names::{did_you_mean, experiment, similar_experiment};
pub use streams::{Notes, answer, choose_notes, note_line, plain, send_notes, shorten};
pub use whole::{open, read, read_to_string};

/// The example of the README, as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
