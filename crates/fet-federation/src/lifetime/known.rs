//! Ages of other parties' lifetime accounts, which a party or the primary remembers over runs.
//!
//! A party that restores an old copy of its state loses track of releases, and its account becomes younger. A
//! party that has seen the account older refuses the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fet_core::message::Age;

/// The greatest known age of each party's account, by identity, in a file.
#[derive(Debug)]
pub struct Known {
    path: PathBuf,
    ages: BTreeMap<String, u64>,
}

/// Error: a lifetime account is younger than it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its lifetime account has {found} records, but had {known} before: its state folder is an old copy \
     without the latest releases. Its operator must restore the newest copy, or add the missing \
     releases with `fet ledger add --age {known}` (see its `--help`)"
)]
pub struct Older {
    /// Number of records when the party was about to join.
    pub found: u64,
    /// Number of records that the account had before.
    pub known: u64,
}

impl Known {
    /// Reads the ages from a file; a missing file is empty.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |error: String| format!("{}: {error}", path.display());
        let ages = match fet_io::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            bytes => {
                let bytes = bytes.map_err(|error| failed(error.to_string()))?;
                serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?
            }
        };
        Ok(Self { path: path.to_path_buf(), ages })
    }

    /// Remembers the age of a party's account; refuses an account that was older before.
    ///
    /// Joining adds a line to the refused party's account, so that it grows older. The remembered age grows
    /// by the same number, so that an old copy cannot reach it by joining again.
    pub fn see(&mut self, identity: &str, age: Age) -> Result<(), Older> {
        let known = self.ages.get(identity).copied().unwrap_or(0);
        if age.found < known {
            let known = known.saturating_add(age.now.saturating_sub(age.found));
            self.ages.insert(identity.to_string(), known);
            return Err(Older { found: age.found, known });
        }
        if age.now > known {
            self.ages.insert(identity.to_string(), age.now);
        }
        Ok(())
    }

    /// Writes the ages into the file.
    pub fn keep(&self) -> std::io::Result<()> {
        fet_io::write(&self.path, format!("{}\n", serde_json::json!(self.ages)).as_bytes())
    }
}
