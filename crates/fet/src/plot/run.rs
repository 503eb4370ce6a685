//! Finished run with the models of its parties.

use std::path::Path;

use fet_core::experiment::Experiment;
use fet_core::parameters::Parameters;
use fet_eval::records::Report;
use fet_federation::prepare::Preparing;
use fet_federation::trainer::SavedModel;

use crate::finished::FinishedRun;
use crate::folder::{MODEL, PARTIES};
use fet_io::input::InputError;

/// Finished run.
pub(crate) struct PlottedRun {
    /// Name of the folder.
    pub(crate) name: String,
    /// Settings of the run.
    pub(crate) experiment: Experiment,
    /// `report.json`.
    pub(crate) report: Report,
    /// Models of the best epoch, of all parties that were active at the end.
    pub(crate) model: Parameters,
    /// Preparation of the primary's records.
    pub(crate) preparing: Preparing,
}

impl PlottedRun {
    /// Reads the run in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, InputError> {
        let FinishedRun { report, experiment, .. } = FinishedRun::read(folder)?;
        let bad = |problem: String| InputError(format!("{}: {problem}", folder.display()));
        let bytes = |name: &str| {
            let path = folder.join(name);
            fet_io::read(&path).map_err(|error| InputError(format!("{}: {error}", path.display())))
        };
        let mut model = Parameters::default();
        let mut add = |party: &str, file: &str| -> Result<(), InputError> {
            let own = fet_federation::checkpoint::parameters(&bytes(file)?)
                .map_err(|error| bad(format!("{file}: {error}")))?;
            for segment in own.segments() {
                let values = &own.values()[segment.range.clone()];
                model.push(&format!("{party}.{}", segment.name), &segment.shape, values);
            }
            Ok(())
        };
        add("primary", MODEL)?;
        let saved = SavedModel::read(&bytes(MODEL)?).map_err(|error| bad(format!("{MODEL}: {error}")))?;
        for number in 1..=report.secondaries {
            let file = format!("{PARTIES}/party{number}/{MODEL}");
            if folder.join(&file).exists() {
                add(&format!("party{number}"), &file)?;
            } else {
                let folder = folder.display();
                fet_io::note!("warning: {folder}: party {number} left no {file}; the charts omit this party");
            }
        }
        let name =
            folder.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name, experiment, report, model, preparing: saved.preparing().clone() })
    }
}
