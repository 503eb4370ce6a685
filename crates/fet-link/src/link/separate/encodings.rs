//! File of encodings for the linkage unit.

use std::io::Write;
use std::path::Path;

use fet_linkage::bits::BitTable;
use fet_linkage::clkhash::{read_clks, write_clks};
use fet_linkage::search::Measure;
use serde::{Deserialize, Serialize};

use fet_io::input::{input, of_json};

/// First bytes of the file.
const MAGIC: &[u8] = b"fet encodings 1\n";
/// First bytes of a file of any version.
const FAMILY: &[u8] = b"fet encodings ";

/// Encodings of a table's rows.
#[derive(Debug, PartialEq)]
pub(super) struct Encodings {
    pub filters: BitTable,
    /// Fingerprint of schema and secret, if the file contains one.
    pub fingerprint: Option<String>,
    pub score: Score,
}

/// Similarity measure for two encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Score {
    Correlation,
    Dice,
}

impl Score {
    /// Returns the measure for vectors of `bits` bits.
    pub(super) fn measure(self, bits: usize) -> Measure {
        match self {
            Self::Correlation => Measure::Correlation(bits as u32),
            Self::Dice => Measure::Dice,
        }
    }
}

/// Header line after the magic.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    rows: usize,
    bits: usize,
    score: Score,
    fingerprint: Option<String>,
}

impl Encodings {
    /// Writes the file: magic, a line of JSON, the words of all rows, and the SHA-256 of everything before.
    ///
    /// If the name ends in .json, the file has clkhash's own format.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
            if self.score != Score::Dice {
                let problem = "is the format of clkhash; this schema needs a .clks file";
                return Err(input(format!("--out {}: {problem}", path.display())));
            }
            fet_io::write_private(path, write_clks(&self.filters).as_bytes())?;
            return Ok(());
        }
        let header = Header {
            rows: self.filters.rows(),
            bits: self.filters.bits(),
            score: self.score,
            fingerprint: self.fingerprint.clone(),
        };
        let mut bytes = MAGIC.to_vec();
        writeln!(bytes, "{}", serde_json::to_string(&header)?)?;
        bytes.reserve(8 * self.filters.words().len() + 32);
        self.filters.words().iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        let sum = fet_io::sha256(&bytes);
        bytes.extend_from_slice(&sum);
        fet_io::write_private(path, &bytes)?;
        Ok(())
    }

    /// Reads a file, and refuses a damaged file or a file of another kind.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = fet_io::read(path).map_err(|error| input(format!("{}: {error}", path.display())))?;
        // JSON may begin with a byte-order mark and spaces.
        let json = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes).trim_ascii_start();
        let read = match json.first() {
            Some(b'{') => Self::of_clkhash(json),
            _ => Self::from_bytes(&bytes),
        };
        read.map_err(|problem| input(format!("{}: {problem}", path.display())))
    }

    fn of_clkhash(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "must be text; it is not UTF-8")?;
        let filters = read_clks(text).map_err(|error| error.to_string())?;
        if filters.rows() == 0 {
            return Err("has no rows".to_string());
        }
        Ok(Self { filters, fingerprint: None, score: Score::Dice })
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let rule = "must be encodings from `fet link encode` or clkhash; ";
            let found = match bytes {
                _ if bytes.starts_with(FAMILY) => "it is from another version of this program",
                [0x1f, 0x8b, ..] => "it is compressed: unpack it first (gunzip)",
                _ => "it is something else",
            };
            return Err(format!("{rule}{found}"));
        };
        let damaged = "is damaged: its checksum is wrong; ask for the file again";
        let Some((content, sum)) = bytes.split_last_chunk::<32>() else { return Err(damaged.to_string()) };
        if fet_io::sha256(content) != *sum {
            return Err(damaged.to_string());
        }
        let rest = &rest[..rest.len() - 32];
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or("lacks a header line")?;
        let header: Header = serde_json::from_slice(&rest[..end])
            .map_err(|error| format!("has a wrong header line: {}", of_json(&error)))?;
        let Header { rows, bits, score, fingerprint } = header;
        if score == Score::Correlation && fingerprint.is_none() {
            return Err("does not name its schema; ask for a new encoding".to_string());
        }
        let words = &rest[end + 1..];
        let sound = (64..=1 << 20).contains(&bits) && bits.is_multiple_of(64);
        let stated = (rows as u128) * (bits as u128) / 8;
        if !sound || rows == 0 || words.len() as u128 != stated {
            return Err(format!("declares {rows} rows of {bits} bits, but has {} bytes", words.len()));
        }
        let words = words.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Ok(Self { filters: BitTable::from_words(bits, words), fingerprint, score })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Encodings {
        let filters = BitTable::from_words(128, (0..6).map(|word| 0x0101_0101 << word).collect());
        Encodings { filters, fingerprint: Some("ab".to_string()), score: Score::Correlation }
    }

    #[test]
    fn reads_a_file_as_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.clks");
        small().write(&path).expect("written");
        assert_eq!(Encodings::read(&path).expect("readable"), small());
    }

    /// Detects every changed or missing byte.
    #[test]
    fn refuses_a_damaged_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.clks");
        small().write(&path).expect("written");
        let whole = fet_io::read(&path).expect("readable");
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(Encodings::from_bytes(&flipped).is_err(), "byte {at}");
            assert!(Encodings::from_bytes(&whole[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn refuses_a_false_header() {
        let header = |text: &str| {
            let mut bytes = [MAGIC, text.as_bytes(), b"\n", &[0; 32]].concat();
            bytes.extend(fet_io::sha256(&bytes));
            Encodings::from_bytes(&bytes).expect_err("wrong")
        };
        for (rows, bits) in [(1, 128), (0, 256), (3, 256), (u64::MAX, 256), (2, 100), (4, 0)] {
            let told =
                header(&format!(r#"{{"rows":{rows},"bits":{bits},"score":"dice","fingerprint":null}}"#));
            assert!(told.contains("declares") || told.contains("header"), "{told}");
        }
        assert!(header("{}").contains("header"));
        let nameless = r#"{"rows":2,"bits":128,"score":"correlation","fingerprint":null}"#;
        assert!(header(nameless).contains("does not name its schema"));
    }
}
