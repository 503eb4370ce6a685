//! What every command does with its output: answers on standard output, files that are whole or absent, and
//! the one kind of error that is not the user's.
//!
//! It draws no progress; `ablate::view` does.

use std::fmt::Display;
use std::fs;
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

/// Writes `text` to `path` by way of a temporary file beside it and a rename; makes the folder.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".part");
    let part = path.with_file_name(name);
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = fs::File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    let written = write();
    if written.is_err() {
        // What is half-written is worth nothing; that it may not be there to remove is no second error.
        let _ = fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
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

    #[test]
    fn files_are_written_whole_and_nothing_is_left_beside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new/file.txt");
        for text in ["first, longer", "second"] {
            write_atomically(&path, text).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        fs::create_dir(folder.path().join("new/taken")).expect("a folder");
        write_atomically(&folder.path().join("new/taken"), "text").expect_err("a folder stands there");
        assert_eq!(fs::read_dir(folder.path().join("new")).expect("there").count(), 2);
    }
}
