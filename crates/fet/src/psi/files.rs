//! The three files of an exchange: request, answer, and the asker's secret. Each says which request it is of.
//!
//! A file is a line that names its kind and version, a line of JSON, bytes, and the SHA-256 of all that.

use std::path::Path;

use anyhow::Context;
use fet_core::data::Comparison;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Form;
use crate::input::{input, of_json};

/// How files of all kinds begin.
const FAMILY: &str = "fet psi ";
const VERSION: &str = " 3\n";

/// Bytes of a checksum.
const SUM: usize = 32;

/// A kind of file: its header.
pub(super) trait File: Serialize + DeserializeOwned {
    /// Its name in messages, and in its first line.
    const NAME: &'static str;
    /// The command that writes it.
    const WRITER: &'static str;
}

/// What goes to the owner. The bytes are an element for each row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// What its elements are told from others by, in hexadecimal digits.
    pub id: String,
    pub wants: Form,
    /// The comparison of each key column.
    pub compared: Vec<Comparison>,
    pub rows: usize,
}

/// What stays with the asker. The bytes are those of its side; none once an answer was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub request: String,
    pub wants: Form,
    pub rows: usize,
    pub used: bool,
}

/// What goes back to the asker. The bytes are an element for each of the asker's rows, and a record for each of the owner's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub request: String,
    pub gives: Form,
    /// The number of the owner's rows.
    pub rows: usize,
    /// The names of the columns of a payload.
    pub columns: Vec<String>,
    /// The bytes that a record's payload is padded to; 0 where there is none.
    pub padded: usize,
}

impl File for Request {
    const NAME: &'static str = "request";
    const WRITER: &'static str = "fet psi ask";
}

impl File for State {
    const NAME: &'static str = "secret";
    const WRITER: &'static str = "fet psi ask";
}

impl File for Answer {
    const NAME: &'static str = "answer";
    const WRITER: &'static str = "fet psi answer";
}

/// The header's line, which both sides bind an exchange to.
pub(super) fn line(header: &impl File) -> anyhow::Result<String> {
    Ok(serde_json::to_string(header)?)
}

/// Writes a file for its owner alone: whole, or not at all.
pub(super) fn write<F: File>(path: &Path, header: &F, body: &[&[u8]]) -> anyhow::Result<()> {
    let mut bytes = format!("{FAMILY}{}{VERSION}{}\n", F::NAME, line(header)?).into_bytes();
    body.iter().for_each(|part| bytes.extend_from_slice(part));
    let sum = fet_files::sha256(&bytes);
    bytes.extend_from_slice(&sum);
    fet_files::write_private(path, &bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses to replace a secret whose answer has not been opened: nothing else could open it.
pub(super) fn spare_secret(argument: &str, out: &Path) -> anyhow::Result<()> {
    let is_waiting = |bytes| matches!(parse::<State>(bytes), Ok((State { used: false, .. }, _)));
    if out.is_file() && fet_files::read(out).is_ok_and(is_waiting) {
        let problem = "holds the secret of a request that waits for its answer; name another file";
        return Err(input(format!("{argument} {}: {problem}", out.display())));
    }
    Ok(())
}

/// Reads a file of this kind, and refuses one that is damaged or something else. `argument` is how it was named.
pub(super) fn read<F: File>(argument: &str, path: &Path) -> anyhow::Result<(F, Vec<u8>)> {
    let named = format!("{argument}{}", path.display());
    let bytes = fet_files::read(path).map_err(|error| input(format!("{named}: {error}")))?;
    parse(bytes).map_err(|problem| input(format!("{named}: {problem}")))
}

fn parse<F: File>(mut bytes: Vec<u8>) -> Result<(F, Vec<u8>), String> {
    let first = format!("{FAMILY}{}{VERSION}", F::NAME);
    if !bytes.starts_with(first.as_bytes()) {
        return Err(format!("must be {}, as `{}` writes it; {}", article(F::NAME), F::WRITER, found(&bytes)));
    }
    let damaged = "is damaged: it does not have the checksum that it states";
    match bytes.split_last_chunk::<SUM>() {
        Some((content, sum)) if fet_files::sha256(content) == *sum => {}
        _ => return Err(damaged.to_string()),
    }
    bytes.truncate(bytes.len() - SUM);
    let end = bytes[first.len()..].iter().position(|&byte| byte == b'\n').ok_or("has no header line")?;
    let body = bytes.split_off(first.len() + end + 1);
    let header = serde_json::from_slice(&bytes[first.len()..])
        .map_err(|error| format!("has a wrong header line: {}", of_json(&error)))?;
    Ok((header, body))
}

/// What a file is that should be another.
fn found(bytes: &[u8]) -> String {
    let line = bytes.split(|&byte| byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok());
    let known = [Request::NAME, State::NAME, Answer::NAME];
    let words = line.and_then(|line| line.strip_prefix(FAMILY)?.split_once(' '));
    match words.filter(|(kind, _)| known.contains(kind)) {
        Some((kind, version)) if version == VERSION.trim() => format!("it is {}", article(kind)),
        Some(_) => "it is of another version of this program".to_string(),
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

    fn small() -> State {
        State { request: "ab".to_string(), wants: Form::Links, rows: 2, used: false }
    }

    fn written() -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        write(&path, &small(), &[b"by\n", b"tes"]).expect("written");
        fet_files::read(&path).expect("readable")
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        assert_eq!(parse::<State>(written()), Ok((small(), b"by\ntes".to_vec())));
    }

    /// Every byte that is changed or lost is noticed.
    #[test]
    fn a_damaged_file_is_refused() {
        let whole = written();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(parse::<State>(flipped).is_err(), "byte {at}");
            assert!(parse::<State>(whole[..at].to_vec()).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn another_file_is_told_by_what_it_is() {
        let of = |bytes: &[u8]| parse::<Request>(bytes.to_vec()).expect_err("no request");
        assert!(of(&written()).contains("must be a request, as `fet psi ask` writes it; it is a secret"));
        assert!(of(b"fet psi answer 3\n").ends_with("it is an answer"));
        assert!(of(b"fet psi request 2\n").contains("another version"));
        assert!(of(b"first,last\n").contains("something else"));
    }
}
