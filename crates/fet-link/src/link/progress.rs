//! How far linking is, or other work on rows: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line is told no more often than this.
const PAUSE: Duration = Duration::from_secs(10);

/// Tells how many rows are done.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { done: &'static str, rows: usize, start: Instant, told: Mutex<Told> },
}

/// Rows that are done, and when that was told last.
pub(crate) struct Told {
    done: usize,
    at: Instant,
}

impl Progress {
    /// Of the linking of `rows` rows, from now on.
    pub(super) fn new(rows: usize) -> Self {
        Self::of("linking", "linked", rows)
    }

    /// Of other work on `rows` rows: what is being done, and what is done then.
    pub(crate) fn of(doing: &str, done: &'static str, rows: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            let start = Instant::now();
            return Self::Lines { done, rows, start, told: Mutex::new(Told { done: 0, at: start }) };
        }
        let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(&format!(
            "{doing} {{bar:30}} {{percent:>3}}% {{pos}}/{{len}} rows, {{eta}} left"
        ));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self::Bar(bar)
    }

    /// `count` more rows are done.
    pub(crate) fn add(&self, count: usize) {
        match self {
            Self::Bar(bar) => bar.inc(count as u64),
            Self::Lines { done, rows, start, told } => {
                let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                told.done += count;
                if told.at.elapsed() >= PAUSE && told.done < *rows {
                    told.at = Instant::now();
                    fet_io::note!("{}", line(done, told.done, *rows, start.elapsed()));
                }
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// What is told when `done` of `rows` rows took `time`, by the word for what was done.
fn line(word: &str, done: usize, rows: usize, time: Duration) -> String {
    let left = time.as_secs_f64() * (rows as f64 / done.max(1) as f64 - 1.0);
    format!("{word} {done} of {rows} rows, about {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        let told = line("linked", 250, 1_000, Duration::from_secs(20));
        assert_eq!(told, "linked 250 of 1000 rows, about 60 s left");
    }
}
