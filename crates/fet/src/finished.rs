//! A finished run, read back from its folder: its report, its experiment and the models of its parties.

use std::path::{Path, PathBuf};

use fet_core::experiment::Experiment;
use fet_records::{Identity, Report};
use fet_train::secondary::Finished;
use fet_train::trainer::SavedModel;

use crate::folder::{DATA_FOLDER, MODEL, PARTIES, REPORT};
use crate::input::InputError;

/// A finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Where it is.
    pub folder: PathBuf,
    /// `report.json`.
    pub report: Report,
    /// Its settings.
    pub experiment: Experiment,
}

impl FinishedRun {
    /// Reads the report of the run in `folder`.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let bytes = file(folder, REPORT)?;
        let bad = |problem: String| InputError(format!("{}: {problem}", folder.join(REPORT).display()));
        let report: Report =
            serde_json::from_slice(&bytes).map_err(|error| bad(format!("is not a report: {error}")))?;
        let settings = toml::Table::try_from(&report.experiment)
            .map_err(|error| bad(format!("holds no experiment: {error}")))?;
        let mut experiment = Experiment::from_table(settings)
            .map_err(|error| bad(format!("holds an experiment that this program does not know: {error}")))?;
        experiment.folder = data_folder(folder);
        Ok(Self { folder: folder.to_path_buf(), report, experiment })
    }

    /// The primary's model.
    pub fn model(&self) -> Result<SavedModel, InputError> {
        let model = SavedModel::read(&file(&self.folder, MODEL)?).map_err(|error| self.bad(MODEL, &error))?;
        let report = &self.report;
        let Ok(identity) = serde_json::from_value::<Identity>(model.identity().clone()) else {
            return Err(self.bad(MODEL, &"does not say which run it is of"));
        };
        if identity.experiment != report.experiment || identity.data != report.data.files {
            return Err(self.bad(MODEL, &"is the model of another run than report.json tells of"));
        }
        Ok(model)
    }

    /// The model of a secondary, from 1; nothing if the run lost the party.
    pub fn party(&self, number: usize) -> Result<Option<Finished>, InputError> {
        let name = format!("{PARTIES}/party{number}/{MODEL}");
        if !self.folder.join(&name).exists() {
            return Ok(None);
        }
        let model = Finished::read(&file(&self.folder, &name)?).map_err(|error| self.bad(&name, &error))?;
        Ok(Some(model))
    }

    fn bad(&self, name: &str, error: &dyn std::fmt::Display) -> InputError {
        InputError(format!("{}: {error}", self.folder.join(name).display()))
    }
}

/// Where the run in `folder` found its data files, beside those of `FET_DATA`.
pub(crate) fn data_folder(folder: &Path) -> Option<PathBuf> {
    std::fs::read_to_string(folder.join(DATA_FOLDER)).ok().map(PathBuf::from)
}

fn file(folder: &Path, name: &str) -> Result<Vec<u8>, InputError> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| {
        let hint = "the folder of a finished run holds report.json and model.safetensors";
        InputError(format!("{}: {error}; {hint}", path.display()))
    })
}
