//! Text of a table, in memory or in a file.
//!
//! A large file is read again for each pass over its text, so that only the pieces at work are in memory. The
//! first pass keeps a digest of each piece, and the later passes refuse a file that has changed since.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::pieces::{self, Cutter, Quote};
use crate::error::{Place, TableError};
use crate::format;

/// Number of bytes at the beginning of a file that are kept, for the header and the delimiter.
const HEAD: usize = 1 << 22;

/// Number of bytes that are read at a time to cut a file.
const PART: usize = 1 << 18;

/// Text without its byte order mark.
pub(crate) enum Content<'a> {
    /// Text in memory.
    Memory(&'a [u8]),
    /// Text in a file, plain or compressed.
    File(TextFile<'a>),
}

/// Text in a file.
pub(crate) struct TextFile<'a> {
    path: &'a Path,
    /// Name for messages.
    file: &'a str,
    /// Length of the byte order mark.
    mark: usize,
    /// The first bytes of the text.
    head: Vec<u8>,
    /// True if the text is longer than its head.
    is_cut: bool,
}

/// Pieces of whole records.
pub(super) struct Cut {
    ranges: Vec<Range<usize>>,
    /// Digest of each piece; only of a file.
    digests: Vec<u64>,
    /// Number of blank lines before a row; counted only if the table has one column, or in a file.
    pub(super) blank: usize,
}

/// Piece of a text.
pub(super) struct Piece<'a> {
    pub(super) index: usize,
    /// Offset of the piece in the text.
    pub(super) start: usize,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// Error of cutting a text.
pub(super) enum CutError {
    Quote(Quote),
    Table(TableError),
}

impl<'a> Content<'a> {
    /// Takes a text in memory; `bytes` may begin with a byte order mark.
    pub(crate) fn memory(bytes: &'a [u8], file: &str) -> Result<Self, TableError> {
        Ok(Self::Memory(&bytes[mark(bytes, file)?..]))
    }

    /// Takes the text in the file `path`, plain or compressed.
    pub(crate) fn file(path: &'a Path, file: &'a str) -> Result<Self, TableError> {
        let mut text = TextFile { path, file, mark: 0, head: Vec::new(), is_cut: false };
        let mut head = Vec::new();
        let mut reader = text.open()?;
        reader
            .by_ref()
            .take(HEAD as u64)
            .read_to_end(&mut head)
            .map_err(|error| reader.refuse(file, &error))?;
        text.is_cut = head.len() == HEAD;
        text.mark = mark(&head, file)?;
        head.drain(..text.mark);
        text.head = head;
        Ok(Self::File(text))
    }

    /// Returns the first bytes of the text, or all.
    pub(super) fn head(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes,
            Self::File(text) => &text.head,
        }
    }

    /// Returns the first bytes with the byte order mark, which determine the format.
    pub(crate) fn start(&self) -> Vec<u8> {
        let mark: &[u8] = match self {
            Self::File(text) if text.mark > 0 => MARK,
            _ => &[],
        };
        mark.iter().chain(self.head().iter().take(MARK.len() + 8)).copied().collect()
    }

    /// True if the text is longer than its head.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::File(text) if text.is_cut)
    }

    /// Cuts the rows, which begin at `start`, into pieces of about `size` bytes.
    pub(super) fn cut(
        &self,
        start: usize,
        delimiter: u8,
        count_blank: bool,
        size: usize,
    ) -> Result<Cut, CutError> {
        match self {
            Self::Memory(bytes) => {
                let cut = pieces::cut(bytes, start, delimiter, count_blank, size).map_err(CutError::Quote)?;
                Ok(Cut { ranges: cut.pieces, digests: Vec::new(), blank: cut.blank })
            }
            Self::File(text) => text.cut(start, delimiter, size),
        }
    }

    /// Passes over the pieces of the text, in their order.
    pub(super) fn pieces<'s>(
        &'s self,
        cut: &'s Cut,
    ) -> Result<Box<dyn Iterator<Item = Result<Piece<'s>, TableError>> + Send + 's>, TableError> {
        match self {
            Self::Memory(bytes) => Ok(Box::new(cut.ranges.iter().enumerate().map(|(index, range)| {
                Ok(Piece { index, start: range.start, bytes: Cow::Borrowed(&bytes[range.clone()]) })
            }))),
            Self::File(text) => {
                let start = cut.ranges.first().map_or(0, |range| range.start);
                Ok(Box::new(FilePieces { text, cut, reader: text.open_at(start)?, next: 0 }))
            }
        }
    }

    /// Returns the line on which the record at `offset` begins. A record's position may lie before the line
    /// ends that precede the record.
    pub(super) fn place(&self, offset: usize) -> Result<Place, TableError> {
        match self {
            Self::Memory(bytes) => Ok(line_at(*bytes, offset).expect("memory is readable")),
            Self::File(text) => {
                let mut reader = text.open_at(0)?;
                line_at(&mut reader, offset).map_err(|error| reader.refuse(text.file, &error))
            }
        }
    }
}

