//! Lock that lets only one process at a time work on a run's folder.
//!
//! The module uses the operating system's file lock. The lock ends with the process, even after a
//! crash. On a shared folder the lock works between machines if the file system supports this.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context;

use crate::folder::LOCK;

/// Takes the lock of `folder`; returns `None` if another process holds it.
pub(crate) fn take(folder: &Path) -> anyhow::Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    // A process that only tests the lock (`is_held`) holds it for a moment.
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

/// Returns true if another process holds the lock of `folder`; false if this cannot be determined.
pub(crate) fn is_held(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(LOCK)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Removes the temporary files of killed processes, and the lock file of a complete run, which its report
/// protects from then on.
pub(crate) fn leave(folder: &Path) {
    fet_io::sweep(folder);
    // A failed removal does no harm.
    let _ = std::fs::remove_file(folder.join(LOCK));
}
