//! State that parties keep between runs: another run in the same folders, and lost, old, damaged or foreign
//! states. The result must be the bytes of the simulation or a clear refusal.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::message::problems;
use crate::process::{Ended, Process};
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

const AREA: &str = "state";

/// Change in the folders of a run that was killed midway.
type StateChange = fn(&SoakWorld<'_>, &mut ChaCha8Rng) -> anyhow::Result<()>;

/// Name, change, and true if the run must still succeed.
const CHANGES: &[(&str, StateChange, bool)] = &[
    ("nothing", |_, _| Ok(()), true),
    (
        "a party's state is lost",
        |w, _| Ok(std::fs::remove_dir_all(w.member_folder("p1").join("state"))?),
        false,
    ),
    ("a party's last state is lost", |w, _| Ok(std::fs::remove_file(last(&states(w, "p1")?)?)?), false),
    (
        "a party's states are lost",
        |w, _| Ok(states(w, "p1")?.iter().try_for_each(std::fs::remove_file)?),
        false,
    ),
    ("a party's state is damaged", |w, rng| flip(&last(&states(w, "p1")?)?, rng), false),
    ("a party's state is cut", |w, _| cut(&last(&states(w, "p1")?)?), false),
    ("a party's state is another's", |w, _| another(w), false),
    ("the checkpoint is damaged", |w, rng| flip(&checkpoint(w), rng), false),
    ("the checkpoint is cut", |w, _| cut(&checkpoint(w)), false),
    ("the checkpoint is lost", |w, _| Ok(std::fs::remove_file(checkpoint(w))?), true),
    (
        "the results are lost",
        |w, _| Ok(std::fs::remove_dir_all(w.member_folder("primary").join("out"))?),
        true,
    ),
];

pub(super) fn cases() -> Vec<Case<Kit>> {
    let changed = |&(name, change, well): &(&'static str, StateChange, bool)| {
        let run =
            move |kit: &Kit, folder: &Path, rng: &mut ChaCha8Rng| resumed(kit, folder, change, well, rng);
        Case::new(AREA, name, run).seeded().short(name == "a party's state is lost")
    };
    let more = [
        Case::new(AREA, "another seed after a finished run", |kit, folder, _| after(kit, folder, false))
            .short(true),
        Case::new(AREA, "another seed amid a run", |kit, folder, _| after(kit, folder, true)),
        Case::new(AREA, "an old checkpoint", old_checkpoint),
        Case::new(AREA, "a table is replaced between sessions", |kit, folder, _| {
            replaced(kit, folder, false)
        })
        .short(true),
        Case::new(AREA, "a table is replaced while its party is down", |kit, folder, _| {
            replaced(kit, folder, true)
        }),
    ];
    CHANGES.iter().map(changed).chain(more).collect()
}

fn experiment() -> SoakExperiment {
    SoakExperiment::new(Data::Digits).rows(600).with("train", "{ epochs = 8, batch_size = 32 }")
}

fn checkpoint(world: &SoakWorld<'_>) -> PathBuf {
    world.member_folder("primary").join("out/checkpoint.safetensors")
}

/// Returns a party's states, in the order of their epochs.
fn states(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(world.state_folder(member))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("state-")));
    found.sort();
    Ok(found)
}

fn last(states: &[PathBuf]) -> anyhow::Result<PathBuf> {
    states.last().cloned().ok_or_else(|| anyhow::anyhow!("a party has saved no state"))
}

fn flip(path: &Path, rng: &mut ChaCha8Rng) -> anyhow::Result<()> {
    let mut bytes = std::fs::read(path)?;
    let at = rng.random_range(0..bytes.len());
    bytes[at] ^= 1 << rng.random_range(0..8u32);
    Ok(std::fs::write(path, bytes)?)
}

fn cut(path: &Path) -> anyhow::Result<()> {
    let bytes = std::fs::read(path)?;
    Ok(std::fs::write(path, &bytes[..bytes.len() / 2])?)
}

