//! Standard output and standard error, which their reader may close (`fet list | head`).

use std::fmt::{Arguments, Write as _};
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

/// The form of the lines on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Notes {
    /// As they are.
    Plain,
    /// Each with the time (UTC), except the last message of a program (`fet: ...`).
    Timed,
    /// Each as a JSON object: `time` in seconds since 1970, `event` (`error`, `warning` or `note`) and `message`.
    Json,
}

static NOTES: AtomicU8 = AtomicU8::new(Notes::Plain as u8);

/// Chooses the form of all further lines on standard error.
pub fn choose_notes(form: Notes) {
    NOTES.store(form as u8, Ordering::Relaxed);
}

/// Receiver of the lines in place of standard error.
static LISTENER: OnceLock<fn(String)> = OnceLock::new();

/// Sends all further lines to a function in place of standard error, for a program that shows them elsewhere. The first call
/// decides.
pub fn send_notes(listener: fn(String)) {
    let _ = LISTENER.set(listener);
}

/// Start of the last message of a program.
const LAST_WORDS: [&str; 2] = ["fet: ", "error: "];

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
    if let Some(listener) = LISTENER.get() {
        return listener(plain(&line.to_string()));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let form = match NOTES.load(Ordering::Relaxed) {
        form if form == Notes::Timed as u8 => Notes::Timed,
        form if form == Notes::Json as u8 => Notes::Json,
        _ => Notes::Plain,
    };
    let _ = writeln!(io::stderr().lock(), "{}", written(form, &plain(&line.to_string()), now));
}

/// A line in a form.
fn written(form: Notes, line: &str, now: Duration) -> String {
    let last = LAST_WORDS.iter().find_map(|start| line.strip_prefix(start));
    match form {
        Notes::Timed if last.is_none() => format!("{} {line}", utc(now)),
        Notes::Plain | Notes::Timed => line.to_string(),
        Notes::Json => {
            let (event, message) = match (last, line.strip_prefix("warning: ")) {
                (Some(message), _) => ("error", message),
                (None, Some(message)) => ("warning", message),
                (None, None) => ("note", line),
            };
            format!(r#"{{"time":{:.3},"event":"{event}","message":{}}}"#, now.as_secs_f64(), quoted(message))
        }
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A time since 1970 as `2026-11-25T10:15:08Z`.
fn utc(since: Duration) -> String {
    let seconds = since.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of the year 0, in periods of 400 years.
    let day = days + 719_468;
    let (period, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = period * 400 + year + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
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

/// Returns a message without control characters, cut to 1,500 characters.
pub fn shorten(message: &str) -> String {
    const LONGEST: usize = 1_500;
    let plain = plain(message);
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_chosen_form() {
        let now = Duration::from_millis(1_795_601_708_250);
        for (form, line, expected) in [
            (Notes::Plain, "a line", "a line"),
            (Notes::Timed, "a line", "2026-11-25T10:15:08Z a line"),
            (Notes::Timed, "fet: no file", "fet: no file"),
            (
                Notes::Json,
                "a \"line\"\n\\",
                r#"{"time":1795601708.250,"event":"note","message":"a \"line\"\n\\"}"#,
            ),
            (Notes::Json, "warning: x", r#"{"time":1795601708.250,"event":"warning","message":"x"}"#),
            (Notes::Json, "fet: no file", r#"{"time":1795601708.250,"event":"error","message":"no file"}"#),
            (Notes::Json, "error: no flag", r#"{"time":1795601708.250,"event":"error","message":"no flag"}"#),
        ] {
            assert_eq!(written(form, line, now), expected);
        }
    }

    /// The dates are of `date -u -d @SECONDS`.
    #[test]
    fn times_are_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn ignores_a_closed_reader_but_not_a_full_disk() {
        without_reader(Ok(())).expect("written");
        without_reader(Err(ErrorKind::BrokenPipe.into())).expect("no process reads");
        without_reader(Err(ErrorKind::StorageFull.into())).expect_err("the disk is full");
    }
}
