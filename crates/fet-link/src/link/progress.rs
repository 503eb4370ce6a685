//! Progress of linking and other work on rows: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Minimum time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Shows the number of finished rows.
pub(crate) enum RowProgress {
    Bar(ProgressBar),
    Lines { done: &'static str, rows: usize, start: Instant, reported: Mutex<ReportedProgress> },
}

/// Number of finished rows, and the time of the last line.
pub(crate) struct ReportedProgress {
    done: usize,
    at: Instant,
}

impl RowProgress {
    /// Starts the progress of linking `rows` rows.
    pub(super) fn new(rows: usize) -> Self {
        Self::start("linking", "linked", rows)
    }

    /// Starts the progress of other work on `rows` rows: `doing` names the work in progress, `done` the
    /// finished work.
    pub(crate) fn start(doing: &str, done: &'static str, rows: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            let start = Instant::now();
            return Self::Lines {
                done,
                rows,
                start,
                reported: Mutex::new(ReportedProgress { done: 0, at: start }),
            };
        }
        let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(&format!(
            "{doing} {{bar:30}} {{percent:>3}}% {{pos}}/{{len}} rows, {{eta}} left"
        ));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self::Bar(bar)
    }

    /// Adds `count` finished rows.
    pub(crate) fn add(&self, count: usize) {
        match self {
            Self::Bar(bar) => bar.inc(count as u64),
            Self::Lines { done, rows, start, reported } => {
                let mut reported = reported.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                reported.done += count;
                if reported.at.elapsed() >= PAUSE && reported.done < *rows {
                    reported.at = Instant::now();
                    fet_io::note!("{}", line(done, reported.done, *rows, start.elapsed()));
                }
            }
        }
    }
}

impl Drop for RowProgress {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Formats a line after `time`, with `done` of `rows` rows finished; `word` names the finished work.
fn line(word: &str, done: usize, rows: usize, time: Duration) -> String {
    let left = time.as_secs_f64() * (rows as f64 / done.max(1) as f64 - 1.0);
    format!("{word} {done} of {rows} rows, about {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_the_remaining_time_from_finished_rows() {
        let reported = line("linked", 250, 1_000, Duration::from_secs(20));
        assert_eq!(reported, "linked 250 of 1000 rows, about 60 s left");
    }
}
