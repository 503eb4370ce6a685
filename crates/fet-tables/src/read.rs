//! Reads a table from a path or a reader: detects the format and calls the reader of that format.

use std::io::Read;
use std::path::Path;

use crate::arrow::{self, Source};
use crate::delimited;
use crate::delimited::content::Content;
use crate::error::TableError;
use crate::format::{self, Format};
use crate::options::Options;
use crate::table::Table;

/// Size of a file, compressed or not, from which its text is not held in memory.
const LARGE: u64 = 1 << 23;

/// Reads the table in the file `path`: CSV or TSV, plain or in `.gz` or `.zst`, Parquet, or Arrow IPC.
///
/// A Parquet file is read column by column from the disk, and a large text file in pieces, several times. Any other
/// file is held in memory while it is read.
///
/// # Errors
/// Fails if the file is absent or damaged, or does not match `options`. The message names the place and gives
/// advice.
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
    if path.metadata().map_err(unreadable)?.len() >= LARGE
        && let Some(table) = read_large(path, &file, named, options)?
    {
        return Ok(table);
    }
    from_bytes(format::bytes_of(fet_io::open(path).map_err(unreadable)?, &file)?, &file, named, options)
}

/// Reads a large text file in pieces. Returns `None` for other formats, and for a text whose header is very long.
fn read_large(
    path: &Path,
    file: &str,
    named: Option<Format>,
    options: &Options,
) -> Result<Option<Table>, TableError> {
    let mut notes = Vec::new();
    let content = Content::file(path, file)?;
    match Format::of_bytes(&content.start(), file, named, &mut notes)? {
        Format::Csv if delimited::is_header_in_head(&content, options) => {
            with_notes(notes, delimited::read(&content, file, options, delimited::PIECE)).map(Some)
        }
        _ => Ok(None),
    }
}

/// Reads the table in `bytes`, the content of the file `path` at some time. The formats are those of
/// [`read`], plain or compressed.
///
/// # Errors
/// Same as [`read`].
pub fn read_bytes(bytes: &[u8], path: &Path, options: &Options) -> Result<Table, TableError> {
    let file = path.display().to_string();
    from_bytes(format::bytes_of(bytes, &file)?, &file, Format::of_name(path), options)
}

/// Reads a table from `reader`, such as standard input. The formats are those of [`read`], plain or
/// compressed. `format` is the format of the table; `None` detects it from the first bytes. The function
/// holds the whole input in memory.
///
/// # Errors
/// Same as [`read`]; messages call the file "standard input".
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
        Format::Csv => delimited::read(&Content::memory(&bytes, file)?, file, options, delimited::PIECE),
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
