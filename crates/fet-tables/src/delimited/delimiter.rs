//! Detects the delimiter: the byte that gives all first rows as many cells as the header. If several bytes
//! do, the byte with the most cells wins.

use csv::{ByteRecord, ReaderBuilder};

use crate::error::TableError;

/// Candidates; the first wins a tie.
const KNOWN: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Number of bytes of the text that are examined.
const BYTES: usize = 1 << 16;
const ROWS: usize = 100;

/// Returns the given or detected delimiter, with a note if it was detected.
pub(super) fn choose(bytes: &[u8], file: &str, given: Option<u8>) -> Result<(u8, Vec<String>), TableError> {
    match given {
        Some(b'"' | b'\r' | b'\n' | 0x80..) => {
            let problem = "cannot be read with this `delimiter`: it must be an ASCII character other than a quote \
                           or a line end";
            Err(TableError::file(file, problem))
        }
        Some(delimiter) => Ok((delimiter, Vec::new())),
        None => {
            let delimiter = detect(bytes);
            Ok((delimiter, vec![format!("the delimiter is {}, as detected", name(delimiter))]))
        }
    }
}

/// Formats a delimiter for a message.
pub(super) fn name(delimiter: u8) -> String {
    match delimiter {
        b'\t' => "tab".into(),
        byte => format!("`{}`", char::from(byte)),
    }
}

fn detect(bytes: &[u8]) -> u8 {
    let start = &bytes[..bytes.len().min(BYTES)];
    let is_cut = start.len() < bytes.len();
    // `max_by_key` returns the last of several maxima, so the candidates are tried in reverse order.
    let best = KNOWN.into_iter().rev().max_by_key(|delimiter| {
        let cells = cells(start, *delimiter, is_cut);
        let header = cells.first().copied().unwrap_or(0);
        (header > 1 && cells.iter().all(|count| *count == header), header)
    });
    best.unwrap_or(b',')
}

/// Returns the number of cells in each of the first rows.
fn cells(start: &[u8], delimiter: u8, is_cut: bool) -> Vec<usize> {
    let mut reader =
        ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(start);
    let mut record = ByteRecord::new();
    let mut counts = Vec::new();
    while counts.len() < ROWS && matches!(reader.read_byte_record(&mut record), Ok(true)) {
        counts.push(record.len());
    }
    if is_cut && counts.len() > 1 && counts.len() < ROWS {
        counts.pop();
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_decide() {
        let check = |text: &str, expected: u8| {
            assert_eq!(char::from(detect(text.as_bytes())), char::from(expected), "{text:?}");
        };
        check("a,b\n1,2\n", b',');
        check("a;b\n1,5;2,5\n", b';');
        check("a;b\n\"1;5\";2\n", b';');
        check("\"a,b\";c\n1;2\n", b';');
        check("a\tb c\n1\t2, 3\n", b'\t');
        check("a|b|c\n1|2|3\n", b'|');
        check("a\n1\n", b',');
        check("a,b;c,d\n1,2;3,4\n", b',');
        check("a;b,c\n1;2\n", b';');
        check("", b',');
        let long = format!("a;b\n{}", "1,5;\"x\ny\"\n".repeat(20_000));
        check(&long, b';');
    }
}
