//! Stand-in for writing Parquet and Arrow in a build without the feature `columnar`.

use crate::table::Table;

const ABSENT: &str =
    "this build cannot write Parquet or Arrow: write CSV, or build with `--features columnar`";

pub(super) fn parquet(_: &Table) -> Result<Vec<u8>, &'static str> {
    Err(ABSENT)
}

pub(super) fn arrow(_: &Table) -> Result<Vec<u8>, &'static str> {
    Err(ABSENT)
}
