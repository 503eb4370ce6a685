//! Progress while cells run: bars on a terminal, plain lines elsewhere (both on standard error), or JSON
//! lines on standard output.
//!
//! The module `write` shows the result of the study.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fet_eval::records::{Report, RunEvent};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::cell::Cell;
use super::failure::{self, CellFailure};
use crate::output::answer;

/// Form of the progress output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogForm {
    /// Bars on a terminal, plain lines elsewhere.
    #[default]
    Human,
    /// One JSON object per line on standard output, instead of the table.
    Json,
}

/// Progress display of a whole study.
pub(crate) struct ProgressView {
    log: LogForm,
    bars: Option<(MultiProgress, ProgressBar)>,
    done: AtomicUsize,
    total: usize,
}

/// Progress display of one running cell.
pub(crate) struct CellProgress<'a> {
    view: &'a ProgressView,
    cell: &'a Cell,
    bar: Option<ProgressBar>,
    /// Thousandths of the cell that the overall bar already includes.
    counted: u64,
    /// Time and value of the cell's first progress report: a resumed cell does not start at 0.
    first: Option<(Instant, f64)>,
    /// Latest validation metric.
    validation: Option<f64>,
    last: Instant,
}

/// Steps of the overall bar for each cell.
const STEPS: u64 = 1000;

/// Minimum time between two progress lines of a cell without a terminal.
const PAUSE: Duration = Duration::from_secs(10);

impl ProgressView {
    /// Creates a view of `total` cells; `done` of them are already finished.
    pub(crate) fn new(log: LogForm, done: usize, total: usize) -> Self {
        let missing = (total - done) as u64;
        let bars = (log == LogForm::Human && stderr().is_terminal() && missing > 0).then(|| {
            let bars = MultiProgress::new();
            let overall = bars.add(ProgressBar::new(missing * STEPS));
            overall.set_style(style("{bar:30} {msg}  {elapsed} gone, {eta} left"));
            overall.set_message(format!("{done}/{total} cells"));
            overall.enable_steady_tick(Duration::from_millis(500));
            (bars, overall)
        });
        let view = Self { log, bars, done: AtomicUsize::new(done), total };
        view.event(json!({"event": "study", "done": done, "cells": total}));
        view
    }

    /// Shows that a cell starts.
    pub(crate) fn begin<'a>(&'a self, cell: &'a Cell) -> CellProgress<'a> {
        let bar = self.bars.as_ref().map(|(bars, _)| {
            let bar = bars.add(ProgressBar::new(STEPS));
            bar.set_style(style("  {bar:12} {prefix}  {msg}"));
            bar.set_prefix(cell.title());
            bar
        });
        let now = Instant::now();
        let line =
            CellProgress { view: self, cell, bar, counted: 0, first: None, validation: None, last: now };
        line.event("running", json!({}));
        line
    }

    /// Shows a message about the study as a whole.
    pub(crate) fn say(&self, text: &str) {
        match &self.bars {
            // An error means that the terminal is closed. The message is lost then.
            Some((bars, _)) => drop(bars.println(text)),
            None => fet_io::note!("{text}"),
        }
    }

    /// Prints an event as a line of JSON if the user asked for JSON.
    pub(crate) fn event(&self, event: Value) {
        if self.log == LogForm::Json {
            answer(event);
        }
    }
}

impl Drop for ProgressView {
    fn drop(&mut self) {
        if let Some((_, overall)) = &self.bars {
            overall.finish_and_clear();
        }
    }
}

