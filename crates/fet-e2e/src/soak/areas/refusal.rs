//! Commands that must be refused: wrong files, wrong keys, different settings, and violations of a party's
//! policy. Each refusal has exit code 2 and one message that names the problem, and loses or changes no file.

mod agreement;
mod case;
mod change;
mod connection;
mod members;
mod needs;
mod policy;
mod rosters;
mod waits;

use std::path::Path;

use self::case::{AREA, RefusalCase, RefusingProcess, files, judge, unchanged};
use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

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
