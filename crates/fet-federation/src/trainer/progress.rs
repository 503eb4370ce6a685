//! State of a run: its progress, the count of its releases, its warnings, and the time of its phases.

use std::time::Instant;

use fet_core::learning_rate::Plateau;
use fet_core::privacy::{Releases, Tally};
use serde::{Deserialize, Serialize};

pub use fet_eval::records::{EpochReport, Phases};

/// The progress of a run. A checkpoint holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Schedule of the step size.
    pub plateau: Plateau,
    /// Finished epochs.
    pub epochs: Vec<EpochReport>,
    /// Index into `epochs` of the best validation metric.
    pub best: Option<usize>,
    /// Tables that the run began with.
    pub tables: Tables,
    /// True if the run ends here: another epoch or release would exceed the agreed cost, or the validation
    /// metric has not improved for the number of epochs in `train.early_stopping`.
    pub stopped: bool,
}

/// The releases that the primary requested and received. A checkpoint holds the count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseCount {
    /// Number of requests for representations, in training and evaluation.
    pub requests: u64,
    /// Planned releases of the whole run, without dropped-out parties.
    pub planned: Releases,
    /// Releases, one tally for each epoch. The test rows of every epoch count, even if they were not
    /// evaluated.
    pub tallies: Vec<Tally>,
    /// Number of earlier sessions of the run that are counted.
    pub sessions: u64,
    /// Upper bound on the releases of earlier sessions after their last checkpoint.
    pub lost: Vec<Tally>,
    /// The epoch, from 0, to which a release counts now.
    pub epoch: usize,
}

impl ReleaseCount {
    /// Makes the count of a run that begins.
    pub(super) fn new(planned: Releases) -> Self {
        Self { requests: 0, planned, tallies: Vec::new(), sessions: 0, lost: Vec::new(), epoch: 0 }
    }

    /// Counts releases of the current epoch with `active` parties.
    pub(super) fn charge(&mut self, active: usize, releases: u64) {
        if self.tallies.len() <= self.epoch {
            self.tallies.resize(self.epoch + 1, Tally::default());
        }
        if let Some(last) = self.tallies.last_mut() {
            last.add(active, releases);
        }
    }

    /// Returns the releases so far by epoch, including releases of earlier sessions beyond their checkpoints.
    /// `frozen` is true if every row is released once in the whole run.
    pub(super) fn counted(&self, frozen: bool) -> Vec<Tally> {
        let Self { tallies, lost, .. } = self;
        if frozen {
            return [tallies.as_slice(), lost].concat();
        }
        let (last, before) =
            tallies.split_last().map_or((None, tallies.as_slice()), |(last, all)| (Some(last), all));
        let last = Tally::of_all(last.into_iter().chain(lost));
        before.iter().cloned().chain([last]).collect()
    }
}

/// Digests of the parties' tables, which detect that a run would continue with another table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// Digest of the primary's table, with its labels.
    pub primary: [u8; 32],
    /// Digest that each secondary sent when it joined, keyed with a secret of that party; `None` before it
    /// joined.
    pub secondaries: Vec<Option<[u8; 32]>>,
}

/// The report of a training step, for progress displays.
#[derive(Debug, Clone, Copy)]
pub struct StepReport {
    /// Rows trained on in this epoch so far.
    pub rows: usize,
    /// Rows of the epoch.
    pub of: usize,
    /// Mean training loss of the epoch so far.
    pub loss: f64,
    /// Training rows per second in this epoch so far.
    pub rows_per_second: f64,
}

/// All warnings of a run. Every warning of the primary's side is added here.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    all: Vec<String>,
    lasting: Vec<String>,
}

impl Warnings {
    /// Adds warnings that a resumed run finds again.
    pub(super) fn extend(&mut self, warnings: impl IntoIterator<Item = String>) {
        self.all.extend(warnings);
    }

    /// Adds a warning about an event, which a checkpoint holds for resumed runs.
    pub(super) fn add_lasting(&mut self, warning: String) {
        self.all.push(warning.clone());
        self.lasting.push(warning);
    }

    /// Returns true if a warning about an event contains `part`.
    pub(super) fn has_lasting(&self, part: &str) -> bool {
        self.lasting.iter().any(|warning| warning.contains(part))
    }

    /// Returns all warnings.
    pub(super) fn all(&self) -> &[String] {
        &self.all
    }

    /// Returns the warnings that a checkpoint holds.
    pub(super) fn lasting(&self) -> &[String] {
        &self.lasting
    }

    /// Continues with the warnings of a checkpoint.
    pub(super) fn restore(&mut self, lasting: Vec<String>) {
        self.all.extend(lasting.iter().cloned());
        self.lasting = lasting;
    }
}

/// A stopwatch for phases. The times change no result and are not part of a checkpoint.
pub(super) struct Stopwatch(Instant);

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Adds the time since the start or the last call.
    pub(super) fn lap(&mut self, phase: &mut f64) {
        let now = Instant::now();
        *phase += (now - self.0).as_secs_f64();
        self.0 = now;
    }
}
