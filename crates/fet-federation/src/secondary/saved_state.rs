//! A session's part in the party's saved state: its seed, and the count of records for predictions.

use fet_core::rng::OwnSeed;

use super::prediction_count::PredictionCount;
use super::state::Store;
use crate::state_file::StateError;

/// A session's storage.
pub(super) struct SavedState {
    pub(super) store: Store,
    /// True if the party's own seed is saved.
    seed_kept: bool,
    pub(super) predictions: PredictionCount,
}

impl Drop for SavedState {
    fn drop(&mut self) {
        // If this fails, the file keeps a larger count.
        drop(self.predictions.close());
    }
}

impl SavedState {
    pub(super) fn new(store: Store) -> Self {
        Self { predictions: store.prediction_count(), store, seed_kept: false }
    }

    /// Saves the party's own seed before any output that depends on it leaves.
    pub(super) fn keep_seed(&mut self, seed: &OwnSeed) -> Result<(), StateError> {
        if !self.seed_kept {
            self.store.keep_seed(seed)?;
            self.seed_kept = true;
        }
        Ok(())
    }
}
