//! Failures of the download and the preparation.

use std::path::PathBuf;

use thiserror::Error;

/// Failure of `fet data get`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BenchmarkError {
    /// No problem has this name.
    #[error("no problem is called {name:?}{hint}; `fet data list` shows all names")]
    UnknownProblem {
        /// Requested name.
        name: String,
        /// Suggestion of a similar name, or empty.
        hint: String,
    },
    /// Address of an index that cannot be used.
    #[error("the index {index:?}: {problem}. Name an index such as https://pypi.org/simple with --index")]
    Index {
        /// Address as the user gave it, without a password.
        index: String,
        /// Problem with the address.
        problem: String,
    },
    /// The index or the package cannot be reached.
    #[error(
        "{url}: {problem}. Try again later, name another index with --index, or save {file} in a folder and name it with --from"
    )]
    Unreachable {
        /// Requested address.
        url: String,
        /// Cause.
        problem: String,
        /// Name of the package's file.
        file: String,
    },
    /// The index does not hold the version of the package.
    #[error(
        "{url}: the index does not list {file}. Name another index with --index, or a folder that holds the file with --from"
    )]
    NotListed {
        /// Address of the package's page.
        url: String,
        /// Name of the package's file.
        file: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {problem}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Problem and advice.
        problem: String,
    },
    /// The content is not the expected one.
    #[error("{place}: the SHA-256 checksum is {found}; expected {expected}. {advice}")]
    Checksum {
        /// File or address.
        place: String,
        /// Checksum of the content.
        found: String,
        /// Checksum that the problem declares.
        expected: String,
        /// Advice.
        advice: &'static str,
    },
    /// A package's content does not have the expected form.
    #[error("{place}: {problem}")]
    Content {
        /// File, and its member.
        place: String,
        /// Problem.
        problem: String,
    },
    /// The problem cannot be prepared as requested.
    #[error("{0}")]
    Request(String),
}

impl BenchmarkError {
    /// Returns true if a later attempt may succeed.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}
