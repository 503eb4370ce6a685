//! What every command does with its output: answers on standard output, files that are whole or absent, and
//! the one kind of error that is not the user's.
//!
//! It draws no progress; `ablate::view` does.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Something went wrong that the input is not to blame for: exit code 1 instead of 2.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// Answers on standard output. A reader that has gone, as in `| head`, is no error.
pub(crate) fn answer(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Writes `text` to `path`, whole or not at all; the error names the file.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<()> {
    fet_files::write(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// `text` as one word of a shell.
pub(crate) fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_one_word() {
        assert_eq!(shell_quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
