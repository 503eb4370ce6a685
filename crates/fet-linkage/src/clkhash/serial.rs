//! Filters in clkhash's file format: base64 within JSON.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use crate::bits::BitTable;

/// As in Python, the text is padded, and surplus bits of the last character are ignored.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Reason for refusing a file of filters. Filters are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClksError {
    /// The file does not have the form `{"clks": ["…", …]}`.
    #[error("a file of CLKs must have the form {{\"clks\": [\"…\", …]}}: {0}")]
    Form(String),
    /// The file contains no filter, so that the length is unknown.
    #[error("a file of CLKs must contain at least one CLK")]
    Empty,
    /// A filter is not base64.
    #[error("CLK {clk} is not base64: {reason}")]
    Base64 {
        /// Number of the filter.
        clk: usize,
        /// Error of the decoder.
        reason: String,
    },
    /// A filter has a different length than the first filter.
    #[error("CLK {clk} has {found} bits; the first has {expected}")]
    Length {
        /// Number of the filter.
        clk: usize,
        /// Length of the filter.
        found: usize,
        /// Length of the first filter.
        expected: usize,
    },
    /// The length is not a multiple of 64.
    #[error("the number of bits of a CLK must be a multiple of 64; it is {0}")]
    Words(usize),
}

/// Encodes a filter in base64, with eight bits a byte and the first of them the highest.
pub fn to_base64(row: &[u64]) -> String {
    let bytes: Vec<u8> = row.iter().flat_map(|word| word.to_le_bytes()).map(u8::reverse_bits).collect();
    BASE64.encode(bytes)
}

/// Decodes a filter from base64.
///
/// # Errors
/// If the text is not base64, or the filter does not consist of whole words.
pub fn from_base64(text: &str) -> Result<Vec<u64>, ClksError> {
    words(text, 1)
}

/// Returns the words of filter number `clk` of a file.
fn words(text: &str, clk: usize) -> Result<Vec<u64>, ClksError> {
    let mut bytes = bytes(text).map_err(|reason| ClksError::Base64 { clk, reason })?;
    if bytes.is_empty() || !bytes.len().is_multiple_of(8) {
        return Err(ClksError::Words(bytes.len() * 8));
    }
    bytes.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok(bytes.chunks_exact(8).map(word).collect())
}

/// Decodes bytes from base64.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|error| error.to_string())
}

/// Returns the file of a table of filters, spaced as Python's `json` writes it.
pub fn write_clks(table: &BitTable) -> String {
    let clks: Vec<String> =
        (0..table.rows()).map(|row| format!("\"{}\"", to_base64(table.row(row)))).collect();
    format!("{{\"clks\": [{}]}}", clks.join(", "))
}

/// Parses the table of filters in a file.
///
/// # Errors
/// If the file has another form, or if its filters do not all have the same length in whole words of 64 bits.
pub fn read_clks(json: &str) -> Result<BitTable, ClksError> {
    let file: File = serde_json::from_str(json).map_err(|error| ClksError::Form(error.to_string()))?;
    let (mut bits, mut all) = (0, Vec::new());
    for (at, text) in file.clks.iter().enumerate() {
        let row = words(text, at + 1)?;
        let found = row.len() * 64;
        if at > 0 && found != bits {
            return Err(ClksError::Length { clk: at + 1, found, expected: bits });
        }
        bits = found;
        all.extend(row);
    }
    if all.is_empty() {
        return Err(ClksError::Empty);
    }
    Ok(BitTable::from_words(bits, all))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    clks: Vec<String>,
}
