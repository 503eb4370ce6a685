//! A party's saved state, in its own place: the last two states during a run, the best model at the end.
//!
//! The primary says when to save, and receives a checksum. After a crash it asks for the last epoch whose checkpoint it
//! has committed itself; one of the two states is of that epoch.

use std::fs;
use std::path::PathBuf;

use fet_core::message::Saved;
use serde::{Deserialize, Serialize};

use super::{SecondaryError, Session};
use crate::state_file::{Learned, StateError, StateFile, scalers};

/// Where a party keeps its state.
#[derive(Debug, Clone)]
pub enum Store {
    /// In memory; it ends with the process.
    Memory(Vec<(u32, Vec<u8>)>),
    /// In this folder, which is made when something is saved.
    Folder(PathBuf),
}

/// How many saved states are kept.
const GENERATIONS: usize = 2;
/// The file of the party's best model, once the run is over.
const MODEL: &str = "model.safetensors";

/// The header of a state file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    epoch: u32,
    settings_hash: [u8; 32],
    number: usize,
    steps: Vec<u64>,
}

/// The header of a model file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelHeader {
    party: String,
    number: usize,
    settings: String,
}

impl Session {
    pub(super) fn keep_best(&mut self) {
        self.best = self.encoder.learner().parameters().clone();
    }

    pub(super) fn save(&mut self, epoch: u32) -> Result<Saved, SecondaryError> {
        let Learned { parameters, steps } = Learned::of(self.encoder.learner(), &self.best);
        let header = Header { epoch, settings_hash: self.settings_hash, number: self.number, steps };
        let bytes = StateFile::new(&header, parameters, Vec::new()).to_bytes();
        let hash = fet_files::sha256(&bytes);
        self.store.save(epoch, bytes)?;
        Ok(Saved { epoch, hash })
    }

    pub(super) fn load(&mut self, saved: &Saved) -> Result<(), SecondaryError> {
        self.guard.check_load()?;
        let bytes = self.store.find(saved)?;
        let (header, file) = StateFile::read::<Header>(&bytes)?;
        if header.settings_hash != self.settings_hash || header.number != self.number {
            return Err(StateError::OtherRun.into());
        }
        self.best = Learned { parameters: file.parameters, steps: header.steps }
            .restore(self.encoder.learner_mut())?;
        self.guard.loaded(saved.epoch);
        Ok(())
    }

    /// Writes the best model, with the scalers for new records.
    pub(super) fn finish(&self, name: &str) -> Result<(), SecondaryError> {
        if self.blanked > 0 {
            (self.tell)(format!("{} blocks held NaN or infinity and were sent as zeros", self.blanked));
        }
        let settings = self.settings.to_toml();
        let header = ModelHeader { party: name.to_string(), number: self.number, settings };
        let scaled = &self.records.scaled;
        let scalers = scalers(scaled.key_scaler.as_ref(), scaled.feature_scaler.as_ref());
        Ok(self.store.finish(&StateFile::new(&header, self.best.clone(), scalers).to_bytes())?)
    }

    /// Removes the states saved during the run.
    pub(super) fn forget(&mut self) {
        match &mut self.store {
            Store::Memory(kept) => kept.clear(),
            Store::Folder(folder) => {
                for epoch in epochs(folder) {
                    let _ = fs::remove_file(folder.join(file_name(epoch)));
                }
            }
        }
    }
}

impl Store {
    fn save(&mut self, epoch: u32, bytes: Vec<u8>) -> Result<(), StateError> {
        match self {
            Self::Memory(kept) => {
                kept.retain(|(other, _)| *other < epoch);
                kept.push((epoch, bytes));
                kept.drain(..kept.len().saturating_sub(GENERATIONS));
            }
            Self::Folder(folder) => {
                let failed = |error| StateError::io(folder, error);
                fs::create_dir_all(&*folder).map_err(failed)?;
                let path = folder.join(file_name(epoch));
                fet_files::write(&path, &bytes).map_err(|error| StateError::io(&path, error))?;
                let mut epochs = epochs(folder);
                epochs.retain(|other| *other != epoch);
                // States after this epoch belong to steps that the run will do again.
                let later = epochs.iter().filter(|other| **other > epoch);
                let earlier = epochs.iter().filter(|other| **other < epoch).rev().skip(GENERATIONS - 1);
                for other in later.chain(earlier) {
                    // A file that cannot be removed does no harm: its checksum will not match.
                    let _ = fs::remove_file(folder.join(file_name(*other)));
                }
            }
        }
        Ok(())
    }

    fn find(&self, saved: &Saved) -> Result<Vec<u8>, StateError> {
        let missing = StateError::Missing { epoch: saved.epoch };
        let bytes = match self {
            Self::Memory(kept) => {
                kept.iter().find(|(epoch, _)| *epoch == saved.epoch).map(|(_, bytes)| bytes.clone())
            }
            Self::Folder(folder) => fs::read(folder.join(file_name(saved.epoch))).ok(),
        };
        let bytes = bytes.ok_or(missing)?;
        if fet_files::sha256(&bytes) == saved.hash {
            Ok(bytes)
        } else {
            Err(StateError::OtherContent { epoch: saved.epoch })
        }
    }

    fn finish(&self, model: &[u8]) -> Result<(), StateError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Folder(folder) => {
                fs::create_dir_all(folder).map_err(|error| StateError::io(folder, error))?;
                let path = folder.join(MODEL);
                fet_files::write(&path, model).map_err(|error| StateError::io(&path, error))
            }
        }
    }
}

fn file_name(epoch: u32) -> String {
    format!("state-{epoch}.safetensors")
}

/// The epochs whose states are in a folder, ascending.
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
