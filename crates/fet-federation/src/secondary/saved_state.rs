//! Saved state of a session: its seed, and the count of the records that the party has linked for predictions.

use fet_core::rng::OwnSeed;

use super::error::SecondaryError;
use super::policy::PredictionRules;
use super::state::Store;
use crate::state_file::StateError;

/// A session's storage.
pub(super) struct SavedState {
    pub(super) store: Store,
    /// True if the party's own seed is saved.
    pub(super) seed_kept: bool,
    pub(super) predictions: PredictionCount,
}

impl Drop for SavedState {
    fn drop(&mut self) {
        // If this fails, the file keeps a larger count.
        drop(self.predictions.close(&self.store));
    }
}

impl SavedState {
    /// Saves the party's own seed before any output that depends on it leaves.
    pub(super) fn keep_seed(&mut self, seed: &OwnSeed) -> Result<(), StateError> {
        if !self.seed_kept {
            self.store.keep_seed(seed)?;
            self.seed_kept = true;
        }
        Ok(())
    }
}

/// Part of the limit that is counted ahead: one in this number of records.
const AHEAD: u64 = 1_000;

/// Count of records for predictions.
///
/// The file always has at least the true count: the party counts a small part of the limit ahead, because writing a file safely
/// takes longer than a prediction. The session writes the true count when it ends; a killed party loses what it counted ahead.
#[derive(Debug, Default)]
pub(super) struct PredictionCount {
    /// True count; `None` before the first request of the session.
    counted: Option<u64>,
    /// Count in the file.
    written: u64,
}

impl PredictionCount {
    /// Counts records before they are linked, or refuses them.
    pub(super) fn count(
        &mut self,
        store: &Store,
        rules: PredictionRules,
        rows: usize,
    ) -> Result<(), SecondaryError> {
        let before = match self.counted {
            Some(counted) => counted,
            None => store.predictions()?,
        };
        let all = rules.count(before, rows)?;
        if rules.most > 0 && all > self.written {
            let ahead = all.saturating_add(rules.most / AHEAD).min(rules.most);
            store.keep_predictions(ahead)?;
            self.written = ahead;
        }
        self.counted = Some(all);
        Ok(())
    }

    /// Writes the true count. If this fails, the file keeps a larger one.
    pub(super) fn close(&mut self, store: &Store) -> Result<(), SecondaryError> {
        let Some(counted) = self.counted.filter(|counted| *counted < self.written) else { return Ok(()) };
        store.keep_predictions(counted)?;
        self.written = counted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fet_core::policy::Policy;

    use super::*;

    #[test]
    fn the_file_never_has_less_than_the_true_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::folder(folder.path().join("party"));
        let policy = Policy { predictions: true, most_predictions: 5_000, ..Policy::default() };
        let rules = PredictionRules::new(&policy);
        let mut all = 0;
        for session in 0..3 {
            let mut count = PredictionCount::default();
            let mut writes = 0;
            for _ in 0..20 {
                let before = store.predictions().expect("a number");
                count.count(&store, rules, 1).expect("within the limit");
                all += 1;
                let found = store.predictions().expect("a number");
                assert!((all..=all + 5).contains(&found), "{found} for {all}");
                writes += usize::from(found != before);
            }
            // Each write is for six records: one now and five ahead.
            assert_eq!(writes, 4);
            if session == 1 {
                // A killed party loses what it counted ahead, at most a thousandth of the limit.
                all = store.predictions().expect("a number");
                continue;
            }
            count.close(&store).expect("written");
            assert_eq!(store.predictions().expect("a number"), all);
        }
        let mut count = PredictionCount::default();
        let rest = (5_000 - all) as usize;
        assert!(count.count(&store, rules, rest + 1).is_err());
        count.count(&store, rules, rest).expect("exactly the limit");
        assert!(count.count(&store, rules, 1).is_err());
        assert_eq!(store.predictions().expect("a number"), 5_000);
    }
}
