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
        let mut cutter = Cutter::new(start, delimiter, size);
        cutter.feed(&bytes[start..])?;
        return cutter.finish();
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
#[derive(Clone, Copy, PartialEq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// After a quote within quotes, which either closes the cell or is the first of two.
    AfterQuote,
    /// After a space behind a closed cell.
    Closed,
}

/// Cuts a text that arrives in parts.
pub(super) struct Cutter {
    delimiter: u8,
    size: usize,
    at: At,
    /// Offset of the quote that opened the present cell.
    opened: usize,
    /// Offset of the present record.
    record: usize,
    /// Offset of the present piece.
    from: usize,
    /// Offset and value of the byte before the next part; a text has none before its first byte.
    place: usize,
    previous: Option<u8>,
    blank: usize,
    pending: usize,
    pieces: Vec<Range<usize>>,
}

impl Cutter {
    /// Cuts a text whose rows begin at `start` into pieces of about `size` bytes.
    pub(super) fn new(start: usize, delimiter: u8, size: usize) -> Self {
        Self {
            delimiter,
            size,
            at: At::Start,
            opened: start,
            record: start,
            from: start,
            place: start,
            previous: None,
            blank: 0,
            pending: 0,
            pieces: Vec::new(),
        }
    }

    /// Pieces that are complete.
    pub(super) fn pieces(&self) -> &[Range<usize>] {
        &self.pieces
    }

    /// Reads the next part of the text.
    pub(super) fn feed(&mut self, part: &[u8]) -> Result<(), Quote> {
        for &byte in part {
            let place = self.place;
            self.at = match (self.at, byte) {
                (At::Quoted, b'"') => At::AfterQuote,
                (At::Quoted, _) => At::Quoted,
                (At::AfterQuote, b'"') => At::Quoted,
                (At::Start, b'"') => {
                    self.opened = place;
                    At::Quoted
                }
                (_, byte) if byte == self.delimiter => At::Start,
                (_, b'\r' | b'\n') => {
                    let second_half = byte == b'\n' && self.previous == Some(b'\r');
                    if place > self.record {
                        self.blank += std::mem::take(&mut self.pending);
                    } else if !second_half {
                        self.pending += 1;
                    }
                    self.record = place + 1;
                    if self.record - self.from >= self.size {
                        self.pieces.push(self.from..self.record);
                        self.from = self.record;
                    }
                    At::Start
                }
                (At::AfterQuote | At::Closed, b' ' | b'\t') => At::Closed,
                (At::AfterQuote | At::Closed, _) => return Err(Quote::Within(place)),
                _ => At::Plain,
            };
            self.previous = Some(byte);
            self.place += 1;
        }
        Ok(())
    }

    /// Returns the pieces of the whole text.
    pub(super) fn finish(mut self) -> Result<Pieces, Quote> {
        if self.at == At::Quoted {
            return Err(Quote::NeverClosed(self.opened));
        }
        if self.from < self.place {
            self.pieces.push(self.from..self.place);
        }
        if self.record < self.place {
            self.blank += self.pending;
        }
        Ok(Pieces { pieces: self.pieces, blank: self.blank })
    }
}
