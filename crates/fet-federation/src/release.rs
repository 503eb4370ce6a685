//! Releases that secondaries make once: made or read again, and joined to the primary's table as columns.
//!
//! A release is written into its secondary's folder before the training begins. A run that is resumed reads it
//! from there, so that the same release has the same bytes. The noise follows from the secondary's seed and
//! from a digest of all inputs: another table or another setting never gets the noise of an earlier release.

mod places;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fet_core::data::{Columns, DataError, Features, Matrix, PartyTable, Values, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::labels::LabelPrivacy;
use fet_core::privacy::Randomness;
use fet_core::registry::{Slot, Violation};
use fet_core::release::{Places, Release, ReleaseRecord, Released};
use fet_core::rng::{OwnSeed, Purpose};
use fet_eval::records::GateRecord;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use self::places::{OwnPlaces, WrongPlaces};
use crate::table_digest;

/// File of a secondary's release in its folder.
const FILE: &str = "release.json";

/// A release in the folder of its secondary.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptRelease {
    /// Digest of the settings and the table. It has no key, so that it confirms a guess of the table: the file
    /// is for the secondary alone.
    made_from: String,
    released: Released,
}

/// Failure to read or write a release in the folder of its secondary.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ReleaseError {
    path: String,
    problem: String,
}

impl ReleaseError {
    fn new(path: &Path, problem: impl std::fmt::Display) -> Self {
        Self { path: path.display().to_string(), problem: problem.to_string() }
    }
}

/// The release that an experiment's settings name.
pub(crate) struct NamedRelease {
    /// The settings as text.
    settings: String,
    pub(crate) component: Box<dyn Release>,
}

impl NamedRelease {
    /// Builds the release of these settings; `None` if they have none.
    pub(crate) fn build(settings: Option<&Slot<dyn Release>>) -> Result<Option<Self>, Violation> {
        let Some(slot) = settings else { return Ok(None) };
        Ok(Some(Self { settings: slot.settings().to_string(), component: slot.build(&())? }))
    }

    /// Returns the digest of everything that determines a release, except the seed.
    pub(crate) fn made_from(&self, table: &PartyTable, places: Option<&Places>) -> [u8; 32] {
        let mut hash = Sha256::new().chain_update(b"fet release, 1");
        for part in [self.settings.as_bytes(), table.name.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(table_digest::of_table(table));
        if let Some(Places { keys, labels, symbols, label_truth, offers }) = places {
            let numbers =
                labels.iter().map(|label| label.map_or(0, |label| label + 1)).chain(offers.iter().copied());
            let numbers = std::iter::once(*symbols).chain(numbers);
            hash.update((keys.len() as u64).to_le_bytes());
            keys.iter().for_each(|key| hash.update(key.to_le_bytes()));
            numbers.for_each(|number| hash.update((number as u64).to_le_bytes()));
            if *label_truth < 1.0 {
                hash.update(label_truth.to_bits().to_le_bytes());
            }
        }
        hash.finalize().into()
    }

    /// Returns the release in a secondary's folder; `None` if there is none.
    ///
    /// # Errors
    /// The release is damaged, or has other settings or another table.
    pub(crate) fn kept(
        &self,
        (table, places): (&PartyTable, Option<&Places>),
        folder: &Path,
    ) -> Result<Option<KeptRelease>, ReleaseError> {
        let Some(kept) = read(folder)? else { return Ok(None) };
        if kept.made_from == fet_io::hex(&self.made_from(table, places)) {
            let is_whole =
                kept.released.party == table.name && self.component.is_whole(&kept.released, places);
            return if is_whole { Ok(Some(kept)) } else { Err(damaged(&folder.join(FILE))) };
        }
        let problem = format!(
            "holds the release of another table of \"{}\", or one with other settings or rows of the primary. Another release \
             would add to its ε. Restore the table, the settings and the rows, or use another folder",
            table.name
        );
        Err(ReleaseError::new(&folder.join(FILE), problem))
    }

    /// Makes a secondary's release with noise from the secondary's own seed.
    ///
    /// # Errors
    /// The table does not fit the settings.
    pub(crate) fn make(
        &self,
        (table, places): (&PartyTable, Option<&Places>),
        seed: &OwnSeed,
    ) -> Result<KeptRelease, DataError> {
        let digest = self.made_from(table, places);
        let mut noise = seed.stream_over(Purpose::Release, 0, &digest);
        let released = self.component.make(table, places, &mut noise)?;
        Ok(KeptRelease { made_from: fet_io::hex(&digest), released })
    }
}

/// All releases of a run, and their privacy loss; empty for an experiment without a release.
#[derive(Debug, Clone, Default)]
pub struct OneTimeReleases {
    kept: Vec<KeptRelease>,
    record: Option<ReleaseRecord>,
    /// Guarantee of the primary's labels; `None` if the secondaries receive none, or receive them without protection.
    label_privacy: Option<LabelPrivacy>,
    /// Warnings about the parties' accounts.
    warnings: Vec<String>,
    /// True if the model does not use the releases.
    is_unused: bool,
}

impl OneTimeReleases {
    pub(crate) fn new(experiment: &Experiment, component: &dyn Release, kept: Vec<KeptRelease>) -> Self {
        let released: Vec<Released> = kept.iter().map(|one| one.released.clone()).collect();
        let record = component.account(&released);
        let record = Some(ReleaseRecord { randomness: experiment.train.randomness, ..record });
        Self { kept, record, label_privacy: None, warnings: Vec::new(), is_unused: false }
    }

