//! Reads a finished run back from its folder: the report, the experiment and the parties' models.

use std::path::{Path, PathBuf};

use fet_core::experiment::Experiment;
use fet_eval::records::{Report, RunIdentity};
use fet_federation::secondary::FinishedModel;
use fet_federation::simulation::Start;
use fet_federation::trainer::SavedModel;

use crate::experiment_file::data_folders;
use crate::folder::{CARD, CHECKPOINT, DATA_FOLDER, MODEL, PAGE, PARTIES, PREDICTIONS, REPORT};
use crate::provenance::files;
use fet_io::input::{InputError, of_json};

/// Finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Folder of the run.
    pub folder: PathBuf,
    /// `report.json`.
    pub report: Report,
    /// Settings of the run.
    pub experiment: Experiment,
}

/// Maximum number of parties; a larger number means that the report is damaged.
const MOST_PARTIES: usize = 1 << 16;

impl FinishedRun {
    /// Returns the files that a command must not overwrite: those of the run, and the data files that it read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let names = [REPORT, MODEL, PREDICTIONS, CARD, PAGE, DATA_FOLDER, CHECKPOINT];
        // Settings that build no dataset name no files.
        let data = files(&self.experiment, &data_folders(&self.experiment)).unwrap_or_default();
        let data = data.into_iter().map(|(_, path)| path);
        names.iter().map(|name| self.folder.join(name)).chain(data).collect()
    }

    /// Reads the report of the run in `folder`.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let bytes = file(folder, REPORT)?;
        let bad = |problem: String| InputError(format!("{}: {problem}", folder.join(REPORT).display()));
        let report: Report = serde_json::from_slice(&bytes)
            .map_err(|error| bad(format!("is not a report: {}", of_json(&error))))?;
        if report.secondaries > MOST_PARTIES {
            return Err(bad(format!("names {} secondaries, more than any run can have", report.secondaries)));
        }
        let settings = toml::Table::try_from(&report.experiment)
            .map_err(|error| bad(format!("contains no experiment: {error}")))?;
        let mut experiment = Experiment::from_table(settings).map_err(|error| {
            bad(format!("contains an experiment that this program does not know: {error}"))
        })?;
        experiment.folder = data_folder(folder);
        Ok(Self { folder: folder.to_path_buf(), report, experiment })
    }

    /// Returns the primary's model.
    pub fn model(&self) -> Result<SavedModel, InputError> {
        let model = SavedModel::read(&file(&self.folder, MODEL)?).map_err(|error| self.bad(MODEL, &error))?;
        let report = &self.report;
        let Ok(identity) = serde_json::from_value::<RunIdentity>(model.identity().clone()) else {
            return Err(self.bad(MODEL, &"does not name its run"));
        };
        if identity.experiment != report.experiment || identity.data != report.data.files {
            return Err(self.bad(MODEL, &"belongs to another run than report.json"));
        }
        Ok(model)
    }

    /// Returns the model of secondary `number`, from 1.
    pub fn party(&self, number: usize) -> Result<FinishedModel, InputError> {
        let name = format!("{PARTIES}/party{number}/{MODEL}");
        let model =
            FinishedModel::read(&file(&self.folder, &name)?).map_err(|error| self.bad(&name, &error))?;
        if !model.is_of(number, &self.experiment.common()) {
            return Err(self.bad(&name, &"belongs to another run or party than report.json"));
        }
        Ok(model)
    }

    /// Returns the parties' models as the start of a further run.
    pub(crate) fn start(&self) -> Result<Start, InputError> {
        let primary = self.model()?;
        let of = |party: usize| {
            if primary.dropped_out().contains(&party) { Ok(None) } else { self.party(party + 1).map(Some) }
        };
        let parties = (0..self.report.secondaries).map(of).collect::<Result<_, _>>()?;
        Ok(Start { primary, parties })
    }

    /// Refuses a folder with missing or damaged results.
    pub(crate) fn check(&self) -> Result<(), InputError> {
        let again = |error: InputError| {
            InputError(format!(
                "{error}. The run is finished but incomplete: remove its report.json to train again."
            ))
        };
        let primary = file(&self.folder, PREDICTIONS).and_then(|_| self.model()).map_err(again)?;
        // Parties on other machines keep their own models.
        let here = |party: &usize| self.folder.join(PARTIES).join(format!("party{}", party + 1)).exists();
        let parties = (0..self.report.secondaries)
            .filter(|party| !primary.dropped_out().contains(party) && here(party));
        parties.into_iter().try_for_each(|party| self.party(party + 1).map(drop)).map_err(again)
    }

    fn bad(&self, name: &str, error: &dyn std::fmt::Display) -> InputError {
        InputError(format!("{}: {error}", self.folder.join(name).display()))
    }
}

/// Returns the folder with the data files of the run in `folder`, in addition to the folders of
/// `FET_DATA`.
fn data_folder(folder: &Path) -> Option<PathBuf> {
    fet_io::read_to_string(&folder.join(DATA_FOLDER)).ok().map(PathBuf::from)
}

fn file(folder: &Path, name: &str) -> Result<Vec<u8>, InputError> {
    let path = folder.join(name);
    fet_io::read(&path).map_err(|error| {
        if !folder.join(REPORT).exists() && folder.join(CHECKPOINT).exists() {
            return InputError(format!(
                "{}: this run is not finished. Give the command that started the run again to continue it.",
                folder.display()
            ));
        }
        let hint = "the folder of a finished run contains report.json, model.safetensors and the parties' models in \
         parties/";
        InputError(format!("{}: {error}; {hint}", path.display()))
    })
}
