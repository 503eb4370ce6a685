//! A member that is absent or there twice, and a key that is there already.

use std::path::Path;

use super::change::edit;
use super::{AREA, files, judge, unchanged};
use crate::case::{Case, End, Kind, Verdict};
use crate::experiment::{Data, Experiment};
use crate::kit::Kit;
use crate::process::Process;
use crate::world::World;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(AREA, "a party that is absent", |kit, folder, _| absent(kit, folder)).short(true),
        Case::new(AREA, "two parties with one state", |kit, folder, _| one_state(kit, folder)).short(true),
        Case::new(AREA, "two primaries", |kit, folder, _| two_primaries(kit, folder)),
        Case::new(AREA, "two of one party", |kit, folder, _| two_parties(kit, folder)),
        Case::new(AREA, "a key that is there", |kit, folder, _| key_is_there(kit, folder)),
    ]
}

fn absent(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    let mut parties = world.parties()?;
    parties[1].kill();
    let ended = world.run(kit.patience(20))?;
    judge("the primary", &ended, &[2, 75], &["p2", "join", "3 s"], &mut verdict);
    // When it is there, the same command works.
    parties[1] = world.party("p2")?;
    let again = world.run(kit.patience(20))?;
    if again.code != Some(0) {
        verdict.fault(Kind::WrongCode, format!("with all there: {}: {}", again.said(), again.stderr));
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn one_state(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    edit(&world, "p2/party.toml", "state = \"state\"", "state = \"../p1/state\"")?;
    let first = world.party("p1")?;
    let began = std::time::Instant::now();
    while !first.stderr().contains("ready") && began.elapsed() < kit.patience(10) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = world.party("p2")?.wait(kit.patience(20))?;
    judge("p2", &second, &[2, 75], &["state", "another"], &mut verdict);
    drop(first);
    // One after the other: the folder is that of another party.
    world.panics(&mut verdict)?;
    Ok(verdict)
}

fn two_primaries(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Equal);
    let experiment = Experiment::new(Data::Digits).rows(0).with("train", "{ epochs = 4, batch_size = 64 }");
    let world = World::new(kit, folder, experiment, true, 10)?;
    let mut parties = world.parties()?;
    let mut first = world.primary()?;
    std::thread::sleep(std::time::Duration::from_millis(400));
    let mut second = world.primary()?;
    let ends = [first.wait(kit.patience(60))?, second.wait(kit.patience(60))?];
    for ended in &ends {
        judge("a primary", ended, &[0, 2, 75], &[], &mut verdict);
        verdict.note(format!("{}: {}", ended.said(), ended.stderr.lines().last().unwrap_or_default()));
    }
    if !ends.iter().any(|ended| ended.code == Some(0)) {
        let again = world.run(kit.patience(60))?;
        judge("the primary alone", &again, &[0], &[], &mut verdict);
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn two_parties(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Equal);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 5)?;
    edit(&world, "p1/party.toml", "state = \"state\"", "state = \"state\"\n")?;
    let other = world.of("p1").join("other.toml");
    std::fs::write(&other, world.party_file("p1", "", "").replace("\"state\"", "\"other\""))?;
    let mut parties = world.parties()?;
    let twice = Process::start(&kit.fet, &["party", "other.toml"], &world.of("p1"), "party")?;
    let ended = world.run(kit.patience(60))?;
    judge("the primary", &ended, &[0, 2, 75], &[], &mut verdict);
    verdict.note(format!("{}: {}", ended.said(), ended.stderr.lines().last().unwrap_or_default()));
    drop(twice);
    let end = if ended.code == Some(0) { End::Equal } else { End::Refused };
    if ended.code == Some(0) {
        // Either of the two served.
        if !world.model("p1").exists() {
            let served = world.of("p1").join("other");
            std::fs::remove_dir_all(world.of("p1").join("state")).ok();
            std::fs::rename(served, world.of("p1").join("state"))?;
        }
        world.compare(&mut verdict)?;
    }
    verdict.end = end;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn key_is_there(kit: &Kit, folder: &Path) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::new(End::Refused);
    let world = World::new(kit, folder, Experiment::new(Data::Digits), true, 3)?;
    let before = files(folder)?;
    let arguments = ["keys", "new", "own.key"];
    let mut process = Process::start(&kit.fet, &arguments, &world.of("p1"), "keys")?;
    judge("fet keys new", &process.wait(kit.patience(20))?, &[2], &["own.key"], &mut verdict);
    unchanged(&before, &mut verdict)?;
    Ok(verdict)
}
