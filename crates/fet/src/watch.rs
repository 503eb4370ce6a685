//! Shows the progress of a run: a bar on a terminal, plain lines elsewhere, or JSON lines
//! (`fet_eval::records::RunEvent`).
//!
//! This module computes nothing; `run` provides the content.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use fet_eval::Metric;
use fet_eval::records::{EpochReport, ReleaseRecord, Rows, RunEvent, Spent};
use fet_federation::trainer::StepReport;

use crate::parties::network::PartyNetwork;
use crate::reporter::Log;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress display of one run.
pub(crate) struct Watch<'a> {
    log: Log,
    epochs: usize,
    metric: Metric,
    bar: Option<ProgressBar>,
    /// First error from writing an event.
    untold: Option<std::io::Error>,
    last: Instant,
    /// Links to parties elsewhere.
    network: Option<&'a PartyNetwork>,
}

impl<'a> Watch<'a> {
    pub(crate) fn start(log: Log, epochs: usize, metric: Metric, rows: Rows) -> Self {
        let mut watch =
            Self { log, epochs, metric, bar: None, untold: None, last: Instant::now(), network: None };
        match log {
            Log::Json => watch.tell(&RunEvent::Start { epochs, metric, rows }),
            Log::Human => {
                fet_io::note!(
                    "{} training, {} validation, {} test rows",
                    rows.train,
                    rows.validation,
                    rows.test
                )
            }
        }
        watch
    }

    /// Adds the state of these parties to the display.
    pub(crate) fn parties(&mut self, network: Option<&'a PartyNetwork>) {
        self.network = network;
    }

    fn links(&self) -> String {
        self.network.map_or_else(String::new, |network| format!("  {}", network.line()))
    }

    pub(crate) fn epoch_begins(&mut self, epoch: usize, rows: usize) {
        if self.log == Log::Human && std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3}% {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(format!("epoch {epoch}/{}", self.epochs));
            self.bar = Some(bar);
        }
    }

    pub(crate) fn step(&mut self, epoch: usize, step: StepReport) {
        if let Some(network) = self.network {
            let done = 100 * step.rows / step.of.max(1);
            network.does(format!("epoch {epoch} of {}, {done} %", self.epochs));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(step.rows as u64);
            bar.set_message(format!(
                "loss {:.4}  {:.0} rows/s{}",
                step.loss,
                step.rows_per_second,
                self.links()
            ));
        }
        if self.log == Log::Json && self.last.elapsed() >= Duration::from_millis(250) {
            self.last = Instant::now();
            self.tell(&RunEvent::Progress {
                epoch,
                epochs: self.epochs,
                fraction: step.rows as f64 / step.of as f64,
                loss: step.loss,
                rows_per_second: step.rows_per_second,
            });
        }
    }

    pub(crate) fn epoch_ends(&mut self, report: &EpochReport, seconds: f64) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(network) = self.network {
            network.finished(report.epoch, self.epochs);
        }
        match self.log {
            Log::Json => self.tell(&RunEvent::Epoch {
                epoch: report.epoch,
                epochs: self.epochs,
                loss: report.train_loss,
                validation: report.validation,
                test: report.test,
                seconds,
            }),
            Log::Human => {
                let test =
                    report.test.map_or_else(String::new, |test| format!("  best so far, test {test:.4}"));
                fet_io::note!(
                    "epoch {:>3}/{}  loss {:.5}  validation {} {:.4}{test}  {seconds:.1} s{}",
                    report.epoch,
                    self.epochs,
                    report.train_loss,
                    self.metric,
                    report.validation,
                    self.links()
                );
            }
        }
    }

    /// Shows the privacy cost of the run for the secondaries' records.
    pub(crate) fn privacy(&self, spent: Option<&Spent>) {
        let Some((spent, guarantee)) = spent.and_then(|spent| Some((spent, spent.guarantee.as_ref()?)))
        else {
            return;
        };
        if self.log == Log::Human {
            let epsilon =
                spent.epsilon.map_or("no bound on ε".to_string(), |epsilon| format!("ε = {epsilon:.4}"));
            fet_io::note!("privacy of the secondaries' records: {epsilon}, δ = {}", spent.delta);
            guarantee.collusion().iter().for_each(|collusion| fet_io::note!("{collusion}"));
        }
    }

    /// Shows the privacy cost of the secondaries' releases.
    pub(crate) fn release(&self, release: Option<&ReleaseRecord>) {
        if self.log == Log::Human {
            let sentences = release.map(ReleaseRecord::sentences).unwrap_or_default();
            sentences.iter().for_each(|sentence| fet_io::note!("{sentence}"));
        }
    }

    /// Reports the end of the run.
    ///
    /// # Errors
    /// Returns the first error from writing an event.
    pub(crate) fn done(&mut self, report: &std::path::Path) -> std::io::Result<()> {
        if self.log == Log::Json {
            self.tell(&RunEvent::Done { report: report.to_path_buf() });
        }
        self.untold.take().map_or(Ok(()), Err)
    }

    /// Writes an event. The run continues if the write fails.
    fn tell(&mut self, event: &RunEvent) {
        // JSON cannot represent a path that is not UTF-8.
        let Ok(line) = serde_json::to_string(event) else { return };
        if let Err(error) = fet_io::answer(&format!("{line}\n")) {
            self.untold.get_or_insert(error);
        }
    }
}