fn another(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    for (from, to) in states(world, "p2")?.iter().zip(states(world, "p1")?) {
        std::fs::copy(from, to)?;
    }
    Ok(())
}

/// Runs `epochs` epochs and kills all processes.
fn half(world: &SoakWorld<'_>, epochs: usize) -> anyhow::Result<()> {
    let _parties = world.parties()?;
    let mut primary = world.primary()?;
    after_epochs(world, &mut primary, epochs)?;
    primary.kill();
    Ok(())
}

/// Waits until `epochs` epochs are done.
fn after_epochs(world: &SoakWorld<'_>, primary: &mut Process, epochs: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    while primary.stdout().matches("\"event\":\"epoch\"").count() < epochs {
        let late = began.elapsed() > world.kit.patience(30);
        anyhow::ensure!(!late && primary.ended()?.is_none(), "the run: {}", primary.stderr());
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}

/// Compares a successful run with the simulation, and checks the message of a failed one.
fn judge(world: &SoakWorld<'_>, ended: &Ended, well: bool, verdict: &mut CaseResult) -> anyhow::Result<()> {
    if ended.hung {
        verdict.fault(FaultKind::Hang, format!("the primary: {}", ended.stderr));
        return Ok(());
    }
    if ended.code == Some(0) {
        return world.compare(verdict);
    }
    verdict.end = CaseEnd::Refused;
    verdict.note(ended.stderr.lines().last().unwrap_or_default());
    if well || !matches!(ended.code, Some(2 | 75)) {
        verdict.fault(FaultKind::WrongCode, format!("the primary: {}: {}", ended.describe(), ended.stderr));
    }
    for problem in problems(&ended.stderr, &[]) {
        verdict.fault(FaultKind::Unclear, format!("the primary: {problem}: {}", ended.stderr));
    }
    Ok(())
}

fn resumed(
    kit: &Kit,
    folder: &Path,
    change: StateChange,
    well: bool,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    kit.simulation(&experiment())?;
    let world = SoakWorld::new(kit, folder, experiment(), true, 5)?;
    half(&world, rng.random_range(2..7))?;
    change(&world, rng)?;
    let forgets = !world.member_folder("p1").join("state").exists();
    let mut parties = world.parties()?;
    let ended = world.run(kit.patience(60))?;
    judge(&world, &ended, well, &mut verdict)?;
    if forgets && !ended.stderr.contains("fet ledger add --age ") {
        let what = format!("the primary accepts an account that has forgotten releases: {}", ended.stderr);
        verdict.fault(FaultKind::WrongCode, what);
    }
    world.check(&mut parties, &mut verdict)?;
    if ended.code != Some(0) && !ended.hung {
        // Follows the message: starts the run again, and if an account was lost, adds the forgotten releases.
        std::fs::remove_dir_all(world.member_folder("primary").join("out"))?;
        let mut again = world.run(kit.patience(60))?;
        if let Some((_, rest)) = again.stderr.split_once("fet ledger add --age ") {
            let age = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            parties[0].kill();
            let added = ["ledger", "add", "party.toml", "--noise", "0", "--releases", "1", "--age", age];
            kit.output_of(&world.member_folder("p1"), &added)?;
            parties[0] = world.party("p1")?;
            again = world.run(kit.patience(60))?;
        }
        if again.code == Some(0) {
            world.compare(&mut verdict)?;
        } else {
            let what = format!("the primary, from the beginning: {}: {}", again.describe(), again.stderr);
            verdict.fault(FaultKind::WrongCode, what);
        }
    }
    world.panics(&mut verdict)?;
    Ok(verdict)
}

