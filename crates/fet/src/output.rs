//! Checks of a command's output, before the command does any work.

use std::path::{Path, PathBuf};

use crate::experiment_file::data_folders;
use crate::finished::FinishedRun;
use crate::folder::{self, CARD, CHECKPOINT, DATA_FOLDER, MODEL, PREDICTIONS, REPORT};
use crate::input::input;
use crate::provenance::files;

/// Returns the files that a command must not overwrite: the run's own files, and its data files.
pub(crate) fn of_run(run: &FinishedRun) -> Vec<PathBuf> {
    let names = [REPORT, MODEL, PREDICTIONS, CARD, DATA_FOLDER, CHECKPOINT];
    let data = files(&run.experiment, &data_folders(&run.experiment)).into_iter().map(|(_, path)| path);
    names.iter().map(|name| run.folder.join(name)).chain(data).collect()
}

/// Name of standard output.
pub(crate) const STANDARD: &str = "-";

/// Refuses an output that is a folder, has a missing parent folder, cannot be written, or is one of the
/// inputs.
pub(crate) fn check<'a>(out: &Path, inputs: impl IntoIterator<Item = &'a PathBuf>) -> anyhow::Result<()> {
    check_as("--out", out, inputs)
}

/// Like [`check`], for the output that `argument` names.
pub(crate) fn check_as<'a>(
    argument: &str,
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    if out == Path::new(STANDARD) {
        return Ok(());
    }
    let refuse = |problem: String| Err(input(format!("{argument} {}: {problem}", out.display())));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return refuse(format!("the folder {} does not exist; create it first", folder.display()));
    }
    if let Err(problem) = folder::plain(out) {
        return refuse(problem);
    }
    if out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/') {
        return refuse("this is a folder; name a file".to_string());
    }
    let same = |path: &PathBuf| matches!((path.canonicalize(), out.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if let Err(error) = fet_files::check_writable(out) {
        return refuse(format!("this cannot be written ({error})"));
    }
    if inputs.into_iter().any(same) {
        return refuse("this would overwrite an input or a file of the run; name another file".to_string());
    }
    Ok(())
}

/// Like [`check_as`], for a file that only its owner may read; refuses standard output and compression.
pub(crate) fn check_own<'a>(
    argument: &str,
    out: &Path,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    let refuse = |problem: &str| Err(input(format!("{argument} {}: {problem}", out.display())));
    if out == Path::new(STANDARD) {
        return refuse("is standard output, which other users may read; name a file");
    }
    if out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz")) {
        return refuse("cannot be compressed; name a file without .gz");
    }
    check_as(argument, out, inputs)
}
