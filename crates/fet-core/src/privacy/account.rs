//! What a run releases, and what that costs: the nouns of a privacy account. Nothing is computed here.

pub use fet_records::{Guarantee, Learning, Neighbouring, Spent};
use serde::{Deserialize, Serialize};

/// What a run releases, known before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Releases {
    /// Epochs of the run.
    pub epochs: usize,
    /// Training steps of an epoch.
    pub train_steps: usize,
    /// Batches of an evaluation of the validation rows, and of one of the test rows, which is counted in every epoch
    /// though it is made only after a best one: whether it is made depends on what was released.
    pub evaluation_steps: usize,
    /// The most rows of one release.
    pub rows: usize,
    /// All rows of the run.
    pub all_rows: usize,
    /// How many secondaries take part in a training step.
    pub train_active: usize,
    /// How many there are; all take part in an evaluation.
    pub active: usize,
    /// K·H.
    pub block: usize,
    /// Whether only sums over the parties become known.
    pub summed: bool,
}
