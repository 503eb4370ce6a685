//! Sealed content of a record: the number of the data holder's row, and some of its cells.

use std::collections::HashSet;

use fet_io::input::input;

/// Columns before the data holder's columns in the output.
pub(super) const COLUMNS: [&str; 4] = ["primary_row", "secondary_row", "rank", "similarity"];

/// Encodes the number of a row and its cells: four bytes, then each cell's length in four bytes and its text.
pub(super) fn write(row: usize, cells: &[String]) -> Vec<u8> {
    let mut bytes = (row as u32).to_le_bytes().to_vec();
    for cell in cells {
        bytes.extend_from_slice(&(cell.len() as u32).to_le_bytes());
        bytes.extend_from_slice(cell.as_bytes());
    }
    bytes
}

/// Decodes a payload; returns `None` unless it is a row below `rows` with `cells` cells. Another party wrote
/// the bytes.
pub(super) fn read(bytes: &[u8], rows: usize, cells: usize) -> Option<(u32, Vec<&str>)> {
    let (row, mut rest) = number(bytes)?;
    let mut found = Vec::new();
    for _ in 0..cells {
        let (length, after) = number(rest)?;
        let (cell, after) = after.split_at_checked(length as usize)?;
        found.push(std::str::from_utf8(cell).ok()?);
        rest = after;
    }
    ((row as usize) < rows && rest.is_empty()).then_some((row, found))
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// Refuses columns that the output could not distinguish.
pub(super) fn check(columns: &[String]) -> anyhow::Result<()> {
    let mut seen: HashSet<&str> = COLUMNS.into_iter().collect();
    match columns.iter().find(|column| !seen.insert(column)) {
        None => Ok(()),
        Some(twice) if COLUMNS.contains(&twice.as_str()) => {
            Err(input(format!("--payload {twice}: is also a column of the links; rename it in the table")))
        }
        Some(twice) => Err(input(format!("--payload {twice}: is named twice; name each column once"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_rows_as_written() {
        let cells = ["a".to_string(), String::new(), "zwölf".to_string()];
        let bytes = write(7, &cells);
        assert_eq!(read(&bytes, 8, 3), Some((7, vec!["a", "", "zwölf"])));
        assert_eq!(write(7, &[]).len(), 4);
        for (rows, columns) in [(7, 3), (8, 2), (8, 4)] {
            assert_eq!(read(&bytes, rows, columns), None, "{rows} rows, {columns} columns");
        }
        assert!((0..bytes.len()).all(|end| read(&bytes[..end], 8, 3).is_none()));
        assert_eq!(read(&[7, 0, 0, 0, 1, 0, 0, 0, 0xff], 8, 1), None, "no text");
        assert_eq!(read(&[7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], 8, 1), None, "no such length");
    }
}