    /// Notes the protection of the labels in the places that the secondaries received.
    pub(crate) fn with_labels(mut self, guarantee: Option<&LabelPrivacy>) -> Self {
        self.label_privacy = guarantee.cloned();
        let epsilon = self.label_privacy.as_ref().and_then(|labels| labels.epsilon);
        if let (Some(epsilon), Some(record)) = (epsilon, &mut self.record) {
            let seed = match record.randomness {
                Randomness::Experiment => "; anyone who knows the experiment's seed can draw it again",
                Randomness::Own => "",
            };
            record.of_primary = format!(
                "Each secondary learned the primary's keys, and a randomised label of each training row (ε = {epsilon:.4}{seed})"
            );
        }
        self
    }

    /// Returns the guarantee of the primary's labels; `None` if the secondaries receive none, or receive them without
    /// protection.
    pub fn label_privacy(&self) -> Option<&LabelPrivacy> {
        self.label_privacy.as_ref()
    }

    /// Adds warnings about the parties' accounts.
    pub(crate) fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }

    /// Returns the releases, as the primary holds them.
    pub fn released(&self) -> Vec<Released> {
        self.kept.iter().map(|one| one.released.clone()).collect()
    }

    /// Returns the releases whose columns the model uses.
    pub fn in_model(&self) -> Vec<Released> {
        if self.is_unused { Vec::new() } else { self.released() }
    }

    /// Notes the choice between a model with the releases and one without them.
    #[must_use]
    pub fn gated(mut self, gate: GateRecord) -> Self {
        self.is_unused = !gate.used;
        if let Some(record) = &mut self.record {
            record.gate = Some(gate);
        }
        self
    }

    /// Returns the privacy loss; `None` without a release.
    pub fn record(&self) -> Option<&ReleaseRecord> {
        self.record.as_ref()
    }

    /// Returns warnings about the parties' accounts.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Writes each release that is not there yet into the folder of its secondary. `folder` returns the folder
    /// of a secondary, counted from 1.
    ///
    /// # Errors
    /// A folder cannot be written.
    pub fn keep(&self, folder: impl Fn(usize) -> PathBuf) -> Result<(), ReleaseError> {
        (1..).zip(&self.kept).try_for_each(|(number, kept)| kept.keep(&folder(number)))
    }
}

impl KeptRelease {
    /// Makes the primary's copy of a release that a party elsewhere made. The party alone has the digest of its table.
    pub(crate) fn of_party(released: Released) -> Self {
        Self { made_from: String::new(), released }
    }

    /// Returns the release, as the primary receives it.
    pub(crate) fn released(self) -> Released {
        self.released
    }

    /// Returns the released integers.
    pub(crate) fn values(&self) -> &[i64] {
        &self.released.values
    }

    /// Writes the release into the folder of its secondary, unless it is there.
    pub(crate) fn keep(&self, folder: &Path) -> Result<(), ReleaseError> {
        let path = folder.join(FILE);
        if let Some(there) = read(folder)? {
            let is_same = there.made_from == self.made_from && there.released.values == self.released.values;
            let problem = "changed while the run began: another run uses this folder. Use another folder";
            return if is_same { Ok(()) } else { Err(ReleaseError::new(&path, problem)) };
        }
        let bytes = serde_json::to_vec(self).expect("a release is plain data");
        std::fs::create_dir_all(folder).map_err(|error| ReleaseError::new(folder, error))?;
        fet_io::write_private(&path, &bytes).map_err(|error| ReleaseError::new(&path, error))
    }
}

