//! The files in the folder of a run.

use std::path::Path;

use crate::output;

/// The report of a finished run.
pub(crate) const REPORT: &str = "report.json";
/// The model of its best epoch.
pub(crate) const MODEL: &str = "model.safetensors";
/// The folder with one folder for each secondary.
pub(crate) const PARTIES: &str = "parties";
/// The predictions for its validation and test rows.
pub(crate) const PREDICTIONS: &str = "predictions.csv";
/// What the model is, for people.
pub(crate) const CARD: &str = "model-card.md";
/// Where the run found its data files beside those of `FET_DATA`; it is no part of a report.
pub(crate) const DATA_FOLDER: &str = "data-folder";
/// The primary's state while the run goes on.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";

/// Refuses a folder in which something else has the name of a file that a run writes: a FIFO there would end the run where it
/// is nearly done.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    output::plain(folder).map_err(|problem| format!("--out {}: {problem}", folder.display()))?;
    for name in [REPORT, MODEL, PREDICTIONS, CARD, DATA_FOLDER, CHECKPOINT] {
        let path = folder.join(name);
        if let Ok(found) = path.metadata()
            && !found.is_file()
        {
            let what = if found.is_dir() { "is a folder" } else { "is neither a file nor a folder" };
            return Err(format!("{} {what}; it must be a file, or absent: move it away", path.display()));
        }
    }
    Ok(())
}
