//! `fet plot`: SVG charts of finished runs.
//!
//! `curves.svg`: loss and metric by epoch, one line per run. `encodings.svg`: the distance of each party's
//! positional encoding from the primary's (paper, figure 4). `mask.svg`: the dynamic mask on the neighbours
//! of a few test rows (paper, figure 3).
//!
//! The charts need all parties' models and data, which only a simulation has; they are not part of the
//! protocol. A party that dropped out left no model. The charts omit this party, with a warning.

mod curves;
mod encodings;
mod mask;
mod run;

use std::path::{Path, PathBuf};

use anyhow::Context;

use self::run::PlottedRun;
use fet_io::input::InputError;
use fet_io::output;

/// Draws the charts of the runs in `folders` into `out`, and returns the files.
pub fn plot(folders: &[PathBuf], out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let runs = folders.iter().map(|folder| PlottedRun::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let mut files = vec![("curves.svg", curves::draw(&runs)?)];
    files.extend(encodings::draw(&runs)?.map(|svg| ("encodings.svg", svg)));
    if let Some((run, party)) = runs.iter().find_map(|run| Some((run, mask::party(run)?))) {
        files.push(("mask.svg", mask::draw(run, party)?));
    }
    output::check_name(out).map_err(|problem| InputError(format!("--out {}: {problem}", out.display())))?;
    let was_there = out.exists();
    std::fs::create_dir_all(out)
        .map_err(|error| InputError(format!("cannot create the folder {}: {error}", out.display())))?;
    let mut written = Vec::new();
    for (name, svg) in files {
        let path = out.join(name);
        let is_new = !path.exists();
        if let Err(error) = fet_io::write(&path, svg.as_bytes()) {
            withdraw(&written, (!was_there).then_some(out));
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
        written.push((path, is_new));
    }
    Ok(written.into_iter().map(|(path, _)| path).collect())
}

/// Removes new charts and the folder if it is new, because an incomplete set of charts would look complete.
fn withdraw(written: &[(PathBuf, bool)], folder: Option<&Path>) {
    for (path, _) in written.iter().filter(|(_, is_new)| *is_new) {
        let _ = std::fs::remove_file(path);
    }
    if let Some(folder) = folder {
        // This call fails, as intended, if somebody has added a file to the folder.
        let _ = std::fs::remove_dir(folder);
    }
}
