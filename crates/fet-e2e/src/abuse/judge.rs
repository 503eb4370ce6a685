//! Compares the end of a command with the expected result.

use std::path::Path;

use super::script::{Expect, Step};
use super::snapshot::{FileChange, Snapshot};
use crate::case::{CaseFault, FaultKind};
use crate::message::{self, control};
use crate::process::Ended;

const BROKEN_PIPE: i32 = 13;
/// Exit code of a command that can succeed later: another process works in its folder, or a disk is full.
pub(crate) const TRY_AGAIN: i32 = 75;
const DISK_FULL: &str = "No space left on device";

/// Returns the faults of a command.
pub(crate) fn judge(step: &Step, ended: &Ended, before: &Snapshot, after: &Snapshot) -> Vec<CaseFault> {
    let mut faults = Vec::new();
    if ended.hung {
        faults.push(CaseFault::new(FaultKind::Hang, format!("not finished after {} s", step.seconds)));
    } else if ended.code == Some(101) || ended.stderr.contains("panicked at") {
        let line = ended.stderr.lines().find(|line| line.contains("panicked")).unwrap_or("exit code 101");
        faults.push(CaseFault::new(FaultKind::Panic, line));
    } else if let Some(signal) = ended.signal {
        faults.extend(signalled(step, signal));
    } else if let Some(code) = ended.code {
        faults.extend(code_fault(step.expect, code, ended.stderr.contains(DISK_FULL)));
        if code == 0 {
            let all = format!("{}\n{}", ended.stdout, ended.stderr);
            if !all.contains(step.says) {
                faults
                    .push(CaseFault::new(FaultKind::WrongAccept, format!("does not print `{}`", step.says)));
            }
            faults.extend(control(&all).map(|what| CaseFault::new(FaultKind::Unclear, what)));
        } else if (code <= 2 || code == TRY_AGAIN) && !matches!(step.expect, Expect::Code(_)) {
            let stderr = if step.command.contains("--log json") {
                message::of_events(&ended.stderr)
            } else {
                ended.stderr.clone()
            };
            let names: Vec<&str> = [&*step.names].into_iter().filter(|names| !names.is_empty()).collect();
            let problems = message::problems(&stderr, &names);
            faults.extend(problems.into_iter().map(|what| CaseFault::new(FaultKind::Unclear, what)));
        }
    }
    faults.extend(files(step, ended, before, after));
    faults
}

fn signalled(step: &Step, signal: i32) -> Option<CaseFault> {
    let right = match step.expect {
        Expect::Signalled => step.send.is_some_and(|send| send.signal.as_raw() == signal),
        Expect::Quiet => signal == BROKEN_PIPE,
        _ => false,
    };
    (!right).then(|| CaseFault::new(FaultKind::Abort, format!("ended by signal {signal}")))
}

fn code_fault(expect: Expect, code: i32, disk_full: bool) -> Option<CaseFault> {
    // A full disk is temporary, so a command may ask the user to try again.
    if code == TRY_AGAIN && disk_full && matches!(expect, Expect::Stopped | Expect::Any) {
        return None;
    }
    let stated: &[i32] = match &expect {
        Expect::Refused => &[2],
        Expect::Accepted | Expect::Quiet => &[0],
        Expect::Either => &[0, 2],
        Expect::Stopped => &[1, 2],
        Expect::Any => &[0, 1, 2],
        // The command may have finished before the signal arrived.
        Expect::Signalled => &[0, 130, 143, 129],
        Expect::Code(code) => std::slice::from_ref(code),
    };
    if stated.contains(&code) {
        return None;
    }
    let kind = match code {
        0 => FaultKind::WrongAccept,
        2 if stated == [0] => FaultKind::WrongRefusal,
        _ => FaultKind::WrongCode,
    };
    Some(CaseFault::new(kind, format!("exit code {code}; expected {}", words(stated))))
}

fn words(codes: &[i32]) -> String {
    codes.iter().map(i32::to_string).collect::<Vec<_>>().join(" or ")
}

/// Checks the changed files. A refusal changes no file. A failed command keeps existing files. A command
/// writes only its own results.
fn files(step: &Step, ended: &Ended, before: &Snapshot, after: &Snapshot) -> Vec<CaseFault> {
    // The process that holds the folder writes to it in the meantime.
    if step.expect == Expect::Code(TRY_AGAIN) {
        return Vec::new();
    }
    let writes = step.writes();
    // A run that fails midway keeps its files for resuming. A killed process cannot clean up.
    let keeps = match (ended.code, step.command.starts_with("run")) {
        (Some(2), _) => false,
        // If only the output fails, the command still writes its files.
        (Some(1 | TRY_AGAIN), run) => run || step.before.contains("exec > /dev/full"),
        (None, _) => ended.hung || ended.signal.is_some(),
        _ => true,
    };
    let here = writes.iter().any(|place| place == "." || place.ends_with(".."));
    let is = |path: &Path| writes.iter().any(|place| Path::new(place.trim_end_matches('/')) == path);
    let within = |path: &Path| here || writes.iter().any(|place| path.starts_with(place));
    let holds = |path: &Path| writes.iter().any(|place| Path::new(place).starts_with(path));
    let killed = ended.hung || ended.signal == Some(9);
    let ours = |path: &Path, change: FileChange| match change {
        // The command creates the parents of its files.
        FileChange::New if holds(path) => true,
        // A command must not replace a link or a device at the path to write. Inside its own folder it
        // may.
        FileChange::Replaced if is(path) => false,
        // A killed process leaves temporary files, and the lock of a run disappears when the run ends.
        _ if is_temporary(path) => killed && within(path) || change == FileChange::Lost,
        _ => {
            within(path)
                || killed && change == FileChange::New && writes.iter().any(|place| beside(path, place))
        }
    };
    after
        .since(before)
        .into_iter()
        .filter(|(path, change)| !(keeps && ours(path, *change)))
        .map(|(path, change)| CaseFault::new(FaultKind::Files, format!("{change:?}: {}", path.display())))
        .collect()
}

fn is_temporary(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| [".tmp", ".part"].iter().any(|part| name.to_string_lossy().contains(part)))
}

/// Returns true if a file is in the same folder as a place and its name contains the name of the place.
fn beside(path: &Path, place: &str) -> bool {
    let place = Path::new(place);
    let (Some(name), Some(own)) = (path.file_name(), place.file_name()) else { return false };
    path.parent() == place.parent() && name.to_string_lossy().contains(&*own.to_string_lossy())
}
