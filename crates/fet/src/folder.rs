//! Names and checks of the files in the folder of a run.

use std::path::{Path, PathBuf};

use fet_io::output::check_name;

/// The report of a finished run.
pub(crate) const REPORT: &str = "report.json";
/// Model of the best epoch.
pub(crate) const MODEL: &str = "model.safetensors";
/// Folder with one folder for each secondary.
pub(crate) const PARTIES: &str = "parties";
/// Predictions for the validation and test rows.
pub(crate) const PREDICTIONS: &str = "predictions.csv";
/// Model card.
pub(crate) const CARD: &str = "model-card.md";
/// Report of the run for people, as a page.
pub(crate) const PAGE: &str = "report.html";
/// Folder with the data files of the run, in addition to those of `FET_DATA`. The report does not
/// contain this path.
pub(crate) const DATA_FOLDER: &str = "data-folder";
/// File in the folder of parties: the run id for parties elsewhere.
pub(crate) const RUN_ID: &str = "run";
/// State of the primary in an unfinished run.
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";
/// Lock of the process that works on the run; a crash leaves the file behind.
pub(crate) const LOCK: &str = "lock";
/// Report that a study moved away because it is incomplete or belongs to another run.
const OLD_REPORT: &str = "report.old.json";

/// Refuses a folder if the run would overwrite something there, before the run does any work: an input of the run, a file that no
/// run has written, or a FIFO, which would wait for a reader.
pub(crate) fn check<'a>(folder: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), String> {
    check_name(folder).map_err(|problem| format!("--out {}: {problem}", folder.display()))?;
    if folder.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(format!("--out {}: is a file; name a folder", folder.display()));
    }
    let inputs: Vec<PathBuf> = inputs.into_iter().filter_map(|path| path.canonicalize().ok()).collect();
    for name in [REPORT, MODEL, PREDICTIONS, CARD, PAGE, DATA_FOLDER, CHECKPOINT] {
        let path = folder.join(name);
        let Ok(found) = path.metadata() else { continue };
        if !found.is_file() {
            let what = if found.is_dir() { "is a folder" } else { "is neither a file nor a folder" };
            return Err(format!("{} {what}; it must be a file or absent. Move it away.", path.display()));
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
        return Err(format!("{} must be a folder or absent. Move it away.", parties.display()));
    }
    // After a crash, or if somebody has moved the report, a folder has results without a report. A run may
    // replace these results.
    let traces = [REPORT, CHECKPOINT, LOCK, DATA_FOLDER, OLD_REPORT];
    let begun = traces.iter().any(|name| folder.join(name).exists());
    match [MODEL, PREDICTIONS, CARD, PAGE].iter().map(|name| folder.join(name)).find(|path| path.exists()) {
        Some(path) if !begun => Err(format!(
            "{} exists, but no run has written it. Move it away, or name another folder (--out).",
            path.display()
        )),
        _ => Ok(()),
    }
}
