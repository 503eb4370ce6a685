//! A party's saved state, in its own storage: its seed, the last two states during a run, and the best model
//! at the end. The identity of its table belongs to each.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use fet_core::data::PartyTable;
use fet_core::experiment::CommonSettings;
use fet_core::message::Terms;
use fet_core::parameters::Parameters;
use fet_core::rng::OwnSeed;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::error::SecondaryError;
use crate::lifetime;
use crate::prepare::Preparing;
use crate::state_file::{StateError, StateFile};
use crate::table_digest::{of_table, short};

/// Storage of a party's state.
#[derive(Debug, Clone)]
pub enum Store {
    /// Memory; the state ends with the process.
    Memory(Vec<(u32, Vec<u8>)>),
    /// Folders, which are created at the first save.
    Folder {
        /// Folder of the state that outlives runs: the party's seed, and the ledgers of its releases.
        own: PathBuf,
        /// Folder of one run: its states and its model.
        run: PathBuf,
    },
}

/// File of a party's own seed.
const SEED: &str = "seed";
/// File that counts the records that were linked for predictions.
const PREDICTIONS: &str = "predictions";
/// Number of saved states that are kept.
const GENERATIONS: usize = 2;
/// File of the party's best model, once the run is over.
const MODEL: &str = "model.safetensors";

impl Store {
    /// Returns storage in one folder, that of a party in one run.
    pub fn folder(folder: PathBuf) -> Self {
        Self::Folder { own: folder.clone(), run: folder }
    }

    /// Returns the party's own seed: the saved one, or a new one from the operating system. A new seed is
    /// drawn only if the run has not `begun` and the party's folder contains no files that depend on a seed.
    pub fn own_seed(&self, begun: bool) -> Result<OwnSeed, StateError> {
        if let Self::Folder { own: folder, .. } = self {
            let path = folder.join(SEED);
            let wrong = |rule: &str| StateError::Seed { path: path.display().to_string(), rule: rule.into() };
            match fet_io::read(&path) {
                Ok(bytes) => {
                    let bytes = Zeroizing::new(bytes);
                    return OwnSeed::from_file(&bytes).ok_or_else(|| wrong("is damaged"));
                }
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(wrong(&format!("cannot be read ({error})")));
                }
                // An incompletely written seed was never used.
                Err(_)
                    if begun
                        || has_entries_but(folder, |name| {
                            // These accounts may be older than the seed, for example in a folder for another
                            // table.
                            let accounts = [PREDICTIONS, lifetime::FILE, lifetime::OTHERS];
                            name.starts_with(&format!("{SEED}.")) || accounts.contains(&name)
                        }) =>
                {
                    return Err(wrong("is missing"));
                }
                Err(_) => {}
            }
        }
        random().map(|bytes| OwnSeed::new(*Zeroizing::new(bytes)))
    }

    /// Saves a party's own seed in a file that only its owner may read; refuses if the file holds another
    /// seed. A simulated seed, or that of a party with state in memory, needs no file.
    pub fn keep_seed(&self, seed: &OwnSeed) -> Result<(), StateError> {
        let (Self::Folder { own: folder, .. }, Some(bytes)) = (self, seed.to_file()) else { return Ok(()) };
        let path = folder.join(SEED);
        match fet_io::read(&path).map(Zeroizing::new) {
            Ok(found) if *found == *bytes => Ok(()),
            Ok(_) => {
                let rule = "does not hold the seed that this session began with".to_string();
                Err(StateError::Seed { path: path.display().to_string(), rule })
            }
            Err(_) => fet_io::write_private(&path, &bytes).map_err(|error| StateError::io(&path, error)),
        }
    }

    /// Returns the number of records that were linked for predictions, over all runs.
    ///
    /// # Errors
    /// Returns an error if the file with the number cannot be read.
    pub fn predictions(&self) -> Result<u64, StateError> {
        let Self::Folder { own: folder, .. } = self else { return Ok(0) };
        let path = folder.join(PREDICTIONS);
        let wrong = |rule: String| StateError::Predictions { path: path.display().to_string(), rule };
        match fet_io::read_to_string(&path) {
            Ok(text) => text.trim().parse().map_err(|_| wrong("must hold one number".into())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(wrong(format!("cannot be read ({error})"))),
        }
    }

    /// Writes the number of records that were linked for predictions.
    pub(super) fn keep_predictions(&self, rows: u64) -> Result<(), StateError> {
        let Self::Folder { own: folder, .. } = self else { return Ok(()) };
        let path = folder.join(PREDICTIONS);
        fs::create_dir_all(folder).map_err(|error| StateError::io(folder, error))?;
        fet_io::write_private(&path, format!("{rows}\n").as_bytes())
            .map_err(|error| StateError::io(&path, error))
    }

    pub(super) fn save(&mut self, epoch: u32, bytes: Vec<u8>) -> Result<(), StateError> {
        match self {
            Self::Memory(kept) => {
                kept.retain(|(other, _)| *other < epoch);
                kept.push((epoch, bytes));
                kept.drain(..kept.len().saturating_sub(GENERATIONS));
            }
            Self::Folder { run: folder, .. } => {
                let failed = |error| StateError::io(folder, error);
                fs::create_dir_all(&*folder).map_err(failed)?;
                let path = folder.join(file_name(epoch));
                fet_io::write(&path, &bytes).map_err(|error| StateError::io(&path, error))?;
                let mut epochs = epochs(folder);
                epochs.retain(|other| *other != epoch);
                // States after this epoch belong to steps that the run will repeat.
                let later = epochs.iter().filter(|other| **other > epoch);
                let earlier = epochs.iter().filter(|other| **other < epoch).rev().skip(GENERATIONS - 1);
                for other in later.chain(earlier) {
                    // A file that cannot be removed is harmless: its tag will not match.
                    let _ = fs::remove_file(folder.join(file_name(*other)));
                }
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, epoch: u32) -> Result<Vec<u8>, StateError> {
        let missing = StateError::Missing { epoch };
        let bytes = match self {
            Self::Memory(kept) => {
                kept.iter().find(|(kept, _)| *kept == epoch).map(|(_, bytes)| bytes.clone())
            }
            Self::Folder { run: folder, .. } => fet_io::read(&folder.join(file_name(epoch))).ok(),
        };
        bytes.ok_or(missing)
    }

    pub(super) fn finish(&self, model: &[u8]) -> Result<(), StateError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Folder { run: folder, .. } => {
                fs::create_dir_all(folder).map_err(|error| StateError::io(folder, error))?;
                let path = folder.join(MODEL);
                fet_io::write(&path, model).map_err(|error| StateError::io(&path, error))
            }
        }
    }

    /// Removes the states saved during the run, including incomplete files of a killed process.
    pub(super) fn forget(&mut self) {
        match self {
            Self::Memory(kept) => kept.clear(),
            Self::Folder { run: folder, own } => {
                for epoch in epochs(folder) {
                    let _ = fs::remove_file(folder.join(file_name(epoch)));
                }
                fet_io::sweep(folder);
                fet_io::sweep(own);
            }
        }
    }
}

