//! Cuts a text into pieces without cutting a record. The rules for quotes are those of the crate `csv`: a
//! quote opens a cell only as its first byte, and two quotes within a quoted cell are one. After its closing
//! quote a cell may only have spaces or tabs; otherwise it is refused.

use std::ops::Range;

/// Pieces of whole records, which together contain all rows of the text.
pub(super) struct Pieces {
    pub(super) pieces: Vec<Range<usize>>,
    /// Number of blank lines before a row; counted only on request.
    pub(super) blank: usize,
}

/// Misplaced quote.
#[derive(Debug, PartialEq)]
pub(super) enum Quote {
    /// The quote that opens at this byte is never closed.
    NeverClosed(usize),
    /// A cell continues at this byte after its closing quote.
    Within(usize),
}

/// Cuts `bytes[start..]` into pieces of about `size` bytes.
pub(super) fn cut(
    bytes: &[u8],
    start: usize,
    delimiter: u8,
    count_blank: bool,
    size: usize,
) -> Result<Pieces, Quote> {
    if count_blank || bytes[start..].contains(&b'"') {
        return cut_with_quotes(bytes, start, delimiter, size);
    }
    let (mut pieces, mut from) = (Vec::new(), start);
    while from < bytes.len() {
        let least = from.saturating_add(size).min(bytes.len());
        let end =
            bytes[least..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| least + at + 1);
        pieces.push(from..end);
        from = end;
    }
    Ok(Pieces { pieces, blank: 0 })
}

/// State of the scan within a cell.
#[derive(PartialEq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// After a quote within quotes, which either closes the cell or is the first of two.
    AfterQuote,
    /// After a space behind a closed cell.
    Closed,
}

fn cut_with_quotes(bytes: &[u8], start: usize, delimiter: u8, size: usize) -> Result<Pieces, Quote> {
    let (mut pieces, mut from) = (Vec::new(), start);
    let (mut at, mut opened, mut record) = (At::Start, start, start);
    let (mut blank, mut pending) = (0, 0);
    for (place, &byte) in bytes.iter().enumerate().skip(start) {
        at = match (at, byte) {
            (At::Quoted, b'"') => At::AfterQuote,
            (At::Quoted, _) => At::Quoted,
            (At::AfterQuote, b'"') => At::Quoted,
            (At::Start, b'"') => {
                opened = place;
                At::Quoted
            }
            (_, byte) if byte == delimiter => At::Start,
            (_, b'\r' | b'\n') => {
                let second_half = byte == b'\n' && place > start && bytes[place - 1] == b'\r';
                if place > record {
                    blank += std::mem::take(&mut pending);
                } else if !second_half {
                    pending += 1;
                }
                record = place + 1;
                if record - from >= size {
                    pieces.push(from..record);
                    from = record;
                }
                At::Start
            }
            (At::AfterQuote | At::Closed, b' ' | b'\t') => At::Closed,
            (At::AfterQuote | At::Closed, _) => return Err(Quote::Within(place)),
            _ => At::Plain,
        };
    }
    if at == At::Quoted {
        return Err(Quote::NeverClosed(opened));
    }
    if from < bytes.len() {
        pieces.push(from..bytes.len());
    }
    if record < bytes.len() {
        blank += pending;
    }
    Ok(Pieces { pieces, blank })
}
