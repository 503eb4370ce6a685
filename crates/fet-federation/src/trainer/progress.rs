//! Progress of a run.

use fet_core::learning_rate::Plateau;
use fet_core::privacy::{Releases, Tally};
use serde::{Deserialize, Serialize};

use super::EpochReport;

/// The progress of a run. A checkpoint needs it, and the primary's parameters and moments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Schedule of the step size.
    pub plateau: Plateau,
    /// Finished epochs.
    pub epochs: Vec<EpochReport>,
    /// Index into `epochs` of the best validation metric.
    pub best: Option<usize>,
    /// Number of representations that each secondary has released, in training and evaluation.
    pub released: u64,
    /// Planned releases of the whole run, without dropped-out parties.
    pub releases: Releases,
    /// Releases, one tally for each epoch. The test rows of every epoch count, even if they were not
    /// evaluated.
    pub tallies: Vec<Tally>,
    /// Number of earlier sessions of the run that are counted.
    pub sessions: u64,
    /// Upper bound on the releases of earlier sessions after their last checkpoint.
    pub lost: Vec<Tally>,
    /// Tables that the run began with.
    pub tables: Tables,
    /// Secondaries that dropped out, from 0; the primary does not contact them again.
    pub gone: Vec<usize>,
    /// True if the run ends here: another epoch or release would exceed the agreed cost, or the validation
    /// metric has not improved for the number of epochs in `train.early_stopping`.
    pub stopped: bool,
    /// Warnings about the cost of the run.
    pub warnings: Vec<String>,
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
