//! Commands that must be refused: wrong files, wrong keys, different settings, and violations of a party's
//! policy. Each refusal has exit code 2 and one message that names the problem, and loses or changes no file.

mod agreement;
mod change;
mod connection;
mod members;
mod needs;
mod policy;
mod rosters;
mod waits;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::message::problems;
use crate::process::Ended;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

const AREA: &str = "refusal";

/// Process that must refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusingProcess {
    /// The primary's command.
    Primary,
    /// The command of party 1.
    Party,
    /// The command of the primary, after a refusal by party 1, which continues to serve.
    AskingPrimary,
}

/// Change in the folders of a run that would otherwise succeed.
type RunChange = fn(&SoakWorld<'_>) -> anyhow::Result<()>;

/// Name, refusing process, change, and texts that the message must contain: one alternative of each entry,
/// separated by `|`.
type RefusalCase = (&'static str, RefusingProcess, RunChange, &'static [&'static str]);

const PRIMARY: RefusingProcess = RefusingProcess::Primary;
const PARTY: RefusingProcess = RefusingProcess::Party;
const ASKING_PRIMARY: RefusingProcess = RefusingProcess::AskingPrimary;

/// Cases, topic by topic.
const CASES: [&[RefusalCase]; 5] =
    [connection::CASES, rosters::CASES, agreement::CASES, policy::CASES, needs::CASES];

/// Interval of the cases in the short form: every third case.
const SHORT: usize = 3;

pub(super) fn cases() -> Vec<Case<Kit>> {
    let case = |(number, &case): (usize, &RefusalCase)| {
        Case::new(AREA, case.0, move |kit, folder, _| refused(kit, folder, case)).short(number % SHORT == 0)
    };
    CASES.concat().iter().enumerate().map(case).chain(members::cases()).chain(waits::cases()).collect()
}

fn refused(kit: &Kit, folder: &Path, (name, who, change, names): RefusalCase) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    change(&world)?;
    let before = files(folder)?;
    let patience = kit.patience(20);
    match who {
        RefusingProcess::Party => {
            let ended = world.party("p1")?.wait(patience)?;
            judge("p1", &ended, codes(name), names, &mut verdict);
        }
        RefusingProcess::Primary => {
            // The case does not check the parties that serve.
            let _parties = world.parties()?;
            let ended = world.run(patience)?;
            judge("the primary", &ended, codes(name), names, &mut verdict);
        }
        RefusingProcess::AskingPrimary => {
            let mut parties = world.parties()?;
            let ended = world.run(patience)?;
            judge("the primary", &ended, &[2], names, &mut verdict);
            world.check(&mut parties, &mut verdict)?;
            let written = ["report.json", "model.safetensors", "predictions.csv"];
            for name in
                written.iter().filter(|name| world.member_folder("primary").join("out").join(name).exists())
            {
                verdict.fault(FaultKind::Files, format!("a refused run left out/{name}"));
            }
        }
    }
    unchanged(&before, &mut verdict)?;
    world.panics(&mut verdict)?;
    Ok(verdict)
}

/// Returns the expected exit codes. Code 75 is for temporary problems, such as an unreachable server.
fn codes(name: &str) -> &'static [i32] {
    match name.starts_with("no such server") || name == "other host" {
        true => &[75],
        false => &[2],
    }
}

/// Checks the exit code of a process, and the texts in its message.
fn judge(who: &str, ended: &Ended, codes: &[i32], names: &[&str], verdict: &mut CaseResult) {
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
fn files(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
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

fn unchanged(before: &BTreeMap<PathBuf, Vec<u8>>, verdict: &mut CaseResult) -> anyhow::Result<()> {
    for (path, bytes) in before {
        match std::fs::read(path) {
            Ok(now) if now == *bytes => {}
            Ok(_) => verdict.fault(FaultKind::Files, format!("changed: {}", path.display())),
            Err(error) => verdict.fault(FaultKind::Files, format!("{}: {error}", path.display())),
        }
    }
    Ok(())
}
