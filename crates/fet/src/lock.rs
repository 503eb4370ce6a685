//! A lock, so that only one process at a time works on a run's folder. It ends with the process, even after a crash.
//!
//! It is the operating system's file lock, so that a crash leaves nothing to clean up; on a shared folder it works
//! between machines if the file system supports that.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context;

use crate::folder::LOCK;

/// Takes the lock of `folder`; `None` if another process holds it.
pub(crate) fn take(folder: &Path) -> anyhow::Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    // Whoever only looks (`is_held`) has it for a moment.
    let mut tries = 0;
    let locked = loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if tries < 5 => {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            locked => break locked,
        }
    };
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
            fet_io::note!(
                "warning: {} cannot be locked here; do not start the same run twice",
                folder.display()
            );
            Ok(Some(file))
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Whether another process holds the lock of `folder`; where that cannot be known, it does not.
pub(crate) fn is_held(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Removes what killed processes left in the folder, and the file of a lock that is still held, once the run is complete: from then on the
/// report protects it.
pub(crate) fn leave(folder: &Path) {
    fet_io::sweep(folder);
    // A file that cannot be removed does no harm.
    let _ = std::fs::remove_file(folder.join(LOCK));
}
