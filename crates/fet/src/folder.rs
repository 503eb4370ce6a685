//! The files in the folder of a run.

use std::path::{Path, PathBuf};

use fet_io::output::check_name;

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
/// In the folder of parties: by what parties elsewhere know the run.
pub(crate) const RUN_ID: &str = "run";
/// The primary's state while the run goes on.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";
/// The lock of the process that works on the run; a crash leaves the file behind.
pub(crate) const LOCK: &str = "lock";
/// The report that a study set aside because it is incomplete or of another run.
const OLD_REPORT: &str = "report.old.json";

/// Refuses a folder in which something else has the name of a file that a run writes, before the run has done its work: an input
/// of it, a file that no run has written, a FIFO, which would wait for a reader.
pub(crate) fn check<'a>(folder: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), String> {
    check_name(folder).map_err(|problem| format!("--out {}: {problem}", folder.display()))?;
    let inputs: Vec<PathBuf> = inputs.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
    for name in [REPORT, MODEL, PREDICTIONS, CARD, DATA_FOLDER, CHECKPOINT] {
        let path = folder.join(name);
        let Ok(found) = path.metadata() else { continue };
        if !found.is_file() {
            let what = if found.is_dir() { "is a folder" } else { "is neither a file nor a folder" };
            return Err(format!("{} {what}; it must be a file, or absent: move it away", path.display()));
        }
        if path.canonicalize().is_ok_and(|path| inputs.contains(&path)) {
            return Err(format!(
                "--out {}: {} is read by this run and would be overwritten; name another folder",
                folder.display(),
                path.display()
            ));
        }
    }
    let parties = folder.join(PARTIES);
    if parties.exists() && !parties.is_dir() {
        return Err(format!("{} must be a folder, or absent: move it away", parties.display()));
    }
    // A run that a crash ended, or a report that was moved away, leaves results without a report: a run may replace these.
    let traces = [REPORT, CHECKPOINT, LOCK, DATA_FOLDER, OLD_REPORT];
    let begun = traces.iter().any(|name| folder.join(name).exists());
    match [MODEL, PREDICTIONS, CARD].iter().map(|name| folder.join(name)).find(|path| path.exists()) {
        Some(path) if !begun => Err(format!(
            "{} is there, and no run that has written it; move it away, or name another folder (--out)",
            path.display()
        )),
        _ => Ok(()),
    }
}
