//! What is seen while cells run: bars on a terminal, plain lines elsewhere; on standard error.
//!
//! The result of the study is not told here; `table` does that.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::event::Event;
use super::report::Report;

/// The view of a whole study.
pub(crate) struct View {
    bars: Option<(MultiProgress, ProgressBar)>,
    done: AtomicUsize,
    total: usize,
}

/// The view of one running cell.
pub(crate) struct Line<'a> {
    view: &'a View,
    title: String,
    bar: Option<ProgressBar>,
    /// Thousandths of the cell that the overall bar counts already.
    counted: u64,
    last: Instant,
}

/// The overall bar counts this much per cell.
const STEPS: u64 = 1000;

/// Where there is no terminal, a cell's epochs are told no more often than this.
const PAUSE: Duration = Duration::from_secs(10);

impl View {
    /// A view of `total` cells of which `done` need not run.
    pub(crate) fn new(done: usize, total: usize) -> Self {
        let missing = (total - done) as u64;
        let bars = (stderr().is_terminal() && missing > 0).then(|| {
            let bars = MultiProgress::new();
            let overall = bars.add(ProgressBar::new(missing * STEPS));
            overall.set_style(style("{bar:30} {msg}  {elapsed} gone, {eta} left"));
            overall.set_message(format!("{done}/{total} cells"));
            overall.enable_steady_tick(Duration::from_millis(500));
            (bars, overall)
        });
        Self { bars, done: AtomicUsize::new(done), total }
    }

    /// A cell starts.
    pub(crate) fn begin(&self, title: &str) -> Line<'_> {
        let bar = self.bars.as_ref().map(|(bars, _)| {
            let bar = bars.add(ProgressBar::new(STEPS));
            bar.set_style(style("  {bar:12} {prefix}  {msg}"));
            bar.set_prefix(title.to_string());
            bar
        });
        Line { view: self, title: title.to_string(), bar, counted: 0, last: Instant::now() }
    }

    fn say(&self, text: &str) {
        match &self.bars {
            // Where the terminal has gone there is nobody to tell.
            Some((bars, _)) => drop(bars.println(text)),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some((_, overall)) = &self.bars {
            overall.finish_and_clear();
        }
    }
}

impl Line<'_> {
    /// The cell's run says how far it is.
    pub(crate) fn tell(&mut self, event: &Event) {
        let Some(share) = event.share() else { return };
        let text = match *event {
            Event::Progress { epoch, epochs, loss, rows_per_second, .. } => {
                let speed = rows_per_second.map_or_else(String::new, |speed| format!("  {speed:.0} rows/s"));
                format!("epoch {epoch}/{epochs}  loss {}{speed}", number(loss))
            }
            Event::Epoch { epoch, epochs, loss, validation } => {
                format!("epoch {epoch}/{epochs}  loss {}  validation {}", number(loss), number(validation))
            }
            Event::Other => return,
        };
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                self.count((share * STEPS as f64) as u64);
            }
            None if matches!(event, Event::Epoch { .. }) && self.last.elapsed() >= PAUSE => {
                self.last = Instant::now();
                eprintln!("  {}: {text}", self.title);
            }
            None => {}
        }
    }

    /// The cell is done.
    pub(crate) fn done(mut self, report: &Report, elapsed: Duration) {
        self.count(STEPS);
        let done = self.view.done.fetch_add(1, Ordering::SeqCst) + 1;
        let total = self.view.total;
        if let Some((_, overall)) = &self.view.bars {
            overall.set_message(format!("{done}/{total} cells"));
        }
        let (metric, best) = (&report.metric, &report.best);
        let result = format!("test {} (epoch {})", metric.phrase(best.test), best.epoch);
        let seconds = elapsed.as_secs_f64();
        self.end(&format!("[{done}/{total}] {}: {result}, {seconds:.1} s", self.title));
    }

    /// The cell was interrupted.
    pub(crate) fn interrupted(self) {
        self.end(&format!("interrupted: {}", self.title));
    }

    /// The cell failed.
    pub(crate) fn failed(mut self, problem: &str) {
        self.count(STEPS);
        self.end(&format!("FAILED: {}: {problem}", self.title));
    }

    fn end(&self, text: &str) {
        if let (Some(bar), Some((bars, _))) = (&self.bar, &self.view.bars) {
            bar.finish_and_clear();
            bars.remove(bar);
        }
        self.view.say(text);
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

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "not a number".to_string(), |value| format!("{value:.4}"))
}
