//! Output of commands: answers on standard output, atomic files, shell quoting, and the error type for
//! failures that invalid input does not cause.
//!
//! The module `view` shows progress.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Failure that invalid input does not cause: exit code 1 instead of 2.
#[derive(Debug)]
pub struct Failed(pub String);

impl Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// Prints to standard output. A closed pipe, as with `| head`, is not an error.
pub fn answer(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Quotes `text` as one shell word, unless it is one without quotes.
pub fn shell_quoted(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "_-./:=,@%+".contains(sign);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Describes an error in JSON. The message keeps the name of the field and drops a position that the text of one line does
/// not need.
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match error.is_data() {
        true => text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem).to_string(),
        false => format!("not JSON: {text}"),
    }
}

/// Writes `text` to `path` atomically; the error names the file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fet_io::write(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_text_as_one_word() {
        for (text, expected) in [
            ("/a b/it's", r"'/a b/it'\''s'"),
            ("a/b-1.toml", "a/b-1.toml"),
            ("train.epochs=5", "train.epochs=5"),
            ("$HOME", "'$HOME'"),
            ("~/a", "'~/a'"),
            ("", "''"),
        ] {
            assert_eq!(shell_quoted(text), expected);
        }
    }
}
