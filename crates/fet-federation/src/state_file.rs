//! A party's state as bytes: safetensors with a header and a checksum over everything.
//!
//! Secondaries and the primary both use this format. The metadata of the file has one entry, `fet`. It is
//! JSON with the header and the SHA-256 of header, names, shapes and values, so that a flipped bit is
//! detected anywhere. Random streams are keyed by the step, so a generator's state need not be saved. The
//! caller decides where to store the bytes.

use std::collections::HashMap;
use std::path::Path;

use fet_core::optimizer::Moments;
use fet_core::parameters::{ParameterError, Parameters};
use fet_core::trainable::Learner;
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A header and parameters.
#[derive(Debug)]
pub struct StateFile {
    header: serde_json::Value,
    /// 32-bit tensors.
    pub parameters: Parameters,
}

/// Error while state is saved or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The bytes are not a state file, or were changed after writing.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// The state belongs to another run.
    #[error(
        "the state belongs to another run, another party or other keys. A run with a privacy mechanism \
         cannot be continued if its linker encodes keys differently in each session"
    )]
    OtherRun,
    /// There is no state of that epoch.
    #[error("there is no saved state of epoch {epoch}. Start the run again")]
    Missing {
        /// The epoch, from 1.
        epoch: u32,
    },
    /// The state of that epoch does not belong to the primary's checkpoint.
    #[error(
        "the saved state of epoch {epoch} does not belong to the primary's checkpoint. Start the run again"
    )]
    OtherContent {
        /// The epoch, from 1.
        epoch: u32,
    },
    /// The party's table differs from the one that the run began with.
    #[error(
        "the table of \"{table}\" is not the one that the run began with (checksum {known}, now {found}): put the former table back, \
         or start a new run"
    )]
    OtherTable {
        /// Name of the table's file, or of its party.
        table: String,
        /// First digits of the former table's digest.
        known: String,
        /// First digits of the present table's digest.
        found: String,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {problem}")]
    Io {
        /// Path of the file.
        path: String,
        /// The problem.
        problem: String,
    },
    /// The ledger of a party's releases cannot be used.
    #[error(
        "{path} {rule}. This ledger records the party's releases in this run; without the ledger, the \
         party releases nothing more. Restore a valid copy. If this run needs no privacy guarantee, \
         you may instead move the party's folder away and start the run again"
    )]
    Ledger {
        /// Path of the file.
        path: String,
        /// The problem with the file.
        rule: String,
    },
    /// A party's lifetime account cannot be used.
    #[error(
        "{path} {rule}. This account records the party's releases in all its runs; without the account, \
         the party releases nothing more. Restore a valid copy, and add later releases with `fet \
         ledger add`"
    )]
    Lifetime {
        /// Path of the file.
        path: String,
        /// The problem with the file.
        rule: String,
    },
    /// The count of the records that were linked for predictions cannot be used.
    #[error(
        "{path} {rule}. This file counts the records that were linked for predictions. Restore a \
        valid copy"
    )]
    Predictions {
        /// Path of the file.
        path: String,
        /// The problem with the file.
        rule: String,
    },
    /// The party's own seed is not in its place.
    #[error(
        "{path} {rule}. The run's noise is derived from this secret seed; another seed would repeat \
         earlier releases with other noise. Restore a valid copy, or move the folder of the run away \
         and start the run again"
    )]
    Seed {
        /// Path of the file.
        path: String,
        /// The problem with the file.
        rule: String,
    },
    /// The operating system gave no randomness for a seed or a tag.
    #[error("the operating system returned no randomness: {0}")]
    NoRandomness(String),
    /// The state's parameters do not fit the model.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
}

impl StateError {
    pub(crate) fn io(path: &Path, error: impl std::fmt::Display) -> Self {
        Self::Io { path: path.display().to_string(), problem: error.to_string() }
    }
}

/// Name of the only entry of the metadata.
const ENTRY: &str = "fet";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    sha256: String,
    header: serde_json::Value,
}

impl StateFile {
    /// Makes a file with this header.
    pub fn new(header: &impl Serialize, parameters: Parameters) -> Self {
        let header = serde_json::to_value(header).expect("a header is plain data");
        Self { header, parameters }
    }

