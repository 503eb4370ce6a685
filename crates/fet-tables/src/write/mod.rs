//! Writes a table atomically to a file. [`read`](crate::read()) gives back the same table, with three
//! exceptions: kinds that text cannot express (a category of numerals), categories that no row has, and texts
//! that are marks of missing cells.

#[cfg(feature = "columnar")]
mod batches;
#[cfg(not(feature = "columnar"))]
#[path = "absent.rs"]
mod batches;
mod csv;

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::{Fault, Place, TableError};
use crate::table::{Column, Table, Values};

/// Writes `table` to `path`. The extension decides on the format: `.csv`, `.tsv`, either with `.gz`,
/// `.parquet` (zstd), or `.arrow` and `.feather`. Missing cells are empty, and numbers read back to the same
/// number. A concurrent reader sees either the old file or the new file.
///
/// Parquet and Arrow are built in memory before they are written.
///
/// # Errors
/// Fails for another extension, for a table with inconsistent columns or an infinite number, and if the disk
/// refuses the file.
pub fn write(path: &Path, table: &Table) -> Result<(), TableError> {
    let file = path.display().to_string();
    check(&file, table)?;
    match encode(path, &file, table)? {
        Encoded::Text { delimiter, compressed } => text(path, &file, table, delimiter, compressed),
        Encoded::Bytes(bytes) => {
            fet_io::write_with(path, |out| out.write_all(&bytes)).map_err(|error| unwritten(&file, &error))
        }
    }
}

/// Refuses a file name whose extension [`write()`] does not support.
///
/// # Errors
/// Same as [`write()`].
pub fn check_name(path: &Path) -> Result<(), TableError> {
    let column = Column { name: "x".into(), values: Values::Number(Vec::new()) };
    encode(path, &path.display().to_string(), &Table::new(vec![column])?).map(|_| ())
}

/// Writes `table` as CSV.
///
/// # Errors
/// Fails for inconsistent columns, for an infinite number, and if `out` fails.
pub fn write_csv(out: &mut dyn Write, table: &Table) -> Result<(), TableError> {
    let file = "standard output";
    check(file, table)?;
    csv::write(out, table, b',').map_err(|error| unwritten(file, &error))
}

/// Returns the bytes of an Arrow file with `table`.
///
/// # Errors
/// Fails for a table with inconsistent columns or an infinite number, and in a build without the feature `columnar`.
pub fn arrow_bytes(table: &Table) -> Result<Vec<u8>, TableError> {
    let file = "an Arrow file in memory";
    check(file, table)?;
    batches::arrow(table).map_err(|error| TableError::file(file, format!("cannot be encoded: {error}")))
}

/// Encoding of a table.
enum Encoded {
    Text { delimiter: u8, compressed: bool },
    Bytes(Vec<u8>),
}

/// Encodes a table according to the extension of the name.
fn encode(path: &Path, file: &str, table: &Table) -> Result<Encoded, TableError> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let (stem, compressed) = match name.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (name.as_str(), false),
    };
    let bytes = match (Path::new(stem).extension().and_then(|ending| ending.to_str()), compressed) {
        (Some("csv"), _) => return Ok(Encoded::Text { delimiter: b',', compressed }),
        (Some("tsv"), _) => return Ok(Encoded::Text { delimiter: b'\t', compressed }),
        (Some("parquet"), false) => batches::parquet(table).map_err(|error| error.to_string()),
        (Some("arrow" | "feather"), false) => batches::arrow(table).map_err(|error| error.to_string()),
        _ => {
            let problem = "is not a supported name for a table; it must end in .csv, .tsv, .csv.gz, .tsv.gz, .parquet, \
                           .arrow or .feather";
            return Err(TableError::file(file, problem));
        }
    }
    .map_err(|error| TableError::file(file, format!("cannot be encoded: {error}")))?;
    Ok(Encoded::Bytes(bytes))
}

fn text(path: &Path, file: &str, table: &Table, delimiter: u8, compressed: bool) -> Result<(), TableError> {
    let fill = |out: &mut dyn Write| -> io::Result<()> {
        if !compressed {
            return csv::write(out, table, delimiter);
        }
        let mut encoder = GzEncoder::new(out, Compression::default());
        csv::write(&mut encoder, table, delimiter)?;
        encoder.finish().map(|_| ())
    };
    fet_io::write_with(path, fill).map_err(|error| unwritten(file, &error))
}

fn unwritten(file: &str, error: &io::Error) -> TableError {
    TableError::file(file, format!("cannot be written: {error}"))
}

/// Checks the invariants of a table, whose fields are public.
fn check(file: &str, table: &Table) -> Result<(), TableError> {
    let mut names = HashSet::new();
    for column in &table.columns {
        let refuse = |problem: String| Err(TableError::column(file, &column.name, problem));
        if column.values.len() != table.rows {
            return refuse(format!("has {} rows; the table has {}", column.values.len(), table.rows));
        }
        if !names.insert(&column.name) {
            return refuse("appears twice in the table (rename one)".into());
        }
        if let Values::Number(values) = &column.values
            && let Some(row) = values.iter().position(|value| value.is_infinite())
        {
            let fault = Fault::new("must be a finite number", "a missing number is NaN");
            let value = values[row].to_string();
            return Err(TableError::cell(file, Place::Row(row as u64), &column.name, &value, fault));
        }
    }
    if table.columns.is_empty() {
        return Err(TableError::file(file, "cannot be written: the table is without columns"));
    }
    Ok(())
}
