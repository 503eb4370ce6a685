//! Stand-in for Parquet and Arrow in a build without the feature `columnar`. It returns an error that tells
//! the user how to enable the feature.

use std::path::Path;

use crate::error::TableError;
use crate::options::Options;
use crate::table::Table;

/// Location of a Parquet file.
pub(crate) enum Source<'a> {
    #[expect(dead_code, reason = "as where Parquet is read")]
    Path(&'a Path),
    Bytes(Dropped),
}

/// Placeholder for the bytes of a file, which this build does not read.
pub(crate) struct Dropped;

impl From<Vec<u8>> for Dropped {
    fn from(_: Vec<u8>) -> Self {
        Self
    }
}

fn absent(file: &str) -> Result<Table, TableError> {
    let problem = "is a Parquet or Arrow file, which this build cannot read; build with `--features columnar`, or convert the \
                   file to CSV (as with duckdb or pandas)";
    Err(TableError::file(file, problem))
}

pub(crate) fn read_parquet(source: &Source<'_>, file: &str, _: &Options) -> Result<Table, TableError> {
    match source {
        Source::Path(_) | Source::Bytes(_) => absent(file),
    }
}

pub(crate) fn read_file(_: &[u8], file: &str, _: &Options) -> Result<Table, TableError> {
    absent(file)
}

pub(crate) fn read_stream(_: &[u8], file: &str, _: &Options) -> Result<Table, TableError> {
    absent(file)
}