fn damaged(path: &Path) -> ReleaseError {
    ReleaseError::new(path, "is damaged. Restore it, or use another folder: a second release would add to ε")
}

/// Reads the release in a secondary's folder; `None` if there is none.
fn read(folder: &Path) -> Result<Option<KeptRelease>, ReleaseError> {
    let path = folder.join(FILE);
    match fet_io::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| damaged(&path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ReleaseError::new(&path, format!("cannot be read ({error})"))),
    }
}

/// Returns the release of an experiment; `None` if it has none.
fn component(experiment: &Experiment) -> Result<Option<Box<dyn Release>>, DataError> {
    let named = experiment.release.as_ref().map(|release| release.build(&())).transpose();
    named.map_err(|error| DataError::new("`release`", error))
}

/// Returns the data with the columns of these releases among the primary's columns, and without the
/// secondaries. Data of an experiment without a release stays unchanged.
///
/// # Errors
/// A release does not fit, or the primary has a column of the same name.
pub fn joined(
    experiment: &Experiment,
    data: VerticalData,
    released: &[Released],
) -> Result<VerticalData, DataError> {
    let primary = joined_table(experiment, data.primary, released)?;
    let secondaries = if experiment.release.is_some() { Vec::new() } else { data.secondaries };
    Ok(VerticalData { primary, secondaries, ..data })
}

/// Returns the primary's records with the columns of these releases, for a table that may hold new records.
///
/// # Errors
/// As for [`joined`].
pub fn joined_table(
    experiment: &Experiment,
    mut primary: PartyTable,
    released: &[Released],
) -> Result<PartyTable, DataError> {
    let Some(component) = component(experiment)? else { return Ok(primary) };
    for one in released {
        for column in component.columns(one, &primary.keys)? {
            let own = match &mut primary.features {
                Features::Columns(own) => own,
                Features::Numbers(numbers) => {
                    *numbers = with_column(numbers, &column.values);
                    continue;
                }
            };
            if own.table.columns.iter().any(|known| known.name == column.name) {
                let problem = format!("has the column `{}`, which a release adds; rename it", column.name);
                return Err(DataError::new(format!("data of {}", primary.name), problem));
            }
            own.table.columns.push(column);
        }
    }
    Ok(primary)
}

/// Returns unnamed numbers with a column, or with one column for each category.
fn with_column(numbers: &Matrix<f32>, values: &Values) -> Matrix<f32> {
    let added: Vec<Vec<f32>> = match values {
        Values::Number(values) => vec![values.iter().map(|&value| value as f32).collect()],
        Values::Category { codes, names } => (0..names.len() as u32)
            .map(|name| codes.iter().map(|&code| f32::from(u8::from(code == name))).collect())
            .collect(),
        Values::Date(_) | Values::Text(_) => unreachable!("a release gives numbers and categories"),
    };
    let of_row = |row: usize| numbers.row(row).iter().copied().chain(added.iter().map(move |one| one[row]));
    let all = (0..numbers.rows()).flat_map(of_row).collect();
    Matrix::new(numbers.columns() + added.len(), all)
}

/// Returns the names of the columns that these releases add to the primary's columns.
///
/// # Errors
/// A release does not fit the settings.
pub fn columns(experiment: &Experiment, released: &[Released]) -> Result<Vec<String>, DataError> {
    let Some(component) = component(experiment)? else { return Ok(Vec::new()) };
    Ok(released.iter().flat_map(|one| component.names(&one.party)).collect())
}

/// Refuses to divide the data of an experiment whose releases are not joined.
pub(crate) fn check_joined(experiment: &Experiment, data: &VerticalData) -> Result<(), DataError> {
    if experiment.release.is_none() || data.secondaries.is_empty() {
        return Ok(());
    }
    Err(DataError::new("`release`", "must be left out here: this command makes no releases"))
}

/// Adds the release's note on the primary's keys to the notes of its table.
pub(crate) fn note(component: &dyn Release, primary: &mut PartyTable) {
    if let (Some(note), Features::Columns(Columns { table, .. })) =
        (component.note(&primary.keys), &mut primary.features)
    {
        table.notes.push(format!("column `release`: {note}"));
    }
}
