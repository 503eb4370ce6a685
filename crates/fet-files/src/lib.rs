//! Files that are whole or absent, journals that only grow, SHA-256 checksums of bytes and of files, streams that may close, and names
//! that were mistyped.
//!
//! Every file that the workspace's programs leave behind is written here. What is in a file is no concern of this crate.

mod atomic;
mod checksum;
mod journal;
mod names;
mod streams;
mod whole;

pub use atomic::{check_writable, leave, sweep, write, write_private, write_with};
pub use checksum::{hex, sha256, sha256_of_file};
pub use journal::{Journal, JournalError, PAYLOAD};
pub use names::{did_you_mean, experiment, similar_experiment};
pub use streams::{answer, note_line, plain};
pub use whole::{open, read, read_to_string};
