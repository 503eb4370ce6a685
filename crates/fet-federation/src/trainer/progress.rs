//! How far a run has come.

use fet_core::learning_rate::Plateau;
use fet_core::privacy::{Releases, Tally};
use serde::{Deserialize, Serialize};

use super::EpochReport;

/// The progress of a run: together with the primary's parameters and moments, all that its checkpoint needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The schedule of the step size.
    pub plateau: Plateau,
    /// The epochs that are done.
    pub epochs: Vec<EpochReport>,
    /// Index into `epochs` of the best validation metric.
    pub best: Option<usize>,
    /// The number of representations that each secondary has released, in training and evaluation.
    pub released: u64,
    /// What the run releases in all if it loses no party.
    pub releases: Releases,
    /// What was released, one tally for each epoch: the test rows of every epoch are counted, evaluated or not.
    pub tallies: Vec<Tally>,
    /// How many earlier sessions of the run are counted.
    pub sessions: u64,
    /// What they may have released since their last checkpoint, at most.
    pub lost: Vec<Tally>,
    /// The tables that the run began with.
    pub tables: Tables,
    /// Secondaries that were lost, from 0; they are not asked again.
    pub gone: Vec<usize>,
    /// Whether the run ends here: another epoch, or release, would cost more than was agreed, or the validation metric has not
    /// become better for as long as `train.early_stopping` says.
    pub stopped: bool,
    /// Warnings about what the run has cost.
    pub warnings: Vec<String>,
}

/// Digests of the parties' tables, by which a run notices that it would continue with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// The primary's, with its labels.
    pub primary: [u8; 32],
    /// What each secondary told of its own when it joined: keyed with a secret of that party. Nothing before it joined.
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
