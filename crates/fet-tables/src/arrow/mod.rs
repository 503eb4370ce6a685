//! Parquet and Arrow files. The types of their columns are kept: a text column of the file becomes numbers
//! only if the caller asks for it. Nested columns are refused by name.

mod cells;
mod column;
mod ipc;
mod parquet;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_schema::SchemaRef;
use rayon::prelude::*;

use crate::error::TableError;
use crate::options::Options;
use crate::select::{nothing_but_missing, wanted};
use crate::table::Table;
use column::ArrowColumn;

pub(crate) use ipc::{read_file, read_stream};
pub(crate) use parquet::{Source, read_parquet};

/// Runs a third-party reader and turns its panics into errors. The readers check most input, but not all:
/// about 60 of the 6,000 damaged Parquet and Arrow files in `tests/it/mutations.rs` make them panic, mostly at
/// an offset beyond the end of an Arrow file. The panic's own message still goes to standard error.
fn guarded<T>(file: &str, read: impl FnOnce() -> Result<T, TableError>) -> Result<T, TableError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(TableError::file(
            file,
            "is damaged: its reader stopped at an impossible value (write the file again)",
        ))
    })
}

/// Returns the error for a failure of a third-party reader. The message quotes the reader only if it names an
/// unsupported feature. For damaged bytes, the reader would only mention its internal types.
fn damaged(file: &str, error: impl std::fmt::Display) -> TableError {
    let error = error.to_string();
    let lower = error.to_lowercase();
    let says_what = ["support", "feature", "implemented", "compression", "encrypt"]
        .iter()
        .any(|word| lower.contains(word));
    let why = if says_what { format!(" ({error})") } else { String::new() };
    TableError::file(
        file,
        format!("is damaged, truncated, or of an unsupported kind{why}: write the file again"),
    )
}

/// Returns the wanted columns, still empty, with their indices in the file.
fn columns<'a>(
    schema: &SchemaRef,
    file: &'a str,
    options: &'a Options,
) -> Result<Vec<(usize, ArrowColumn<'a>)>, TableError> {
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(TableError::column(file, twice, "appears twice in the file (rename one)"));
    }
    wanted(&names, file, options)?
        .into_iter()
        .map(|at| Ok((at, ArrowColumn::new(schema.field(at), file, options)?)))
        .collect()
}

/// Creates the table from filled columns.
fn table(columns: Vec<ArrowColumn<'_>>, file: &str, options: &Options) -> Result<Table, TableError> {
    let rows = columns.first().map_or(0, ArrowColumn::rows);
    if let Some(other) = columns.iter().find(|column| column.rows() != rows) {
        let problem =
            format!("has {} rows, but other columns have {rows}; the file is damaged", other.rows());
        return Err(TableError::column(file, other.name(), problem));
    }
    if rows == 0 {
        return Err(TableError::file(file, "has no rows"));
    }
    // A column whose kind the caller set may be empty in this table.
    let given: Vec<bool> = columns.iter().map(ArrowColumn::has_given_kind).collect();
    let finished: Vec<_> = columns.into_par_iter().map(|column| column.finish(rows)).collect();
    let (mut columns, mut notes) = (Vec::new(), Vec::new());
    for (column, mut of_column) in finished {
        columns.push(column);
        notes.append(&mut of_column);
    }
    let inferred = columns.iter().zip(given).filter(|(_, given)| !given).map(|(column, _)| column);
    let empty = inferred.filter(|column| column.values.missing() == rows);
    nothing_but_missing(file, options, empty.map(|column| column.name.as_str()))?;
    Ok(Table { columns, rows, notes, ..Table::default() })
}
