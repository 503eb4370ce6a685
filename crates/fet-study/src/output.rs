//! What commands do with their output: answers on standard output, files that are whole or absent, words of a shell, and
//! the one kind of error that is not the user's.
//!
//! It draws no progress; `view` does.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Something went wrong that the input is not to blame for: exit code 1 instead of 2.
#[derive(Debug)]
pub struct Failed(pub String);

impl Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// Answers on standard output. A reader that has gone, as in `| head`, is no error.
pub fn answer(text: impl Display) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// `text` as one word of a shell.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Writes `text` to `path`, whole or not at all; the error names the file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fet_files::write(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_one_word() {
        assert_eq!(shell_quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
