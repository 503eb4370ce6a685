//! Standard output and standard error, of which either may have been closed by whoever reads them (`fet list | head`).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Writes `text` to standard output. A reader that has gone has read what it wanted, and is no error; a full disk is one.
pub fn answer(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    without_reader(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// A write whose reader has gone is done.
fn without_reader(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to standard error, [`plain`], which nobody may be listening to: work goes on.
pub fn note_line(line: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", plain(&line.to_string()));
}

/// A text as a terminal shows it: what input may have put into it does not steer the terminal, and no word of it is longer than
/// anybody reads.
pub fn plain(text: &str) -> String {
    // Longer than a path should be.
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

/// As `eprintln!`, without a panic where standard error is closed.
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
