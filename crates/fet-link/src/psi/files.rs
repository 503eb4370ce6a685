//! The three files of an exchange: the request, the answer and the querier's secret. Each file names its
//! request.
//!
//! A file consists of a line with its kind and version, a line of JSON, bytes, and the SHA-256 of everything
//! before.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use fet_core::data::Comparison;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use fet_io::input::{input, of_json};

/// First bytes of all kinds of files.
const FAMILY: &str = "fet psi ";
const VERSION: &str = " 3\n";

/// Length of a checksum in bytes.
const SUM: usize = 32;

/// Result that the querier gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PsiResult {
    /// Only the number of distinct common keys.
    Cardinality,
    /// The pairs of rows with equal keys.
    Links,
    /// The pairs of rows, with columns of the other table.
    Payload,
}

impl PsiResult {
    /// Returns the name of the form on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cardinality => "cardinality",
            Self::Links => "links",
            Self::Payload => "payload",
        }
    }
}

/// Header of a kind of file.
pub(super) trait ExchangeFile: Serialize + DeserializeOwned {
    /// Name of the file kind in messages and in the first line.
    const NAME: &'static str;
    /// Command that writes the file.
    const WRITER: &'static str;
}

/// Request to the data holder. The bytes are one element per row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestHeader {
    /// Identifier of the elements, in hexadecimal digits.
    pub id: String,
    pub wants: PsiResult,
    /// Comparison of each key column.
    pub compared: Vec<Comparison>,
    pub rows: usize,
}

/// The querier's secret state. The bytes are the state of the querier's side; empty after an answer was
/// opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretHeader {
    pub request: String,
    pub wants: PsiResult,
    pub rows: usize,
    pub used: bool,
}

/// Answer to the querier. The bytes are one element for each of the querier's rows, and one record for each
/// of the data holder's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerHeader {
    pub request: String,
    pub gives: PsiResult,
    /// Number of the data holder's rows.
    pub rows: usize,
    /// Names of the payload's columns.
    pub columns: Vec<String>,
    /// Number of bytes of a record's padded payload; 0 without a payload.
    pub padded: usize,
}

impl ExchangeFile for RequestHeader {
    const NAME: &'static str = "request";
    const WRITER: &'static str = "fet psi ask";
}

impl ExchangeFile for SecretHeader {
    const NAME: &'static str = "secret";
    const WRITER: &'static str = "fet psi ask";
}

impl ExchangeFile for AnswerHeader {
    const NAME: &'static str = "answer";
    const WRITER: &'static str = "fet psi answer";
}

/// Returns the header's line, which both sides bind to the exchange.
pub(super) fn line(header: &impl ExchangeFile) -> anyhow::Result<String> {
    Ok(serde_json::to_string(header)?)
}

/// Writes a file atomically, readable only by the file's owner.
pub(super) fn write<F: ExchangeFile>(path: &Path, header: &F, body: &[&[u8]]) -> anyhow::Result<()> {
    let mut bytes = format!("{FAMILY}{}{VERSION}{}\n", F::NAME, line(header)?).into_bytes();
    body.iter().for_each(|part| bytes.extend_from_slice(part));
    let sum = fet_io::sha256(&bytes);
    bytes.extend_from_slice(&sum);
    fet_io::write_private(path, &bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses to replace a secret whose answer has not been opened, because no other secret could open it.
pub(super) fn spare_secret(argument: &str, out: &Path) -> anyhow::Result<()> {
    let is_waiting =
        |bytes| matches!(parse::<SecretHeader>(bytes), Ok((SecretHeader { used: false, .. }, _)));
    if out.is_file() && fet_io::read(out).is_ok_and(is_waiting) {
        let problem = "contains the secret of a request without an answer yet; name another file";
        return Err(input(format!("{argument} {}: {problem}", out.display())));
    }
    Ok(())
}

/// Reads a file of this kind, and refuses a damaged file or a file of another kind. `argument` is the
/// command-line argument.
pub(super) fn read<F: ExchangeFile>(argument: &str, path: &Path) -> anyhow::Result<(F, Vec<u8>)> {
    let named = format!("{argument}{}", path.display());
    let bytes = fet_io::read(path).map_err(|error| input(format!("{named}: {error}")))?;
    parse(bytes).map_err(|problem| input(format!("{named}: {problem}")))
}

fn parse<F: ExchangeFile>(mut bytes: Vec<u8>) -> Result<(F, Vec<u8>), String> {
    let first = format!("{FAMILY}{}{VERSION}", F::NAME);
    if !bytes.starts_with(first.as_bytes()) {
        return Err(format!("must be {} from `{}`; {}", article(F::NAME), F::WRITER, found(&bytes)));
    }
    let damaged = "is damaged: its checksum is wrong";
    match bytes.split_last_chunk::<SUM>() {
        Some((content, sum)) if fet_io::sha256(content) == *sum => {}
        _ => return Err(damaged.to_string()),
    }
    bytes.truncate(bytes.len() - SUM);
    let end = bytes[first.len()..].iter().position(|&byte| byte == b'\n').ok_or("lacks a header line")?;
    let body = bytes.split_off(first.len() + end + 1);
    let header = serde_json::from_slice(&bytes[first.len()..])
        .map_err(|error| format!("has a wrong header line: {}", of_json(&error)))?;
    Ok((header, body))
}

/// Describes the actual kind of a file.
fn found(bytes: &[u8]) -> String {
    let line = bytes.split(|&byte| byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok());
    let known = [RequestHeader::NAME, SecretHeader::NAME, AnswerHeader::NAME];
    let words = line.and_then(|line| line.strip_prefix(FAMILY)?.split_once(' '));
    match words.filter(|(kind, _)| known.contains(kind)) {
        Some((kind, version)) if version == VERSION.trim() => format!("it is {}", article(kind)),
        Some(_) => "it is from another version of this program".to_string(),
        None => "it is something else".to_string(),
    }
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with('a') { "an" } else { "a" };
    format!("{article} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SecretHeader {
        SecretHeader { request: "ab".to_string(), wants: PsiResult::Links, rows: 2, used: false }
    }

    fn written() -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        write(&path, &small(), &[b"by\n", b"tes"]).expect("written");
        fet_io::read(&path).expect("readable")
    }

    #[test]
    fn reads_a_file_as_written() {
        assert_eq!(parse::<SecretHeader>(written()), Ok((small(), b"by\ntes".to_vec())));
    }

    /// Detects every changed or missing byte.
    #[test]
    fn refuses_a_damaged_file() {
        let whole = written();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(parse::<SecretHeader>(flipped).is_err(), "byte {at}");
            assert!(parse::<SecretHeader>(whole[..at].to_vec()).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn names_the_kind_of_another_file() {
        let of = |bytes: &[u8]| parse::<RequestHeader>(bytes.to_vec()).expect_err("no request");
        assert!(of(&written()).contains("must be a request from `fet psi ask`; it is a secret"));
        assert!(of(b"fet psi answer 3\n").ends_with("it is an answer"));
        assert!(of(b"fet psi request 2\n").contains("another version"));
        assert!(of(b"first,last\n").contains("something else"));
    }
}
