//! Header of a text file: the names of the columns.

use std::collections::HashSet;
use std::io::Read;

use csv::{ByteRecord, ReaderBuilder};

use crate::error::{Place, TableError};
use crate::number::number;

/// Prefix of each piece. The crate `csv` removes a leading U+FEFF from its input; the prefix protects such a
/// character in the first cell.
pub(super) const BLANK: &[u8] = b"\n";

/// Names of the columns, and the offset at which the rows begin.
pub(super) struct Header {
    pub(super) names: Vec<String>,
    pub(super) end: usize,
}

/// Returns the delimiter of a spreadsheet's hint (`sep=;` on a separate line before the header), and the
/// offset of the header.
pub(super) fn hint(bytes: &[u8]) -> Option<(u8, usize)> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes[..end].trim_ascii_end();
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    match line {
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] => Some((*delimiter, end + 1)),
        // Trimming has removed a tab at the end of the line.
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'='] if bytes[..end].contains(&b'\t') => {
            Some((b'\t', end + 1))
        }
        _ => None,
    }
}

/// Reads the first record. Names are trimmed; an empty name becomes `column_N`, with a note.
pub(super) fn read(
    bytes: &[u8],
    start: usize,
    file: &str,
    delimiter: u8,
    notes: &mut Vec<String>,
) -> Result<Header, TableError> {
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(BLANK.chain(&bytes[start..]));
    let mut record = ByteRecord::new();
    let found = reader
        .read_byte_record(&mut record)
        .map_err(|error| TableError::file(file, format!("cannot be read: {error}")))?;
    if !found || record.iter().all(|name| name.trim_ascii().is_empty()) {
        let problem = "lacks a header; its first line must give the names of the columns";
        return Err(TableError::file(file, problem));
    }
    let bad = |problem: String| TableError::Row { file: file.into(), place: Place::Line(1), problem };
    let mut names = Vec::with_capacity(record.len());
    let mut seen = HashSet::new();
    for (name, place) in record.iter().zip(1..) {
        let name = std::str::from_utf8(name).map_err(|_| {
            bad(format!("the name of column {place} is not valid UTF-8 (save the file as UTF-8)"))
        })?;
        let mut name = name.trim().to_string();
        if name.is_empty() {
            name = format!("column_{place}");
            notes.push(format!("column {place} lacks a name in the header; it is called `{name}` here"));
        }
        if !seen.insert(name.clone()) {
            return Err(bad(format!("two columns are called `{name}` (rename one)")));
        }
        names.push(name);
    }
    match names.iter().filter(|name| number(name).is_some()).count() {
        all if all == names.len() => {
            notes.push("every name in the header is a number; if the file has no header, add one".into());
        }
        some if 2 * some >= names.len() => notes.push(format!(
            "{some} of {} names in the header are numbers; if the file has no header, add one",
            names.len()
        )),
        _ => {}
    }
    Ok(Header { names, end: start + reader.position().byte() as usize - BLANK.len() })
}