impl CellProgress<'_> {
    /// Shows the progress that an event of the cell's run reports.
    pub(crate) fn tell(&mut self, event: &RunEvent) {
        let Some(share) = event.share() else { return };
        let left = self.remaining_time(share);
        let (epoch, epochs, loss, speed) = match *event {
            RunEvent::Progress { epoch, epochs, loss, rows_per_second, .. } => {
                (epoch, epochs, loss, Some(rows_per_second).filter(|speed| !speed.is_nan()))
            }
            RunEvent::Epoch { epoch, epochs, loss, validation, .. } => {
                self.validation = Some(validation).filter(|value| !value.is_nan());
                (epoch, epochs, loss, None)
            }
            RunEvent::Start { .. } | RunEvent::Done { .. } => return,
        };
        let seconds_left = left.map(|left| left.as_secs_f64());
        let told = json!({
            "epoch": epoch, "epochs": epochs, "loss": loss, "validation": self.validation,
            "rows_per_second": speed, "seconds_left": seconds_left,
        });
        self.event("running", told);
        let part = |text: Option<String>| text.map_or_else(String::new, |text| format!("  {text}"));
        let text = format!(
            "epoch {epoch}/{epochs}{}{}{}{}",
            part(
                Some(loss)
                    .filter(|loss| shows_loss(*loss, self.cell))
                    .map(|loss| format!("loss {}", number(loss)))
            ),
            part(self.validation.map(|value| format!("validation {}", number(value)))),
            part(speed.map(|speed| format!("{speed:.0} rows/s"))),
            part(left.map(|left| format!("{} left", duration(left)))),
        );
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                self.count((share * STEPS as f64) as u64);
            }
            None if matches!(event, RunEvent::Epoch { .. }) && self.last.elapsed() >= PAUSE => {
                self.last = Instant::now();
                self.tell_text(&format!("  {}: {text}", self.cell.title()));
            }
            None => {}
        }
    }

    /// Shows that the cell is done.
    pub(crate) fn done(mut self, report: &Report) {
        self.count(STEPS);
        let done = self.view.done.fetch_add(1, Ordering::SeqCst) + 1;
        let total = self.view.total;
        if let Some((_, overall)) = &self.view.bars {
            overall.set_message(format!("{done}/{total} cells"));
        }
        let (metric, best) = (report.metric, &report.best);
        // In a search over settings the report's "test" figure comes from validation rows.
        let tuning = self.cell.identity.experiment["split"]["tuning"] == Value::Bool(true);
        let rows = if tuning { "compared by" } else { "test" };
        let result = format!("{rows} {} (epoch {})", metric.phrase(best.test), best.epoch);
        let seconds = report.cost.seconds;
        self.event(
            "done",
            json!({"metric": metric, "test": best.test, "epoch": best.epoch, "seconds": seconds}),
        );
        self.end(&format!("[{done}/{total}] {}: {result}, {seconds:.1} s", self.cell.title()));
    }

    /// Shows that the cell was interrupted.
    pub(crate) fn interrupted(self) {
        self.event("interrupted", json!({}));
        self.end(&format!("interrupted: {}", self.cell.title()));
    }

    /// Hides the cell, because another process works on it.
    pub(crate) fn put_off(self) {
        if let (Some(bar), Some((bars, _))) = (&self.bar, &self.view.bars) {
            bars.remove(bar);
        }
    }

    /// Shows that the cell failed.
    pub(crate) fn failed(mut self, failure: &CellFailure) {
        self.count(STEPS);
        let (log, tail) = (failure::log(self.cell), failure::tail(self.cell));
        self.event("failed", json!({"problem": failure.problem, "log": log}));
        let (title, problem, log) = (self.cell.title(), &failure.problem, log.display());
        self.end(&format!("FAILED: {title}: {problem}; the end of {log}:\n  {}", tail.replace('\n', "\n  ")));
    }

    /// Returns the cell's remaining time at its current speed.
    fn remaining_time(&mut self, share: f64) -> Option<Duration> {
        let (since, from) = *self.first.get_or_insert((Instant::now(), share));
        let gone = share - from;
        (gone > 0.0).then(|| since.elapsed().mul_f64((1.0 - share).max(0.0) / gone))
    }

    fn event(&self, state: &str, more: Value) {
        let cell = self.cell;
        let mut event =
            json!({"event": "cell", "variant": cell.variant, "seed": cell.repetition.seed, "state": state});
        if let Some(fold) = cell.repetition.fold {
            event["fold"] = fold.into();
        }
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        self.view.event(event);
    }

    fn end(&self, text: &str) {
        if let (Some(bar), Some((bars, _))) = (&self.bar, &self.view.bars) {
            bar.finish_and_clear();
            bars.remove(bar);
        }
        self.tell_text(text);
    }

    /// Shows a line in the human-readable form; the JSON form has events instead.
    fn tell_text(&self, text: &str) {
        if self.view.log == LogForm::Human {
            self.view.say(text);
        }
    }

    fn count(&mut self, share: u64) {
        let step = share.saturating_sub(self.counted);
        self.counted += step;
        if let (Some(bar), Some((_, overall))) = (&self.bar, &self.view.bars) {
            bar.set_position(self.counted);
            overall.inc(step);
        }
    }
}

/// Formats a duration in one or two units.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5_999 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Returns true if the loss is part of a progress line. A program other than `fet` may have no loss.
fn shows_loss(loss: f64, cell: &Cell) -> bool {
    !loss.is_nan() || cell.identity.program.is_none()
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.4}") } else { "not a number".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_durations_in_two_units() {
        let check =
            |seconds: f64, expected: &str| assert_eq!(duration(Duration::from_secs_f64(seconds)), expected);
        check(0.2, "0 s");
        check(99.4, "99 s");
        check(100.0, "1 min 40 s");
        check(3_661.0, "61 min 01 s");
        check(7_260.0, "2 h 01 min");
    }
}
