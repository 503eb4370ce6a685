//! Case of a refusal, and the checks of its outcome.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::case::{CaseResult, FaultKind};
use crate::message::problems;
use crate::process::Ended;
use crate::soak::world::SoakWorld;

pub(super) const AREA: &str = "refusal";

/// Process that must refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusingProcess {
    /// The primary's command.
    Primary,
    /// The command of party 1.
    Party,
    /// The command of the primary, after a refusal by party 1, which continues to serve.
    AskingPrimary,
}

/// Change in the folders of a run that would otherwise succeed.
pub(super) type RunChange = fn(&SoakWorld<'_>) -> anyhow::Result<()>;

/// Name, refusing process, change, and texts that the message must contain: one alternative of each entry,
/// separated by `|`.
pub(super) type RefusalCase = (&'static str, RefusingProcess, RunChange, &'static [&'static str]);

pub(super) const PRIMARY: RefusingProcess = RefusingProcess::Primary;

pub(super) const PARTY: RefusingProcess = RefusingProcess::Party;

pub(super) const ASKING_PRIMARY: RefusingProcess = RefusingProcess::AskingPrimary;

/// Checks the exit code of a process, and the texts in its message.
pub(super) fn judge(who: &str, ended: &Ended, codes: &[i32], names: &[&str], verdict: &mut CaseResult) {
    if ended.hung {
        verdict.fault(FaultKind::Hang, format!("{who}: {}", ended.stderr));
        return;
    }
    if !ended.code.is_some_and(|code| codes.contains(&code)) {
        verdict.fault(
            FaultKind::WrongCode,
            format!("{who}: {}; expected {codes:?}: {}", ended.describe(), ended.stderr),
        );
    }
    if ended.code != Some(0) {
        for problem in problems(&ended.stderr, names) {
            verdict.fault(FaultKind::Unclear, format!("{who}: {problem}: {}", ended.stderr));
        }
    }
}

/// Returns the files below a folder, without the output of processes.
pub(super) fn files(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut files(&path)?);
        } else if !path.extension().is_some_and(|end| end == "err" || end == "out") {
            found.insert(path.clone(), std::fs::read(&path)?);
        }
    }
    Ok(found)
}

pub(super) fn unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, verdict: &mut CaseResult) -> anyhow::Result<()> {
    for (path, bytes) in before {
        match std::fs::read(path) {
            Ok(now) if now == *bytes => {}
            Ok(_) => verdict.fault(FaultKind::Files, format!("changed: {}", path.display())),
            Err(error) => verdict.fault(FaultKind::Files, format!("{}: {error}", path.display())),
        }
    }
    Ok(())
}
