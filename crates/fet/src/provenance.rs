//! Provenance of a run: settings, content of the data files, and version of the program's results.
//!
//! Runs with equal provenance have equal reports, except for cost. `cargo xtask ablate` derives the folder
//! name of a cell from the provenance.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fet_core::data::{DatasetContext, Folders};
use fet_core::experiment::Experiment;
use fet_core::registry::SettingsError;
use fet_eval::records::{RESULTS_VERSION, RunIdentity};
use fet_federation::schedule::Split;
use fet_io::{hex, sha256, sha256_of_file};
use serde_json::Value;

use crate::experiment_file::resolved;
use crate::folder::{MODEL, PARTIES};
use fet_io::input::InputError;

/// Everything that determines the result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// All settings, with defaults filled in.
    pub experiment: Value,
    /// Checksum of the files named in the data settings.
    pub files: String,
}

/// Error for a data file whose checksum cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// The settings build no dataset.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The checksum of a data file cannot be computed.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Provenance {
    /// Returns the provenance of an experiment whose data files are in these folders.
    ///
    /// The dataset and `split.file` name the data files; of a folder, all files count. A missing file counts as missing: the
    /// run itself reports the error.
    pub fn of_experiment(experiment: &Experiment, folders: &Folders) -> Result<Self, ProvenanceError> {
        let from = experiment.from.as_str();
        let names = data_files(experiment, folders)?;
        let experiment = resolved(experiment);
        let mut listed = String::new();
        for name in names {
            for (inner, sum) in checksums(&folders.find(&name))? {
                listed.push_str(&format!("{name}\0{inner}\0{sum}\n"));
            }
        }
        for (name, path) in models(from, folders) {
            if let Some(sum) = checksums(&path)?.get("") {
                listed.push_str(&format!("{name}\0{sum}\n"));
            }
        }
        Ok(Self { experiment, files: hex(&sha256(listed.as_bytes())) })
    }

    /// Returns the provenance together with the version of the results.
    ///
    /// A run resumes only if the identities are equal. The address of a cell derives from the identity.
    pub fn identity(&self) -> RunIdentity {
        RunIdentity {
            program: None,
            experiment: self.experiment.clone(),
            data: self.files.clone(),
            results: RESULTS_VERSION,
        }
    }
}

/// Returns a checksum of the training, validation and test rows.
pub fn split(split: &Split) -> String {
    let mut bytes = Vec::new();
    let aside = (!split.aside.is_empty()).then_some(&split.aside);
    for part in [&split.train, &split.validation, &split.test].into_iter().chain(aside) {
        bytes.extend((part.len() as u64).to_le_bytes());
        bytes.extend(part.iter().flat_map(|&row| (row as u64).to_le_bytes()));
    }
    hex(&sha256(&bytes))
}

/// Returns the model files of the run that an experiment starts from, by their names in the run's folder.
fn models(from: &str, folders: &Folders) -> Vec<(String, PathBuf)> {
    if from.is_empty() {
        return Vec::new();
    }
    let run = folders.find(from);
    let parties = (1..).map(|number| format!("{PARTIES}/party{number}"));
    let parties =
        parties.take_while(|party| run.join(party).is_dir()).map(|party| format!("{party}/{MODEL}"));
    [MODEL.to_string()].into_iter().chain(parties).map(|name| (name.clone(), run.join(name))).collect()
}

/// Returns the files that the settings name, each with its actual or expected path.
pub fn files(experiment: &Experiment, folders: &Folders) -> Result<Vec<(String, PathBuf)>, SettingsError> {
    let found = data_files(experiment, folders)?.into_iter().map(|name| (name.clone(), folders.find(&name)));
    let from = |(name, path)| (format!("{}/{name}", experiment.from), path);
    Ok(found.chain(models(&experiment.from, folders).into_iter().map(from)).collect())
}

