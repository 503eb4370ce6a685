//! Contents of a party's state folder: runs, counted predictions, the lifetime account, and the used space.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fet_core::policy::Policy;
use fet_federation::secondary::PredictionCount;

use super::super::approval::{Approvals, Known};
use super::super::audit_log::{self, AuditEvent};
use super::super::prune::folders;
use super::super::run_id::RunId;
use super::super::setup::own_folder;
use crate::folder::MODEL;
use crate::ledger::{self, AccountSummary};

/// Time for which a view of the folder is shown again, so that requests cannot keep the disk busy.
const FRESH: Duration = Duration::from_secs(2);

/// Number of shown events of the audit log.
const EVENTS: usize = 30;

/// State folder of a party, and the party's policy.
pub(super) struct StateFolder {
    folder: PathBuf,
    policy: Policy,
    seen: Mutex<Option<(Instant, Arc<StateView>)>>,
}

/// View of a state folder at one moment.
pub(super) struct StateView {
    pub(super) runs: Vec<StoredRun>,
    /// Size of all files, in bytes.
    pub(super) bytes: u64,
    /// New records that were linked for predictions over all runs, or the reason why the number is unknown.
    pub(super) predictions: Result<u64, String>,
    /// True if the policy allows predictions.
    pub(super) allows_predictions: bool,
    /// Maximum of `predictions`, if there is one.
    pub(super) most_predictions: Option<u64>,
    /// Lifetime account, if the party has one, or the reason why it cannot be read.
    pub(super) account: Result<Option<Arc<AccountSummary>>, String>,
    /// Approvals of the owner, or the reason why they cannot be read.
    pub(super) approvals: Result<Vec<Known>, String>,
    /// Latest events of the audit log, the last one first, or the reason why they cannot be read.
    pub(super) events: Result<Vec<AuditEvent>, String>,
    /// File of the account when it was read.
    account_file: Option<(u64, SystemTime)>,
}

/// Files of a run.
pub(super) struct StoredRun {
    pub(super) id: String,
    pub(super) changed: Option<SystemTime>,
    /// True if the run's model is there.
    pub(super) finished: bool,
    pub(super) bytes: u64,
}

impl StateFolder {
    pub(super) fn new(folder: PathBuf, policy: Policy) -> Self {
        Self { folder, policy, seen: Mutex::default() }
    }

    /// Returns the contents of the folder.
    pub(super) fn look(&self) -> Arc<StateView> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, view)) = seen.as_ref().filter(|(when, _)| when.elapsed() < FRESH) {
            return Arc::clone(view);
        }
        let view = Arc::new(self.read(seen.as_ref().map(|(_, view)| view.as_ref())));
        *seen = Some((Instant::now(), Arc::clone(&view)));
        view
    }

    fn read(&self, before: Option<&StateView>) -> StateView {
        let own = own_folder(&self.folder);
        let account_file = stamp(&own.join(fet_federation::lifetime::FILE));
        // The account takes time to compose, and changes with its file alone.
        let account = match before.filter(|before| before.account_file == account_file) {
            Some(before) => before.account.clone(),
            None => ledger::summary(&self.folder, &self.policy)
                .map(|account| account.map(Arc::new))
                .map_err(|error| error.to_string()),
        };
        let runs = folders(&self.folder.join("runs")).unwrap_or_default();
        let run = |(id, folder): (RunId, PathBuf)| {
            let (bytes, changed) = extent(&folder);
            StoredRun { id: id.to_string(), changed, finished: folder.join(MODEL).exists(), bytes }
        };
        let mut runs: Vec<StoredRun> = runs.into_iter().map(run).collect();
        runs.sort_by_key(|run| Reverse(run.changed));
        let approvals = Approvals::all(&own).map_err(|problem| problem.to_string());
        let events = audit_log::latest(&own, EVENTS);
        let predictions = PredictionCount::in_folder(own).read();
        let most = self.policy.most_predictions;
        StateView {
            runs,
            bytes: extent(&self.folder).0,
            predictions: predictions.map_err(|error| error.to_string()),
            allows_predictions: self.policy.predictions,
            most_predictions: (self.policy.predictions && most > 0).then_some(most),
            account,
            approvals,
            events,
            account_file,
        }
    }
}

/// Returns the size and the time of a file.
fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let data = path.metadata().ok()?;
    Some((data.len(), data.modified().ok()?))
}

/// Returns the size of all files below a folder, and the time of the last change there. Files that disappear meanwhile do not count.
fn extent(folder: &Path) -> (u64, Option<SystemTime>) {
    let mut bytes = 0;
    let mut changed = folder.metadata().and_then(|data| data.modified()).ok();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        let (size, time) = match data.is_dir() {
            true => extent(&entry.path()),
            false => (data.len(), data.modified().ok()),
        };
        bytes += size;
        changed = changed.max(time);
    }
    (bytes, changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_runs_sizes_and_predictions() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, bytes: usize| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, "7".repeat(bytes)).expect("written");
        };
        let (done, open) = ("a".repeat(32), "b".repeat(32));
        write(&format!("runs/{done}/model.safetensors"), 100);
        write(&format!("runs/{open}/state-1.safetensors"), 10);
        write("runs/notes/file", 1);
        write("party/predictions", 2);
        let policy = Policy { predictions: true, most_predictions: 100, ..Policy::default() };
        let state = StateFolder::new(folder.path().to_path_buf(), policy);
        let view = state.look();
        assert_eq!(view.bytes, 113);
        assert_eq!((view.predictions.clone(), view.most_predictions), (Ok(77), Some(100)));
        assert!(matches!(view.account, Ok(None)));
        let mut found: Vec<_> = view.runs.iter().map(|run| (&run.id, run.finished, run.bytes)).collect();
        found.sort_unstable();
        assert_eq!(found, [(&done, true, 100), (&open, false, 10)]);
        // A damaged account is a reason, and not an empty account.
        write("party/lifetime.jsonl", 0);
        std::fs::write(folder.path().join("party/lifetime.jsonl"), "no account\n").expect("written");
        let damaged = state.read(Some(&view)).account;
        assert!(damaged.is_err_and(|problem| problem.contains("is damaged")));
    }
}
