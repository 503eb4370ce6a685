//! Absent and duplicate members, and an existing key.

use std::path::Path;

use super::case::{AREA, files, judge, unchanged};
use super::change::edit;
use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::process::Process;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

pub(super) fn cases() -> Vec<Case<Kit>> {
    vec![
        Case::new(AREA, "a party that is absent", |kit, folder, _| absent(kit, folder)).short(true),
        Case::new(AREA, "two parties with one state", |kit, folder, _| one_state(kit, folder)).short(true),
        Case::new(AREA, "two primaries", |kit, folder, _| two_primaries(kit, folder)),
        Case::new(AREA, "two of one party", |kit, folder, _| two_parties(kit, folder)),
        Case::new(AREA, "server that asks for certificates", |kit, folder, _| verified(kit, folder)),
        Case::new(AREA, "a key that is there", |kit, folder, _| key_is_there(kit, folder)),
    ]
}

fn absent(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    let mut parties = world.parties()?;
    parties[1].kill();
    let ended = world.run(kit.patience(20))?;
    judge("the primary", &ended, &[2, 75], &["p2", "join", "3 s"], &mut verdict);
    // Once the party has joined, the same command works.
    parties[1] = world.party("p2")?;
    let again = world.run(kit.patience(20))?;
    if again.code != Some(0) {
        verdict
            .fault(FaultKind::WrongCode, format!("with all there: {}: {}", again.describe(), again.stderr));
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn one_state(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    edit(&world, "p2/party.toml", "state = \"state\"", "state = \"../p1/state\"")?;
    let first = world.party("p1")?;
    let began = std::time::Instant::now();
    while !first.stderr().contains("ready") && began.elapsed() < kit.patience(10) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = world.party("p2")?.wait(kit.patience(20))?;
    judge("p2", &second, &[2, 75], &["state", "another"], &mut verdict);
    drop(first);
    world.panics(&mut verdict)?;
    Ok(verdict)
}

fn two_primaries(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let experiment =
        SoakExperiment::new(Data::Digits).rows(0).with("train", "{ epochs = 4, batch_size = 64 }");
    let world = SoakWorld::new(kit, folder, experiment, true, 10)?;
    let mut parties = world.parties()?;
    let mut first = world.primary()?;
    std::thread::sleep(std::time::Duration::from_millis(400));
    let mut second = world.primary()?;
    let ends = [first.wait(kit.patience(60))?, second.wait(kit.patience(60))?];
    for ended in &ends {
        judge("a primary", ended, &[0, 2, 75], &[], &mut verdict);
        verdict.note(format!("{}: {}", ended.describe(), ended.stderr.lines().last().unwrap_or_default()));
    }
    if !ends.iter().any(|ended| ended.code == Some(0)) {
        let again = world.run(kit.patience(60))?;
        judge("the primary alone", &again, &[0], &[], &mut verdict);
    }
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn two_parties(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 5)?;
    let other = world.member_folder("p1").join("other.toml");
    std::fs::write(&other, world.party_file("p1", "", "").replace("\"state\"", "\"other\""))?;
    let mut parties = world.parties()?;
    let twice = Process::start(
        kit.party_program("p1"),
        &["party", "other.toml"],
        &world.member_folder("p1"),
        "party",
    )?;
    let ready = |process: &Process| process.stderr().contains("ready for");
    let began = std::time::Instant::now();
    while !(ready(&twice) && parties.iter().all(ready)) && began.elapsed() < kit.patience(10) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ended = world.run(kit.patience(60))?;
    judge("the primary", &ended, &[75], &["p1|party 1", "two processes"], &mut verdict);
    // A party checks once a second.
    let named = |process: &Process| process.stderr().contains("two processes answer the primary");
    let began = std::time::Instant::now();
    while !(named(&twice) && named(&parties[0])) && began.elapsed() < kit.patience(5) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    for (process, name) in [(&parties[0], "the first"), (&twice, "the second")] {
        if !named(process) {
            verdict.fault(
                FaultKind::Unclear,
                format!("{name} of p1 does not name the other: {}", process.stderr()),
            );
        }
    }
    drop(twice);
    // With one of the two processes, the same command works.
    let again = world.run(kit.patience(60))?;
    judge("the primary with one", &again, &[0], &[], &mut verdict);
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn verified(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let mut world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    let hub = world.member_folder("hub");
    edit(&world, "hub/roster.toml", "key = \"key.pem\"", "key = \"key.pem\"\nverify = \"ca.pem\"")?;
    for member in ["hub"].into_iter().chain(world.members()) {
        let own = "ca = \"ca.pem\"\ncertificate = \"own.pem\"\ncertificate_key = \"own-key.pem\"";
        edit(&world, &format!("{member}/roster.toml"), "ca = \"ca.pem\"", own)?;
        std::fs::copy(hub.join("certificate.pem"), world.member_folder(member).join("own.pem"))?;
        std::fs::copy(hub.join("key.pem"), world.member_folder(member).join("own-key.pem"))?;
    }
    std::fs::write(hub.join("hub.conf"), kit.output_of(&hub, &["hub", "config", "roster.toml"])?)?;
    world.server.stop();
    world.server.resume()?;
    let mut parties = world.parties()?;
    judge("the primary", &world.run(kit.patience(60))?, &[0], &[], &mut verdict);
    world.compare(&mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

fn key_is_there(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 3)?;
    let before = files(folder)?;
    let arguments = ["keys", "new", "own.key"];
    let mut process = Process::start(&kit.fet, &arguments, &world.member_folder("p1"), "keys")?;
    judge("fet keys new", &process.wait(kit.patience(20))?, &[2], &["own.key"], &mut verdict);
    unchanged(&before, &mut verdict)?;
    Ok(verdict)
}