/// Returns the names of the dataset's files and of the file of the split.
fn data_files(experiment: &Experiment, folders: &Folders) -> Result<Vec<String>, SettingsError> {
    let context = DatasetContext { folders, seed: experiment.seed, metadata: &[] };
    let mut names = experiment.data.build(&context)?.files();
    names.push(experiment.split.file.clone());
    // An empty name would mean the whole folder.
    names.retain(|name| !name.is_empty());
    Ok(names)
}

/// Returns the checksum of a file, or of each file in a folder by its relative name; an empty map if the path
/// does not exist.
fn checksums(path: &Path) -> Result<BTreeMap<String, String>, ProvenanceError> {
    let mut found = BTreeMap::new();
    if path.is_dir() {
        let unreadable = |source| ProvenanceError::Unreadable { path: path.to_path_buf(), source };
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            for (inner, sum) in checksums(&entry.path())? {
                found.insert(format!("{name}/{inner}"), sum);
            }
        }
    } else if path.is_file() {
        let sum = checksum(path)
            .map_err(|source| ProvenanceError::Unreadable { path: path.to_path_buf(), source })?;
        found.insert(String::new(), sum);
    }
    Ok(found)
}

/// Returns the SHA-256 of a file's content. The process reads each file only once, for any number of cells.
fn checksum(path: &Path) -> io::Result<String> {
    static KNOWN: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(sum) = known().get(path) {
        return Ok(sum.clone());
    }
    let sum = hex(&sha256_of_file(path)?);
    known().insert(path.to_path_buf(), sum.clone());
    Ok(sum)
}

/// Returns the files that an experiment names, with their paths. The error for a missing file names its
/// source.
pub(crate) fn check_files(
    experiment: &Experiment,
    folders: &Folders,
) -> Result<Vec<(String, PathBuf)>, InputError> {
    let named = files(experiment, folders).map_err(|error| InputError(error.to_string()))?;
    let (found, missing): (Vec<_>, Vec<_>) = named.into_iter().partition(|(_, path)| path.exists());
    if missing.is_empty() {
        return Ok(found);
    }
    let origin = match experiment.origin.trim() {
        "" => String::new(),
        origin => {
            format!("; source: {}", origin.split_whitespace().collect::<Vec<_>>().join(" "))
        }
    };
    let places: Vec<String> = folders.all().iter().map(|folder| folder.display().to_string()).collect();
    let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
    Err(InputError(format!(
        "missing: {} (searched in {}: the folder of the experiment, then the folder in the environment variable \
         FET_DATA, or `data`){origin}",
        names.join(", "),
        places.join(" and "),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifies_files_by_their_content() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let of = |settings: &str| {
            let text = format!("name = 'x'\n[data]\nkind = 'split'\nsource = {settings}");
            let experiment = Experiment::from_table(toml::from_str(&text).expect("TOML")).expect("sound");
            // The cache works by path, so each content needs a separate folder.
            move |folder: &Path| {
                Provenance::of_experiment(&experiment, &folder.into()).expect("readable").files
            }
        };
        let csv = of("{ kind = 'csv', file = 'a.csv', label = 'y' }");
        let write = |name: &str, text: &str| {
            let folder = folder.path().join(name);
            fs::create_dir_all(&folder).expect("writable");
            fs::write(folder.join("a.csv"), text).expect("writable");
            folder
        };
        let (one, same, other) = (write("one", "y\n1\n"), write("same", "y\n1\n"), write("other", "y\n2\n"));
        assert_eq!(csv(&one), csv(&same), "the path does not matter");
        assert_ne!(csv(&one), csv(&other), "the content does");
        assert_ne!(csv(&one), csv(folder.path()), "a missing file is another");
        let unnamed = of("{ kind = 'csv', label = 'y' }");
        assert_eq!(
            unnamed(&one),
            unnamed(&other),
            "an empty name stands neither for a file nor for a folder"
        );
        let digits = of("{ kind = 'digits' }");
        assert_eq!(digits(&one), digits(&other), "data without files has one checksum");
    }
}