impl TextFile<'_> {
    fn open(&self) -> Result<format::Decompressed<std::fs::File>, TableError> {
        let unreadable = |error: io::Error| TableError::file(self.file, format!("cannot be read: {error}"));
        format::decompressed(fet_io::open(self.path).map_err(unreadable)?, self.file)
    }

    /// Opens the text at an offset.
    fn open_at(&self, offset: usize) -> Result<format::Decompressed<std::fs::File>, TableError> {
        let mut reader = self.open()?;
        let before = (self.mark + offset) as u64;
        let skipped = io::copy(&mut reader.by_ref().take(before), &mut io::sink());
        match skipped.map_err(|error| reader.refuse(self.file, &error))? {
            skipped if skipped == before => Ok(reader),
            _ => Err(self.changed()),
        }
    }

    fn cut(&self, start: usize, delimiter: u8, size: usize) -> Result<Cut, CutError> {
        let mut reader = self.open_at(0).map_err(CutError::Table)?;
        let mut head = vec![0; start];
        match reader.read_exact(&mut head) {
            Ok(()) if head == self.head[..start] => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(CutError::Table(reader.refuse(self.file, &error)));
            }
            _ => return Err(CutError::Table(self.changed())),
        }
        let mut cutter = Cutter::new(start, delimiter, size);
        let (mut digests, mut digest) = (Vec::new(), Xxh3::new());
        let mut part = vec![0; PART];
        let mut place = start;
        loop {
            let count = match reader.read(&mut part) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(CutError::Table(reader.refuse(self.file, &error))),
            };
            cutter.feed(&part[..count]).map_err(CutError::Quote)?;
            let mut from = 0;
            for piece in &cutter.pieces()[digests.len()..] {
                let end = piece.end - place;
                digest.update(&part[from..end]);
                digests.push(digest.digest());
                digest.reset();
                from = end;
            }
            digest.update(&part[from..count]);
            place += count;
        }
        let cut = cutter.finish().map_err(CutError::Quote)?;
        if cut.pieces.len() > digests.len() {
            digests.push(digest.digest());
        }
        Ok(Cut { ranges: cut.pieces, digests, blank: cut.blank })
    }

    fn changed(&self) -> TableError {
        TableError::file(
            self.file,
            "changed while it was read; read it again when no other program writes it",
        )
    }
}

/// Pieces of a file, in their order, and an error where the file has changed.
struct FilePieces<'s> {
    text: &'s TextFile<'s>,
    cut: &'s Cut,
    reader: format::Decompressed<std::fs::File>,
    next: usize,
}

impl<'s> Iterator for FilePieces<'s> {
    type Item = Result<Piece<'s>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { text, cut, reader, next: index } = self;
        let place = *index;
        *index += 1;
        let Some(range) = cut.ranges.get(place) else {
            // The text must end after its last piece.
            let ends = place > cut.ranges.len() || matches!(reader.read(&mut [0]), Ok(0));
            return (!ends).then(|| Err(text.changed()));
        };
        let mut bytes = vec![0; range.len()];
        Some(match reader.read_exact(&mut bytes) {
            Ok(()) if xxh3_64(&bytes) == cut.digests[place] => {
                Ok(Piece { index: place, start: range.start, bytes: Cow::Owned(bytes) })
            }
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(reader.refuse(text.file, &error))
            }
            _ => Err(text.changed()),
        })
    }
}

/// Byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the length of the byte order mark.
fn mark(bytes: &[u8], file: &str) -> Result<usize, TableError> {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Err(TableError::file(file, "is UTF-16; save it as UTF-8 (in Excel: \"CSV UTF-8\")"))
        }
        bytes if bytes.starts_with(MARK) => Ok(MARK.len()),
        _ => Ok(0),
    }
}

/// Returns the line of the text on which the record at `offset` begins.
fn line_at(text: impl Read, offset: usize) -> io::Result<Place> {
    let (mut lines, mut previous) = (1, 0);
    for (place, byte) in BufReader::with_capacity(1 << 16, text).bytes().enumerate() {
        let byte = byte?;
        if place >= offset && !matches!(byte, b'\r' | b'\n') {
            break;
        }
        // A line ends with its line feed, or with a carriage return that no line feed follows.
        lines += u64::from(byte == b'\n') + u64::from(previous == b'\r' && byte != b'\n');
        previous = byte;
    }
    Ok(Place::Line(lines + u64::from(previous == b'\r')))
}
