//! Standard output and standard error, which their reader may close (`fet list | head`).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Writes `text` to standard output. A closed pipe is not an error; a full disk is.
pub fn answer(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    without_reader(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Treats a write to a closed pipe as done.
fn without_reader(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a [`plain`] line to standard error, and ignores a closed stream.
pub fn note_line(line: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(&line.to_string()));
}

/// Makes text safe for a terminal: escapes control characters, which may come from input, and shortens very long words.
pub fn plain(text: &str) -> String {
    // Longer than usual paths.
    const WORD: usize = 200;
    let (mut shown, mut word) = (String::new(), 0);
    for c in text.chars() {
        let escaped =
            if c.is_control() && c != '\n' { c.escape_unicode().to_string() } else { c.to_string() };
        let before = word;
        word = if c.is_whitespace() { 0 } else { word + escaped.chars().count() };
        if word <= WORD {
            shown += &escaped;
        } else if before <= WORD {
            shown.push('…');
        }
    }
    shown
}

/// Prints like `eprintln!`, but does not panic if standard error is closed.
#[macro_export]
macro_rules! note {
    ($($line:tt)*) => { $crate::note_line(format_args!($($line)*)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is_one() {
        without_reader(Ok(())).expect("written");
        without_reader(Err(ErrorKind::BrokenPipe.into())).expect("nobody reads");
        without_reader(Err(ErrorKind::StorageFull.into())).expect_err("the disk is full");
    }
}
