//! From a path or a reader to a table: finds the form and calls its reader. It computes nothing.

use std::io::Read;
use std::path::Path;

use crate::arrow::{self, Source};
use crate::delimited;
use crate::error::TableError;
use crate::format::{self, Format};
use crate::options::Options;
use crate::table::Table;

/// Reads the table in the file `path`: CSV or TSV, plain or in `.gz` or `.zst`, Parquet, or Arrow IPC.
///
/// A Parquet file is read column by column from the disk; any other is held in memory while it is read.
///
/// # Errors
/// The file is absent, damaged, or no table as `options` want it; the message says where and what to do.
pub fn read(path: &Path, options: &Options) -> Result<Table, TableError> {
    let file = path.display().to_string();
    let unreadable = |error: std::io::Error| TableError::file(&file, format!("cannot be read: {error}"));
    let named = Format::of_name(path);
    // A pipe can be read only once.
    if !path.metadata().map_err(unreadable)?.is_file() {
        return from_bytes(
            format::bytes_of(fet_io::open(path).map_err(unreadable)?, &file)?,
            &file,
            named,
            options,
        );
    }
    let (start, compressed) = format::start_of(path).map_err(unreadable)?;
    if !compressed {
        let mut notes = Vec::new();
        if Format::of_bytes(&start, &file, named, &mut notes)? == Format::Parquet {
            return with_notes(notes, arrow::read_parquet(&Source::Path(path), &file, options));
        }
    }
    from_bytes(format::bytes_of(fet_io::open(path).map_err(unreadable)?, &file)?, &file, named, options)
}

/// Reads the table in `bytes`, which are those of the file `path` at one time, in the same forms, plain or compressed.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(bytes: &[u8], path: &Path, options: &Options) -> Result<Table, TableError> {
    let file = path.display().to_string();
    from_bytes(format::bytes_of(bytes, &file)?, &file, Format::of_name(path), options)
}

/// Reads the table that `reader` gives, such as standard input, in the same forms, plain or compressed. `format` is its
/// form, or none to go by its first bytes. All of it is held in memory.
///
/// # Errors
/// As [`read`]; messages call the file "standard input".
pub fn read_from(reader: impl Read, format: Option<Format>, options: &Options) -> Result<Table, TableError> {
    let file = "standard input";
    from_bytes(format::bytes_of(reader, file)?, file, format, options)
}

fn from_bytes(
    bytes: Vec<u8>,
    file: &str,
    named: Option<Format>,
    options: &Options,
) -> Result<Table, TableError> {
    let mut notes = Vec::new();
    let table = match Format::of_bytes(&bytes, file, named, &mut notes)? {
        Format::Csv => delimited::read(&bytes, file, options, delimited::PIECE),
        Format::Parquet => arrow::read_parquet(&Source::Bytes(bytes.into()), file, options),
        Format::ArrowFile => arrow::read_file(&bytes, file, options),
        Format::ArrowStream => arrow::read_stream(&bytes, file, options),
    };
    with_notes(notes, table)
}

fn with_notes(mut notes: Vec<String>, table: Result<Table, TableError>) -> Result<Table, TableError> {
    table.map(|mut table| {
        notes.append(&mut table.notes);
        table.notes = notes;
        table
    })
}
