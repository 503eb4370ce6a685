//! Detects the format of a file: compressed or not, text, Parquet or Arrow. The first bytes decide; the name
//! decides only if the bytes have no known signature.

use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::TableError;

/// Format of a table, without compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text with a delimiter.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow file (Feather version 2).
    ArrowFile,
    /// Apache Arrow stream.
    ArrowStream,
}

/// Number of bytes that determine the format.
const MAGIC: usize = 8;

impl Format {
    /// Returns the format of a name's extension, ignoring `.gz` and `.zst`.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        match Path::new(name).extension()?.to_str()? {
            "csv" | "tsv" | "tab" | "txt" => Some(Self::Csv),
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "feather" | "ipc" => Some(Self::ArrowFile),
            "arrows" => Some(Self::ArrowStream),
            _ => None,
        }
    }

    /// Returns the format of a file's first bytes; bytes without a known signature are text. `named` is the
    /// format according to the name or the caller.
    pub(crate) fn of_bytes(
        start: &[u8],
        file: &str,
        named: Option<Self>,
        notes: &mut Vec<String>,
    ) -> Result<Self, TableError> {
        let refuse = |problem: &str| Err(TableError::file(file, problem));
        let found = match start {
            [] => return refuse("is empty"),
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [b'P', b'A', b'R', b'E', ..] => {
                return refuse("is encrypted Parquet, which is not supported; write it without encryption");
            }
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Self::ArrowFile,
            [0xff, 0xff, 0xff, 0xff, ..] => Self::ArrowStream,
            [b'F', b'E', b'A', b'1', ..] => {
                return refuse(
                    "is Feather version 1; write it as version 2 (pyarrow: `write_feather(.., version=2)`)",
                );
            }
            [b'P', b'K', 3, 4, ..] => {
                return refuse(
                    "is a zip archive or an Excel workbook; unpack it, or save the sheet as \"CSV UTF-8\"",
                );
            }
            [0xd0, 0xcf, 0x11, 0xe0, ..] => {
                return refuse("is an old Excel workbook; save the sheet as \"CSV UTF-8\"");
            }
            _ => Self::Csv,
        };
        match (found, named) {
            (Self::Csv, Some(named)) if named != Self::Csv => refuse(&format!(
                "has the file extension of {}, but other first bytes; is the file complete?",
                named.name()
            )),
            (Self::ArrowFile | Self::ArrowStream, Some(Self::ArrowFile | Self::ArrowStream)) => Ok(found),
            (found, Some(named)) if found != named => {
                notes.push(format!(
                    "named as {}, but read as {} because of its content",
                    named.name(),
                    found.name()
                ));
                Ok(found)
            }
            _ => Ok(found),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Parquet => "Parquet",
            Self::ArrowFile | Self::ArrowStream => "Arrow",
        }
    }
}

/// Returns the first bytes of a file, and true if they have the signature of a compressed file.
pub(crate) fn start_of(path: &Path) -> std::io::Result<(Vec<u8>, bool)> {
    let mut start = Vec::new();
    fet_io::open(path)?.take(MAGIC as u64).read_to_end(&mut start)?;
    let compressed = is_gzip(&start) || is_zstd(&start);
    Ok((start, compressed))
}

/// Reader of a file, which decompresses it if it has the signature of a compressed file.
pub(crate) enum Decompressed<R: Read> {
    Plain(Buffered<R>),
    Gzip(Box<MultiGzDecoder<Buffered<R>>>),
    Zstd(Box<zstd::Decoder<'static, Buffered<R>>>),
}

type Buffered<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

/// Opens a reader, compressed or not.
pub(crate) fn decompressed<R: Read>(mut reader: R, file: &str) -> Result<Decompressed<R>, TableError> {
    let mut start = Vec::new();
    reader.by_ref().take(MAGIC as u64).read_to_end(&mut start).map_err(|error| refuse(file, None, &error))?;
    let (gzip, zstd) = (is_gzip(&start), is_zstd(&start));
    let all = BufReader::with_capacity(1 << 18, Cursor::new(start).chain(reader));
    Ok(if gzip {
        Decompressed::Gzip(Box::new(MultiGzDecoder::new(all)))
    } else if zstd {
        let decoder = zstd::Decoder::with_buffer(all).map_err(|error| refuse(file, Some("zstd"), &error))?;
        Decompressed::Zstd(Box::new(decoder))
    } else {
        Decompressed::Plain(all)
    })
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(to),
            Self::Gzip(reader) => reader.read(to),
            Self::Zstd(reader) => reader.read(to),
        }
    }
}

impl<R: Read> Decompressed<R> {
    /// Describes an error of this reader.
    pub(crate) fn refuse(&self, file: &str, error: &std::io::Error) -> TableError {
        let how = match self {
            Self::Plain(_) => None,
            Self::Gzip(_) => Some("gzip"),
            Self::Zstd(_) => Some("zstd"),
        };
        refuse(file, how, error)
    }
}

fn refuse(file: &str, how: Option<&str>, error: &std::io::Error) -> TableError {
    let problem = match how {
        None => format!("cannot be read: {error}"),
        Some(how) => format!("cannot be decompressed as {how}: {error} (is the file complete?)"),
    };
    TableError::file(file, problem)
}

/// Reads and decompresses all bytes of a reader.
pub(crate) fn bytes_of(reader: impl Read, file: &str) -> Result<Vec<u8>, TableError> {
    let mut bytes = Vec::new();
    let mut reader = decompressed(reader, file)?;
    reader.read_to_end(&mut bytes).map_err(|error| reader.refuse(file, &error))?;
    Ok(bytes)
}

fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

fn is_zstd(start: &[u8]) -> bool {
    start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
}
