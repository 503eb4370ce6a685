//! `fet party prune`: removes a party's files of finished or old runs.
//!
//! A run's folder contains the states of its last epochs, which are necessary to continue the run, and its
//! model, which answers requests for predictions. The command removes only these files, by name. The party's
//! seed, ledgers and counts are in another folder and remain.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::run_id::RunId;
use super::setup::PartyFile;
use crate::folder::MODEL;
use crate::lock;
use fet_io::input::input;

/// Arguments of `fet party prune`.
#[derive(Debug, Clone, clap::Args)]
pub struct PruneArguments {
    /// The party's own file (TOML).
    pub file: PathBuf,
    /// Also remove the states and models of all runs without changes for this many days.
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u64>,
    /// Only print what the command would remove.
    #[arg(long)]
    pub dry_run: bool,
}

/// Removes the states of finished runs and all files of old runs, and returns the summary.
pub fn prune(arguments: &PruneArguments) -> anyhow::Result<String> {
    let path = &arguments.file;
    let file = PartyFile::read(path)?;
    let state = path.parent().unwrap_or(Path::new("")).join(file.state);
    if !state.is_dir() {
        return Err(input(format!("{}: `state`: {} is not a folder", path.display(), state.display())));
    }
    let Some(_lock) = lock::take(&state)? else {
        return Err(super::Unreached(format!(
            "{}: another process is using the state in {}. Stop the process first.",
            path.display(),
            state.display()
        ))
        .into());
    };
    let age = arguments.older_than.map(|days| Duration::from_secs(days.saturating_mul(24 * 60 * 60)));
    let runs = state.join("runs");
    let mut text = String::new();
    for (run, folder) in folders(&runs)? {
        let old = age.is_some_and(|age| is_older(&folder, age));
        let (removed, bytes) = remove(&folder, old, arguments.dry_run)
            .map_err(|error| input(format!("{}: {error}", folder.display())))?;
        if removed > 0 {
            let why = if old { "old" } else { "finished" };
            text += &format!("{run}: {why}: {removed} files, {}\n", indicatif::HumanBytes(bytes));
        }
    }
    if text.is_empty() {
        text = format!("{}: nothing to remove\n", runs.display());
    } else if arguments.dry_run {
        text += "nothing was removed: --dry-run\n";
    }
    Ok(text)
}

/// Returns the folders of runs, by name.
pub(super) fn folders(runs: &Path) -> anyhow::Result<Vec<(RunId, PathBuf)>> {
    if !runs.exists() {
        return Ok(Vec::new());
    }
    let failed = |error: std::io::Error| input(format!("{}: {error}", runs.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(runs).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let run = RunId::parse(&entry.file_name().to_string_lossy());
        if let Some(run) = run.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            found.push((run, entry.path()));
        }
    }
    found.sort_by_key(|(run, _)| run.to_string());
    Ok(found)
}

/// Returns true if neither the folder nor anything in it has changed for `age`.
fn is_older(folder: &Path, age: Duration) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let changed = |path: PathBuf| path.symlink_metadata().and_then(|data| data.modified());
    let last = entries.chain([folder.to_path_buf()]).map(changed).collect::<Result<Vec<_>, _>>();
    let last = last.ok().and_then(|times| times.into_iter().max());
    last.is_some_and(|last| SystemTime::now().duration_since(last).is_ok_and(|since| since >= age))
}

/// Removes the states of a finished run, or all files of an `old` run; returns the number of files and of
/// bytes.
fn remove(folder: &Path, old: bool, dry_run: bool) -> std::io::Result<(usize, u64)> {
    let (mut removed, mut bytes) = (0, 0);
    let finished = folder.join(MODEL).exists();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_state = name.starts_with("state-") && name.ends_with(".safetensors");
        let goes = (is_state && (old || finished)) || (name == MODEL && old);
        if !goes || !entry.file_type()?.is_file() {
            continue;
        }
        bytes += entry.metadata()?.len();
        removed += 1;
        if !dry_run {
            std::fs::remove_file(entry.path())?;
        }
    }
    if old && !dry_run {
        // This call fails, as intended, if the folder contains other files.
        let _ = std::fs::remove_dir(folder);
    }
    Ok((removed, bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn removes_only_states_and_old_models() {
        let place = tempfile::tempdir().expect("a folder");
        let write = |path: &str| {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, "text").expect("written");
        };
        let (done, open) = ("a".repeat(32), "b".repeat(32));
        for path in [
            "state/party/seed",
            "state/party/ledger-1",
            "state/party/state-1.safetensors",
            "state/table",
            "state/runs/notes/state-1.safetensors",
            &format!("state/runs/{done}/state-2.safetensors"),
            &format!("state/runs/{done}/model.safetensors"),
            &format!("state/runs/{open}/state-1.safetensors"),
            &format!("state/runs/{open}/ledger-1"),
        ] {
            write(path);
        }
        let file = place.path().join("party.toml");
        let text = "party = \"p\"\nroster = \"r\"\nexperiment = \"e\"\nkey = \"k\"\nstate = \"state\"\n";
        fs::write(&file, text).expect("written");
        let prune = |older_than: Option<u64>, dry_run: bool| {
            prune(&PruneArguments { file: file.clone(), older_than, dry_run }).expect("pruned")
        };
        let there = |path: &str| place.path().join("state").join(path).exists();
        let said = prune(Some(0), true);
        assert!(said.contains("2 files") && said.contains("--dry-run"), "{said}");
        assert!(there(&format!("runs/{done}/model.safetensors")));
        let said = prune(None, false);
        assert!(said.contains(&done) && !said.contains(&open), "{said}");
        assert!(!there(&format!("runs/{done}/state-2.safetensors")));
        assert!(there(&format!("runs/{done}/model.safetensors")));
        assert!(there(&format!("runs/{open}/state-1.safetensors")), "an unfinished run may go on");
        assert!(prune(Some(1), false).contains("nothing to remove"), "no file is a day old");
        let said = prune(Some(0), false);
        assert!(said.contains(&done) && said.contains(&open), "{said}");
        assert!(!there(&format!("runs/{done}")));
        for kept in [
            "party/seed",
            "party/ledger-1",
            "party/state-1.safetensors",
            "table",
            "runs/notes/state-1.safetensors",
            &format!("runs/{open}/ledger-1"),
        ] {
            assert!(there(kept), "{kept}");
        }
        let _lock = lock::take(&place.path().join("state")).expect("a lock");
        let busy =
            super::prune(&PruneArguments { file, older_than: None, dry_run: false }).expect_err("in use");
        assert!(busy.is::<crate::parties::Unreached>(), "{busy}");
    }
}
