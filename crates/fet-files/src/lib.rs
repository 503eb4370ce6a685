//! Files that are whole or absent, journals that only grow, and SHA-256 checksums of bytes and of files.
//!
//! Every file that the workspace's programs leave behind is written here. What is in a file is no concern of this crate.

mod atomic;
mod checksum;
mod journal;

pub use atomic::{write, write_private, write_with};
pub use checksum::{hex, sha256, sha256_of_file};
pub use journal::{Journal, JournalError, PAYLOAD};
