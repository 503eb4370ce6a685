//! Reads an experiment: the file, the changes on the command line, and the device.
//!
//! A file may begin with `extends = "other.toml"`; it then lists only its differences from that file. It may
//! also contain the tables `ablation` and `profile`, which `cargo xtask ablate` reads and this module
//! ignores.

use std::path::{Path, PathBuf};

use fet_backends::{Backend, BackendError};
use fet_core::data::Folders;
use fet_core::experiment::{Experiment, overlay, set_all, syntax};
use fet_core::registry::SettingsError;
use fet_federation::trainer::Machine;

/// Command-line arguments of an experiment.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ExperimentArguments {
    /// The experiment: a TOML file, or the name of a file here or in the folder `experiments`, such as `hdb`.
    pub file: PathBuf,
    /// Change a setting, as in `--set train.epochs=5`. Can be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Tensor backend: flex, ndarray, wgpu, cuda, libtorch, libtorch-cuda.
    #[arg(long)]
    pub device: Option<String>,
    /// Seed of all random streams.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// Returns the part of a backend that the trainer needs.
pub fn machine(backend: &Backend) -> Machine {
    let Backend { device, on_host, party_threads, .. } = backend.clone();
    Machine { device, on_host, party_threads }
}

/// Error of an experiment file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error("{}: {source}{}", path.display(), if path.exists() { String::new() } else { fet_io::similar_experiment(path) })]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause of the error.
        source: std::io::Error,
    },
    /// The file is not valid TOML.
    #[error("{}: {}", path.display(), syntax(source))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Position and cause of the error.
        source: Box<toml::de::Error>,
    },
    /// A setting is unknown or has an impossible value.
    #[error("{}: {source}{excerpt}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Name of the setting, and cause of the error.
        source: Box<SettingsError>,
        /// Excerpt of the file with the line of the setting; empty if no file has the setting.
        excerpt: String,
    },
    /// The experiment names an unknown device.
    #[error("{}: {source}", path.display())]
    Device {
        /// The file.
        path: PathBuf,
        /// Error that lists the known devices.
        source: BackendError,
    },
}

/// Reads and checks an experiment.
pub fn load(arguments: &ExperimentArguments) -> Result<Experiment, FileError> {
    load_changed(arguments, |_| Ok(Vec::new()))
}

/// Returns a sentence for each `--set` that drops the value of an earlier one.
pub(crate) fn dropped(arguments: &ExperimentArguments) -> Vec<String> {
    let table = read(&fet_io::experiment(&arguments.file)).map(|(table, _)| table);
    table.ok().and_then(|mut table| set_all(&mut table, &arguments.sets).ok()).unwrap_or_default()
}

/// Reads and checks an experiment, after `change` has changed its settings. `change` returns the names of the settings that no longer
/// come from the file.
pub(crate) fn load_changed(
    arguments: &ExperimentArguments,
    change: impl FnOnce(&mut toml::Table) -> Result<Vec<String>, String>,
) -> Result<Experiment, FileError> {
    let path = fet_io::experiment(&arguments.file);
    let (mut table, texts) = read(&path)?;
    let mut changed: Vec<String> = arguments
        .sets
        .iter()
        .filter_map(|set| set.split_once('='))
        .map(|(name, _)| name.trim().into())
        .collect();
    changed.extend(arguments.seed.map(|_| "seed".into()));
    changed.extend(arguments.device.as_ref().map(|_| "device".into()));
    let refused_at = |source: SettingsError, excerpt: String| FileError::Settings {
        path: path.clone(),
        source: Box::new(source),
        excerpt,
    };
    let refused = |source: SettingsError| refused_at(source, String::new());
    set_all(&mut table, &arguments.sets).map_err(refused)?;
    if let Some(device) = &arguments.device {
        table.insert("device".into(), device.clone().into());
    }
    if let Some(seed) = arguments.seed {
        let seed = i64::try_from(seed).map_err(|_| {
            let message = format!("must be below 2^63; it is {seed}");
            refused(SettingsError::Field { field: "seed".into(), message })
        })?;
        table.insert("seed".into(), seed.into());
    }
    let own = change(&mut table)
        .map_err(|message| refused(SettingsError::Field { field: "data".into(), message }))?;
    changed.extend(own);
    let mut experiment = Experiment::from_table(table).map_err(|source| {
        let excerpt = excerpt_of_setting(&source, &texts, &changed);
        refused_at(source, excerpt)
    })?;
    // A known device that this build or machine lacks is refused later, when the command opens it.
    if !fet_backends::is_name(&experiment.device)
        && let Err(source) = fet_backends::open(&experiment.device)
    {
        return Err(FileError::Device { path, source });
    }
    let folder = path.parent().map(Path::to_path_buf);
    experiment.folder = folder.map(|folder| if folder.as_os_str().is_empty() { ".".into() } else { folder });
    Ok(experiment)
}

