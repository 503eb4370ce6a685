//! Faults that once made the primary wait without a message: a server that takes no large packets, a hanging
//! party, and a rotated key. Each run must end in time, and both sides must name the reason.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::case::{AREA, judge};
use super::change::edit;
use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::process::Process;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

pub(super) fn cases() -> Vec<Case<Kit>> {
    vec![
        Case::new(AREA, "small max_payload", |kit, folder, _| small(kit, folder)).short(true),
        Case::new(AREA, "smaller max_payload after a restart", |kit, folder, _| shrunk(kit, folder)),
        Case::new(AREA, "a party that hangs", |kit, folder, _| hangs(kit, folder)),
        Case::new(AREA, "rotated key of a party", |kit, folder, _| rotated(kit, folder, "p1")).short(true),
        Case::new(AREA, "rotated key of the primary", |kit, folder, _| rotated(kit, folder, "primary")),
    ]
}

/// Changes the server's limit, and starts it again.
fn limit(world: &mut SoakWorld<'_>, bytes: u32) -> anyhow::Result<()> {
    edit(world, "hub/hub.conf", "max_payload: 262144", &format!("max_payload: {bytes}"))?;
    world.server.stop();
    world.server.resume()
}

fn small(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let mut world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    limit(&mut world, 32_768)?;
    let names = ["max_payload", "32768"];
    judge("p1", &world.party("p1")?.wait(kit.patience(20))?, &[2], &names, &mut verdict);
    judge("the primary", &world.run(kit.patience(20))?, &[2], &names, &mut verdict);
    world.panics(&mut verdict)?;
    Ok(verdict)
}

/// Returns an experiment with a longer run, for disturbances in the middle.
fn long() -> SoakExperiment {
    SoakExperiment::new(Data::Digits).rows(0).with("train", "{ epochs = 400, batch_size = 64 }")
}

/// Starts a run, and waits until its first epoch is done.
fn under_way(kit: &Kit, world: &SoakWorld<'_>) -> anyhow::Result<Process> {
    let primary = world.primary()?;
    let began = Instant::now();
    while !primary.stdout().contains("\"event\":\"epoch\"") {
        anyhow::ensure!(began.elapsed() < kit.patience(60), "no epoch: {}", primary.stderr());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(primary)
}

fn shrunk(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let mut world = SoakWorld::new(kit, folder, long(), true, 3)?;
    let mut parties = world.parties()?;
    let mut primary = under_way(kit, &world)?;
    limit(&mut world, 2_048)?;
    let ended = primary.wait(kit.patience(60))?;
    judge("the primary", &ended, &[75], &["max_payload", "2048"], &mut verdict);
    if !parties.iter().any(|party| party.stderr().contains("max_payload")) {
        verdict.fault(FaultKind::Unclear, "no party names the server's limit");
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn hangs(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, long(), true, 3)?;
    let mut parties = world.parties()?;
    let mut primary = under_way(kit, &world)?;
    parties[0].signal(Signal::STOP);
    let began = Instant::now();
    let ended = primary.wait(kit.patience(60))?;
    judge("the primary", &ended, &[75], &["p1|party 1", "silent|join|went through"], &mut verdict);
    verdict.note(format!("{:.0} s after the party hung", began.elapsed().as_secs_f64()));
    parties[0].signal(Signal::CONT);
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

/// Gives a member a new key. The server and the member's roster contain it; the other rosters contain the old one.
fn rotated(kit: &Kit, folder: &Path, member: &str) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let mut world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    let identity = |member: &str| -> anyhow::Result<String> {
        Ok(kit
            .public(member)?
            .lines()
            .next()
            .and_then(|line| line.split('"').nth(1))
            .unwrap_or_default()
            .into())
    };
    let (old, new) = (identity(member)?, identity("stranger")?);
    kit.copy_key("stranger", &world.member_folder(member).join("own.key"))?;
    for place in ["hub", member] {
        edit(&world, &format!("{place}/roster.toml"), &old, &new)?;
    }
    edit(&world, "hub/hub.conf", &old, &new)?;
    world.server.stop();
    world.server.resume()?;
    let mut parties = world.parties()?;
    let ended = world.run(kit.patience(30))?;
    judge("the primary", &ended, &[75], &["p1", &old, &new, "roster"], &mut verdict);
    let names_both = |said: &str| [&old, &new].into_iter().all(|key| said.contains(key.as_str()));
    let began = Instant::now();
    while !names_both(&parties[0].stderr()) && began.elapsed() < kit.patience(2) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = parties[0].stderr();
    if !names_both(&said) {
        verdict.fault(FaultKind::Unclear, format!("p1 does not name both keys: {said}"));
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}
