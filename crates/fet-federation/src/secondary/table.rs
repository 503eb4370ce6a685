//! Identity of a party's table: a run continues only with the table that it began with.
//!
//! The party's own files hold the digest. The primary receives the digest keyed with the party's seed. The
//! primary cannot compare this value with a guessed table, and learns only whether the table is the same in
//! two sessions.

use fet_core::data::PartyTable;
use fet_core::rng::OwnSeed;

use super::Tell;
use crate::state_file::StateError;
use crate::table_digest::{of_table, short};

/// Digest of a party's table.
pub(super) struct TableIdentity {
    digest: [u8; 32],
    seed: OwnSeed,
    party: String,
    /// Name of the table's file, for the operator.
    file: String,
}

impl TableIdentity {
    pub(super) fn new(table: &PartyTable, seed: &OwnSeed, file: &str) -> Self {
        Self {
            digest: of_table(table),
            seed: seed.clone(),
            party: table.name.clone(),
            file: file.to_string(),
        }
    }

    /// Returns the digest for the party's own files.
    pub(super) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Returns the keyed digest for the primary.
    pub(super) fn keyed(&self) -> [u8; 32] {
        self.key(&self.digest)
    }

    fn key(&self, digest: &[u8; 32]) -> [u8; 32] {
        self.seed.keyed_digest("table", digest)
    }

    /// Returns both digests in the form that the primary may see.
    fn shown(&self, known: &[u8; 32]) -> [String; 2] {
        [short(&self.key(known)), short(&self.keyed())]
    }

    /// Refuses to continue a run that began with another table; the operator learns the name of the file.
    pub(super) fn check(&self, known: &[u8; 32], tell: &Tell) -> Result<(), StateError> {
        if *known == self.digest {
            return Ok(());
        }
        let [known, found] = self.shown(known);
        let error = StateError::OtherTable { table: self.party.clone(), known, found };
        tell(format!("{}: {error}", self.file));
        Err(error)
    }

    /// Returns a note for the operator if a finished model was trained on another table.
    pub(super) fn note(&self, trained: &[u8; 32]) -> Option<String> {
        if *trained == self.digest {
            return None;
        }
        let [known, found] = self.shown(trained);
        Some(format!(
            "{}: the table is not the one that the model was trained on (checksum {known}, now {found}): the model sees the records \
             as they are now",
            self.file
        ))
    }
}