/// Returns the line of the setting that an error is about: nothing if the setting is one of `changed`, which no file sets.
fn excerpt_of_setting(error: &SettingsError, texts: &[(PathBuf, String)], changed: &[String]) -> String {
    let message = error.to_string();
    let field = message.strip_prefix('`').and_then(|rest| rest.split('`').next()).unwrap_or_default();
    let is_inside = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    if changed.iter().any(|name| is_inside(field, name) || is_inside(name, field)) {
        return String::new();
    }
    let shown = texts.iter().find_map(|(path, text)| error.excerpt(&path.display().to_string(), text));
    shown.map_or_else(String::new, |shown| format!("\n{}", shown.trim_end()))
}

/// Reads the settings of a file, merged into those of the file that it extends, and the texts of both.
fn read(path: &Path) -> Result<(toml::Table, Vec<(PathBuf, String)>), FileError> {
    let (mut table, text) = parse(path)?;
    let mut texts = vec![(path.to_path_buf(), text)];
    let Some(base) = table.remove("extends") else { return Ok((table, texts)) };
    let refused = |message: String| {
        let source = SettingsError::Field { field: "extends".into(), message };
        let excerpt = excerpt_of_setting(&source, &texts, &[]);
        FileError::Settings { path: path.to_path_buf(), source: Box::new(source), excerpt }
    };
    let name = base.as_str().ok_or_else(|| refused(format!("must be a file name; it is {base}")))?;
    let other = path.with_file_name(name);
    if name.is_empty() || !other.is_file() {
        let place = match name.is_empty() {
            true => String::new(),
            false => format!("; there is no file {}", other.display()),
        };
        return Err(refused(format!("must name a file in the same folder; it is {name:?}{place}")));
    }
    let (mut settings, text) = parse(&other)?;
    if settings.contains_key("extends") {
        return Err(refused(format!("must not extend a file that extends another; \"{name}\" does")));
    }
    overlay(&mut settings, table);
    texts.push((other, text));
    Ok((settings, texts))
}

fn parse(path: &Path) -> Result<(toml::Table, String), FileError> {
    let path = path.to_path_buf();
    let text =
        fet_io::read_to_string(&path).map_err(|source| FileError::Io { path: path.clone(), source })?;
    let mut table: toml::Table =
        toml::from_str(&text).map_err(|source| FileError::Syntax { path, source: Box::new(source) })?;
    table.remove("ablation");
    table.remove("profile");
    table.remove("tune");
    Ok((table, text))
}

/// Returns the experiment as JSON, with every default filled in.
pub fn resolved(experiment: &Experiment) -> serde_json::Value {
    serde_json::to_value(experiment).expect("settings are plain data")
}

/// Returns the folders to search for an experiment's data files: the folder of its file, then the folder of
/// `FET_DATA`, or `data`.
pub fn data_folders(experiment: &Experiment) -> Folders {
    let common = std::env::var_os("FET_DATA")
        .filter(|place| !place.is_empty())
        .map_or_else(|| PathBuf::from("data"), PathBuf::from);
    Folders::new(experiment.folder.clone().into_iter().chain([common]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omits_the_excerpt_if_an_argument_replaces_the_setting() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.toml");
        let message = |epochs: &str, sets: &[&str]| {
            let text = format!("[data]\nkind = 'split'\n[train]\nepochs = {epochs}\n");
            std::fs::write(&file, text).expect("writable");
            let sets = sets.iter().map(ToString::to_string).collect();
            let arguments =
                ExperimentArguments { file: file.clone(), sets, ..ExperimentArguments::default() };
            load(&arguments).expect_err("refused").to_string()
        };
        assert!(message("'x'", &[]).contains("a.toml:4:10"), "{}", message("'x'", &[]));
        for set in ["train.epochs='y'", "train={ epochs = 'y' }", "train.epochs", "train.epochs.x='y'"] {
            let message = message("'x'", &[set]);
            assert!(!message.contains("-->"), "{set}: {message}");
        }
    }
}