/// Returns bytes drawn by the operating system.
pub(super) fn random() -> Result<[u8; 32], StateError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| StateError::NoRandomness(error.to_string()))?;
    Ok(bytes)
}

/// Returns true if a folder has any entry.
pub(crate) fn has_entries(folder: &std::path::Path) -> bool {
    has_entries_but(folder, |_| false)
}

/// Returns true if a folder has any entry whose name `leave_out` does not match.
fn has_entries_but(folder: &std::path::Path, leave_out: impl Fn(&str) -> bool) -> bool {
    let counts = |entry: fs::DirEntry| !leave_out(&entry.file_name().to_string_lossy());
    fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(counts))
}

fn file_name(epoch: u32) -> String {
    format!("state-{epoch}.safetensors")
}

/// Returns the epochs whose states are in a folder, ascending.
fn epochs(folder: &std::path::Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let epoch = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.strip_prefix("state-")?.strip_suffix(".safetensors")?.parse().ok()
    };
    let mut epochs: Vec<u32> = entries.filter_map(|entry| epoch(entry.ok()?)).collect();
    epochs.sort_unstable();
    epochs
}

/// The header of a model file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) party: String,
    pub(super) number: usize,
    /// Common settings of the training.
    pub(super) settings: String,
    pub(super) preparing: Preparing,
    /// Digest of the training table.
    pub(super) table: [u8; 32],
}

/// A finished model that a party serves.
#[derive(Debug, Clone)]
pub struct FinishedModel {
    model: Model,
    /// Parameters by name.
    pub(super) parameters: Parameters,
}

impl Model {
    pub(super) fn to_bytes(&self, parameters: Parameters) -> Vec<u8> {
        StateFile::new(self, parameters).to_bytes()
    }
}

impl FinishedModel {
    /// Reads a model file.
    pub fn read(bytes: &[u8]) -> Result<Self, StateError> {
        let (model, file) = StateFile::read::<Model>(bytes)?;
        Ok(Self { model, parameters: file.parameters })
    }

    /// Returns the digest of the training table.
    pub(super) fn table(&self) -> &[u8; 32] {
        &self.model.table
    }

    /// Returns true if the model belongs to the secondary with this number, from 1, in a run with these
    /// settings.
    pub fn is_of(&self, number: usize, settings: &CommonSettings) -> bool {
        self.model.number == number && self.model.settings == settings.to_toml()
    }

    /// Returns the preparation of records for the model; refuses the model of another party or of other
    /// settings.
    pub(super) fn preparing(
        &self,
        terms: &Terms,
        settings: &CommonSettings,
    ) -> Result<Preparing, SecondaryError> {
        if !self.is_of(terms.number, settings) {
            return Err(StateError::OtherRun.into());
        }
        Ok(self.model.preparing.clone())
    }

    /// Returns the preparation of records for training that begins with the model; refuses another party's
    /// model.
    pub(super) fn beginning(&self, terms: &Terms) -> Result<Preparing, SecondaryError> {
        let Model { party, number, preparing, .. } = &self.model;
        if (party, *number) != (&terms.name, terms.number) {
            return Err(SecondaryError::OtherModel { party: party.clone(), number: *number });
        }
        Ok(preparing.clone())
    }
}

/// Identity of a party's table: a run continues only with the table that it began with.
///
/// The party's own files hold the digest. The primary receives the digest keyed with the party's seed. The
/// primary cannot compare this value with a guessed table, and learns only whether the table is the same in
/// two sessions.
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
    pub(super) fn check(&self, known: &[u8; 32], tell: &dyn Fn(String)) -> Result<(), StateError> {
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