/// Runs another seed while the parties keep the states of the first run, which is finished or killed midway
/// (`amid`). Then runs the first seed again.
fn after(kit: &Kit, folder: &Path, amid: bool) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let (first, second) = (experiment(), SoakExperiment { seed: 5, ..experiment() });
    let mut world = SoakWorld::new(kit, folder, first.clone(), true, 5)?;
    if amid {
        half(&world, 3)?;
    } else {
        let mut parties = world.parties()?;
        judge(&world, &world.run(kit.patience(60))?, true, &mut verdict)?;
        world.check(&mut parties, &mut verdict)?;
    }
    let [out, kept] = ["out", "out-of-the-first"].map(|name| world.member_folder("primary").join(name));
    for (experiment, again) in [(second, false), (first, true)] {
        if !again {
            std::fs::rename(&out, &kept)?;
        } else {
            std::fs::remove_dir_all(&out)?;
            std::fs::rename(&kept, &out)?;
        }
        for member in world.members() {
            std::fs::write(world.member_folder(member).join("exp.toml"), experiment.text())?;
        }
        world.experiment = experiment;
        let mut parties = world.parties()?;
        // The parties have kept the states of the two runs separate.
        judge(&world, &world.run(kit.patience(60))?, true, &mut verdict)?;
        world.check(&mut parties, &mut verdict)?;
    }
    Ok(verdict)
}

/// Kills a party during a run and restarts it with another table. The primary's process `stays`, or is killed
/// too. The primary must refuse the run, and the party must name the file. With the former table, the run
/// ends with the bytes of the simulation.
fn replaced(kit: &Kit, folder: &Path, stays: bool) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let experiment = SoakExperiment::new(Data::Places).with("train", "{ epochs = 60, batch_size = 8 }");
    kit.simulation(&experiment)?;
    let world = SoakWorld::new(kit, folder, experiment, true, 20)?;
    let mine = world.member_folder("p1").join("mine.csv");
    let former = std::fs::read_to_string(&mine)?;
    let other = former.replacen("gravel", "tar", 1);
    anyhow::ensure!(other != former, "{} has no gravel", mine.display());
    let mut parties;
    let ended = if stays {
        parties = world.parties()?;
        let mut primary = world.primary()?;
        after_epochs(&world, &mut primary, 3)?;
        parties[0].kill();
        std::fs::write(&mine, &other)?;
        parties[0] = world.party("p1")?;
        primary.wait(kit.patience(60))?
    } else {
        half(&world, 3)?;
        std::fs::write(&mine, &other)?;
        parties = world.parties()?;
        world.run(kit.patience(60))?
    };
    if ended.code != Some(2) {
        let what = format!("the primary: {}; expected 2: {}", ended.describe(), ended.stderr);
        verdict.fault(if ended.hung { FaultKind::Hang } else { FaultKind::WrongCode }, what);
    }
    for problem in problems(&ended.stderr, &["streets", "table", "checksum", "put the former table back"]) {
        verdict.fault(FaultKind::Unclear, format!("the primary: {problem}: {}", ended.stderr));
    }
    let said = parties[0].stderr();
    if !["mine.csv", "put the former table back"].iter().all(|part| said.contains(part)) {
        verdict.fault(FaultKind::Unclear, format!("p1 names no file: {said}"));
    }
    if world.member_folder("primary").join("out/report.json").exists() {
        verdict.fault(FaultKind::Files, "a refused run left out/report.json");
    }
    world.check(&mut parties, &mut verdict)?;
    parties[0].kill();
    std::fs::write(&mine, former)?;
    parties[0] = world.party("p1")?;
    let again = world.run(kit.patience(60))?;
    match again.code {
        Some(0) => world.compare(&mut verdict)?,
        _ => verdict.fault(
            FaultKind::WrongCode,
            format!("with the former table: {}: {}", again.describe(), again.stderr),
        ),
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

/// Resumes from an old copy of the checkpoint, older than all states of the parties.
fn old_checkpoint(kit: &Kit, folder: &Path, _: &mut ChaCha8Rng) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    kit.simulation(&experiment())?;
    let world = SoakWorld::new(kit, folder, experiment(), true, 5)?;
    half(&world, 2)?;
    let old = std::fs::read(checkpoint(&world))?;
    half(&world, 3)?;
    std::fs::write(checkpoint(&world), old)?;
    let mut parties = world.parties()?;
    let ended = world.run(kit.patience(60))?;
    judge(&world, &ended, false, &mut verdict)?;
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}