    /// Returns the file as bytes; equal content gives equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let floats: Vec<u8> = self.parameters.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut views: Vec<(String, TensorView<'_>)> = Vec::new();
        for segment in self.parameters.segments() {
            let bytes = &floats[4 * segment.range.start..4 * segment.range.end];
            let view = TensorView::new(Dtype::F32, segment.shape.clone(), bytes);
            views.push((segment.name.clone(), view.expect("a segment fills its shape")));
        }
        let parts = views.iter().map(|(name, view)| (name.as_str(), view.shape(), view.data()));
        let sha256 = checksum(&self.header, parts);
        let entry = Entry { sha256, header: self.header.clone() };
        let entry = serde_json::to_string(&entry).expect("an entry is plain data");
        let metadata = HashMap::from([(ENTRY.to_string(), entry)]);
        serialize(views, Some(metadata)).expect("names are distinct and shapes are filled")
    }

    /// Reads a file and its header; refuses a file that was changed after writing.
    pub fn read<H: DeserializeOwned>(bytes: &[u8]) -> Result<(H, Self), StateError> {
        let damaged = |error: &dyn std::fmt::Display| StateError::Damaged(error.to_string());
        // The reader's own messages name its internal types.
        let header = "its header is not that of safetensors, or is cut off";
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|_| damaged(&header))?;
        let entry = metadata.metadata().as_ref().and_then(|map| map.get(ENTRY));
        let entry = entry.ok_or_else(|| damaged(&"its header is missing"))?;
        let no_entry = "this program did not write its header";
        let Entry { sha256, header } = serde_json::from_str(entry).map_err(|_| damaged(&no_entry))?;
        let tensors =
            SafeTensors::deserialize(bytes).map_err(|_| damaged(&"its header does not match its tensors"))?;
        let mut names = tensors.names();
        names.sort_unstable();
        let views = names.into_iter().map(|name| Ok((name, tensors.tensor(name).map_err(|e| damaged(&e))?)));
        let views = views.collect::<Result<Vec<_>, StateError>>()?;
        let parts = views.iter().map(|(name, view)| (*name, view.shape(), view.data()));
        if checksum(&header, parts) != sha256 {
            return Err(damaged(&"its checksum does not match its content"));
        }
        let mut file = Self { header, parameters: Parameters::default() };
        for (name, view) in views {
            match view.dtype() {
                Dtype::F32 => {
                    let (words, _) = view.data().as_chunks::<4>();
                    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
                    file.parameters.push(name, view.shape(), &values);
                }
                _ => return Err(damaged(&format!("`{name}` does not hold 32-bit floats"))),
            }
        }
        let header = serde_json::from_value(file.header.clone()).map_err(|_| {
            damaged(&"its header belongs to another kind of file, or to another version of this program")
        })?;
        Ok((header, file))
    }
}

/// Returns the SHA-256 of a header and of tensors in the order of their names.
fn checksum<'a>(
    header: &serde_json::Value,
    parts: impl Iterator<Item = (&'a str, &'a [usize], &'a [u8])>,
) -> String {
    let mut parts: Vec<_> = parts.collect();
    parts.sort_unstable_by_key(|(name, ..)| *name);
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    add(header.to_string().as_bytes());
    for (name, shape, data) in parts {
        add(name.as_bytes());
        add(format!("{shape:?}").as_bytes());
        add(data);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The state of a learner: parameters, moments and the best parameters so far, as one list, and the number of
/// steps.
pub(crate) struct Learned {
    pub(crate) parameters: Parameters,
    pub(crate) steps: Vec<u64>,
}

impl Learned {
    pub(crate) fn from_learner(learner: &dyn Learner, best: &Parameters) -> Self {
        let (now, moments) = (learner.parameters(), learner.moments());
        let mut all = Parameters::default();
        append(&mut all, "now", now, now.values());
        if !moments.first.is_empty() {
            append(&mut all, "first", now, &moments.first);
            append(&mut all, "second", now, &moments.second);
        }
        append(&mut all, "best", best, best.values());
        Self { parameters: all, steps: moments.steps.clone() }
    }

    /// Restores the state into a learner of the same structure; returns the best parameters.
    pub(crate) fn restore(self, learner: &mut dyn Learner) -> Result<Parameters, StateError> {
        let [now, first, second, best] =
            ["now.", "first.", "second.", "best."].map(|prefix| self.parameters.part(prefix));
        if now.segments().len() != learner.parameters().segments().len() {
            return Err(StateError::Damaged("parameters of the model are missing".into()));
        }
        learner.load(&now)?;
        let in_order = |moments: &Parameters| -> Vec<f32> {
            let segments = learner.parameters().segments().iter();
            segments.filter_map(|segment| moments.get(&segment.name)).flatten().copied().collect()
        };
        let moments = Moments { first: in_order(&first), second: in_order(&second), steps: self.steps };
        let lengths = [moments.first.len(), moments.second.len()];
        if !lengths.iter().all(|&length| length == 0 || length == learner.parameters().values().len()) {
            return Err(StateError::Damaged("moments of the optimiser are missing".into()));
        }
        learner.restore(moments);
        // The file does not preserve the model's order of parameters.
        let mut ordered = Parameters::default();
        for segment in learner.parameters().segments() {
            if let Some(values) = best.get(&segment.name) {
                ordered.push(&segment.name, &segment.shape, values);
            }
        }
        Ok(ordered)
    }
}

/// Loads the parameters of another run's model into a learner, which must have exactly these parameters.
pub(crate) fn load_all(learner: &mut dyn Learner, parameters: &Parameters) -> Result<(), ParameterError> {
    learner.load(parameters)?;
    let found = |name: &str| parameters.segments().iter().any(|segment| segment.name == name);
    match learner.parameters().segments().iter().find(|segment| !found(&segment.name)) {
        Some(segment) => Err(ParameterError::Missing { name: segment.name.clone() }),
        None => Ok(()),
    }
}

fn append(all: &mut Parameters, prefix: &str, layout: &Parameters, values: &[f32]) {
    for segment in layout.segments() {
        all.push(&format!("{prefix}.{}", segment.name), &segment.shape, &values[segment.range.clone()]);
    }
}
