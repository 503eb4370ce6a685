//! What a run releases and its privacy loss: the types of a privacy account. Nothing is computed here.

pub use fet_records::{Guarantee, Learning, Neighbouring, Spent};
use serde::{Deserialize, Serialize};

/// What a run releases, known before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Releases {
    /// Epochs of the run.
    pub epochs: usize,
    /// Training steps of an epoch.
    pub train_steps: usize,
    /// Batches of a validation and of a test evaluation. The test is counted in every epoch though it runs only after a
    /// best one, because whether it runs depends on what was released.
    pub evaluation_steps: usize,
    /// The largest number of rows in one release.
    pub rows: usize,
    /// All rows of the run.
    pub all_rows: usize,
    /// The number of secondaries in a training step.
    pub train_active: usize,
    /// The number of all secondaries, which is also that of an evaluation.
    pub active: usize,
    /// K·H.
    pub block: usize,
    /// Whether only sums over the parties are revealed.
    pub summed: bool,
}
