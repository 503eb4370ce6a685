//! The ages of other parties' lifetime accounts, as a party or the primary remembers them over runs.
//!
//! A party that puts back an old copy of its state has forgotten releases, and its account is younger than it was. A party that has
//! seen it older refuses the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fet_core::message::Age;

/// The greatest age that was seen of each party's account, by identity, in a file.
#[derive(Debug)]
pub struct Known {
    path: PathBuf,
    ages: BTreeMap<String, u64>,
}

/// A lifetime account is older in memory than it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its lifetime account has {found} records, and had {known} before: its state folder is an old copy, which has forgotten \
     releases. Its operator must put back the newest copy, or add what was released since with `fet ledger add --age {known}` (see its `--help`)"
)]
pub struct Older {
    /// Records when it was about to join.
    pub found: u64,
    /// Records that it had before.
    pub known: u64,
}

impl Known {
    /// Reads the ages from a file; none where there is no file.
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

    /// Remembers the age of a party's account; refuses one that was greater before.
    ///
    /// A refused party has aged by the line of the join. The remembered age grows by the same number, so that an old copy does not
    /// reach it by joining again.
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
