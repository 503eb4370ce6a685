//! Count of the records that a party has linked for predictions, over all runs.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::SecondaryError;
use super::policy::PredictionRules;
use crate::state_file::StateError;

/// File of the count in the party's own folder.
pub(super) const FILE: &str = "predictions";
/// Part of the limit that is counted ahead: one in this number of records.
const AHEAD: u64 = 1_000;

/// Count of records for predictions, which all sessions of a party share.
///
/// The file always has at least the true count: the party counts a small part of the limit ahead, because writing a file safely
/// takes longer than a prediction. A session writes the true count when it ends; a killed party loses what it counted ahead.
#[derive(Debug, Clone, Default)]
pub struct PredictionCount {
    /// The party's own folder; `None` for a count in memory.
    folder: Option<PathBuf>,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// True count; `None` before the first request.
    counted: Option<u64>,
    /// Count in the file.
    written: u64,
}

impl PredictionCount {
    /// Returns the count of the party with this folder.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder), counts: Arc::default() }
    }

    /// Counts records before they are linked, or refuses them.
    pub(super) fn count(&self, rules: PredictionRules, rows: usize) -> Result<(), SecondaryError> {
        let mut counts = self.lock();
        let before = match counts.counted {
            Some(counted) => counted,
            None => self.read()?,
        };
        let all = rules.count(before, rows)?;
        if rules.most > 0 && all > counts.written {
            let ahead = all.saturating_add(rules.most / AHEAD).min(rules.most);
            self.write(ahead)?;
            counts.written = ahead;
        }
        counts.counted = Some(all);
        Ok(())
    }

    /// Writes the true count. If this fails, the file keeps a larger one.
    pub(super) fn close(&self) -> Result<(), SecondaryError> {
        let mut counts = self.lock();
        let written = counts.written;
        let Some(counted) = counts.counted.filter(|counted| *counted < written) else { return Ok(()) };
        self.write(counted)?;
        counts.written = counted;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the count in the file, which is never less than the true count.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read(&self) -> Result<u64, StateError> {
        let Some(folder) = &self.folder else { return Ok(0) };
        let path = folder.join(FILE);
        let wrong = |rule: String| StateError::Predictions { path: path.display().to_string(), rule };
        match fet_io::read_to_string(&path) {
            Ok(text) => text.trim().parse().map_err(|_| wrong("must hold one number".into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(wrong(format!("cannot be read ({error})"))),
        }
    }

    fn write(&self, rows: u64) -> Result<(), StateError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(FILE);
        fs::create_dir_all(folder).map_err(|error| StateError::io(folder, error))?;
        fet_io::write_private(&path, format!("{rows}\n").as_bytes())
            .map_err(|error| StateError::io(&path, error))
    }
}

#[cfg(test)]
mod tests {
    use fet_core::policy::Policy;

    use super::*;

    fn rules(most: u64) -> PredictionRules {
        PredictionRules::new(&Policy { predictions: true, most_predictions: most, ..Policy::default() })
    }

    #[test]
    fn the_file_never_has_less_than_the_true_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || PredictionCount::in_folder(folder.path().join("party"));
        let rules = rules(5_000);
        let mut all = 0;
        for session in 0..3 {
            let count = open();
            let mut writes = 0;
            for _ in 0..20 {
                let before = count.read().expect("a number");
                count.count(rules, 1).expect("within the limit");
                all += 1;
                let found = count.read().expect("a number");
                assert!((all..=all + 5).contains(&found), "{found} for {all}");
                writes += usize::from(found != before);
            }
            // Each write is for six records: one now and five ahead.
            assert_eq!(writes, 4);
            if session == 1 {
                // A killed party loses what it counted ahead, at most a thousandth of the limit.
                all = count.read().expect("a number");
                continue;
            }
            count.close().expect("written");
            assert_eq!(count.read().expect("a number"), all);
        }
        let count = open();
        let rest = (5_000 - all) as usize;
        assert!(count.count(rules, rest + 1).is_err());
        count.count(rules, rest).expect("exactly the limit");
        assert!(count.count(rules, 1).is_err());
        assert_eq!(count.read().expect("a number"), 5_000);
    }

    #[test]
    fn sessions_at_the_same_time_share_the_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let count = PredictionCount::in_folder(folder.path().to_path_buf());
        let allowed = std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..4)
                .map(|_| {
                    let session = count.clone();
                    scope.spawn(move || {
                        let allowed = (0..100).filter(|_| session.count(rules(250), 1).is_ok()).count();
                        session.close().expect("written");
                        allowed
                    })
                })
                .collect();
            sessions.into_iter().map(|session| session.join().expect("no panic")).sum::<usize>()
        });
        assert_eq!(allowed, 250);
        assert_eq!(count.read().expect("a number"), 250);
    }

    #[test]
    fn a_damaged_count_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fet_io::write(&folder.path().join(FILE), b"many").expect("written");
        let count = PredictionCount::in_folder(folder.path().to_path_buf());
        let error = count.count(rules(5), 1).expect_err("no number").to_string();
        assert!(error.contains("must hold one number"), "{error}");
    }
}
