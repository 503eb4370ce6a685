//! Predictions by parties as processes: they must equal those of a simulation, even if a process is killed;
//! and refusals.

use std::path::Path;
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::message::problems;
use crate::process::Process;
use crate::soak::compare::without_similarities;
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

const AREA: &str = "predict";
/// Arguments of the primary's command, without the parties.
const PREDICT: [&str; 6] = ["predict", "out", "--rows", "new.csv", "--out", "new-predictions.csv"];
/// Number of cases per victim in the long form.
const EACH: usize = 7;

/// Process to kill during prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Nobody,
    Primary,
    Party,
    Server,
}

pub(super) fn cases() -> Vec<Case<Kit>> {
    let top1sim = "{ kind = \"top1sim\", local = { hidden = [8], width = 4 }, hidden = [8] }";
    let kinds = [
        ("places", SoakExperiment::new(Data::Places)),
        ("people", SoakExperiment::new(Data::People)),
        ("sales", SoakExperiment::new(Data::Sales)),
        (
            "top1sim",
            SoakExperiment::new(Data::Places).with("method", top1sim).with("linker", "{ kind = \"top1\" }"),
        ),
        ("concat", SoakExperiment::new(Data::People).with("aggregator", "{ kind = \"concat\" }")),
    ];
    let sound = |(number, (name, experiment)): (usize, (&str, SoakExperiment))| {
        let run = move |kit: &Kit, folder: &Path, rng: &mut ChaCha8Rng| {
            predicted(kit, folder, experiment.clone(), Victim::Nobody, rng)
        };
        Case::new(AREA, name, run).short(number < 2)
    };
    let mut cases: Vec<Case<Kit>> = kinds.into_iter().enumerate().map(sound).collect();
    for (victim, name) in [(Victim::Primary, "primary"), (Victim::Party, "party"), (Victim::Server, "server")]
    {
        for number in 1..=EACH {
            let run = move |kit: &Kit, folder: &Path, rng: &mut ChaCha8Rng| {
                predicted(kit, folder, SoakExperiment::new(Data::People), victim, rng)
            };
            cases.push(Case::new(AREA, format!("{name} killed, {number}"), run).short(number == 1).seeded());
        }
    }
    cases.push(Case::new(AREA, "forbidden", |kit, folder, _| forbidden(kit, folder)).short(true));
    cases.push(Case::new(AREA, "a party is missing", |kit, folder, _| missing(kit, folder)).short(true));
    cases.push(Case::new(AREA, "a model that never missed a party", |kit, folder, _| never(kit, folder)));
    cases
}

/// Starts the primary's command.
fn predict(world: &SoakWorld<'_>) -> anyhow::Result<Process> {
    predict_with(world, &[])
}

fn predict_with(world: &SoakWorld<'_>, more: &[&str]) -> anyhow::Result<Process> {
    let arguments = [&PREDICT[..], &["--parties", "roster.toml", "--key", "own.key"], more].concat();
    Process::start(&world.kit.fet, &arguments, &world.member_folder("primary"), "predict")
}

/// Allows predictions in the policy of every party.
fn allow(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    for member in &world.members()[1..] {
        let file = world.party_file(member, "", "\n[policy]\npredictions = true\n");
        std::fs::write(world.member_folder(member).join("party.toml"), file)?;
    }
    Ok(())
}

/// Finishes a run and writes a table of new records: the rows of the primary's table, some of them twice.
/// Returns the parties.
fn finished(world: &SoakWorld<'_>, verdict: &mut CaseResult) -> anyhow::Result<Vec<Process>> {
    let table = world.experiment.files().remove(0);
    let new = format!("{}{}", table.text, table.text.lines().skip(1).take(50).collect::<Vec<_>>().join("\n"));
    std::fs::write(world.member_folder("primary").join("new.csv"), &new)?;
    let parties = world.parties()?;
    let ended = world.run(world.kit.patience(60))?;
    anyhow::ensure!(ended.code == Some(0), "the run: {}: {}", ended.describe(), ended.stderr);
    world.compare(verdict)?;
    Ok(parties)
}

fn predicted(
    kit: &Kit,
    folder: &Path,
    experiment: SoakExperiment,
    victim: Victim,
    rng: &mut ChaCha8Rng,
) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let simulation = kit.simulation(&experiment)?;
    let mut world = SoakWorld::new(kit, folder, experiment, true, 10)?;
    allow(&world)?;
    let mut parties = finished(&world, &mut verdict)?;
    let patience = kit.patience(60);
    // The simulation's models predict the same records.
    let own = world.folder.join("simulation");
    std::fs::create_dir_all(&own)?;
    std::fs::copy(world.member_folder("primary").join("new.csv"), own.join("new.csv"))?;
    let run = simulation.to_string_lossy().into_owned();
    kit.output_of(&own, &["predict", &run, "--rows", "new.csv", "--out", "new-predictions.csv"])?;

    let mut process = predict(&world)?;
    let place = rng.random_range(0..parties.len());
    let member = world.members()[place + 1];
    let wait = Duration::from_micros(rng.random_range(0..120_000));
    if victim != Victim::Nobody {
        std::thread::sleep(wait);
        verdict.note(format!("{victim:?} ({member}) after {wait:?}"));
    }
    match victim {
        Victim::Nobody => {}
        Victim::Primary => process.kill(),
        Victim::Party => {
            parties[place].kill();
            std::thread::sleep(Duration::from_millis(rng.random_range(0..300)));
            parties[place] = world.party(member)?;
        }
        Victim::Server => {
            world.server.stop();
            std::thread::sleep(Duration::from_millis(rng.random_range(0..300)));
            world.server.resume()?;
        }
    }
    let ended = process.wait(patience)?;
    verdict.note(ended.describe());
    if ended.hung {
        verdict.fault(FaultKind::Hang, format!("the primary: {}", ended.stderr));
    }
    let struck = ended.signal == Some(9) && victim == Victim::Primary;
    if ended.code != Some(0) && !ended.hung && !struck {
        // The loss of a party may be an error if the message is clear.
        if victim == Victim::Nobody || !matches!(ended.code, Some(2 | 75)) {
            verdict
                .fault(FaultKind::WrongCode, format!("the primary: {}: {}", ended.describe(), ended.stderr));
        }
        for problem in problems(&ended.stderr, &[]) {
            verdict.fault(FaultKind::Unclear, format!("the primary: {problem}: {}", ended.stderr));
        }
        verdict.note(ended.stderr.lines().last().unwrap_or_default());
    }
    if ended.code != Some(0) {
        let again = predict(&world)?.wait(patience)?;
        if again.code != Some(0) {
            let what = format!("the primary, with all there: {}: {}", again.describe(), again.stderr);
            verdict.fault(FaultKind::WrongCode, what);
        }
    }
    let read = |folder: &Path| std::fs::read_to_string(folder.join("new-predictions.csv")).ok();
    let expected = read(&own).map(|text| without_similarities(&text));
    if expected.is_none() || expected != read(&world.member_folder("primary")) {
        verdict.fault(FaultKind::WrongBytes, "new-predictions.csv differs from that of the simulation");
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

/// Runs one command three times: with all parties, without one party, and without any party.
fn missing(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let method = "{ kind = \"fet\", hidden = 8, heads = 2, party_dropout = 0.3 }";
    let experiment = SoakExperiment::new(Data::People).with("method", method);
    let world = SoakWorld::new(kit, folder, experiment, true, 10)?;
    allow(&world)?;
    let mut parties = finished(&world, &mut verdict)?;
    let file = world.member_folder("primary").join("new-predictions.csv");
    let drop = ["--missing", "drop", "--wait", "2"];
    // Returns the titles, and the cells of the column `missing`.
    let marked = || -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let text = std::fs::read_to_string(&file)?;
        let cells = |line: &str| line.split(',').map(String::from).collect::<Vec<_>>();
        let titles = cells(text.lines().next().unwrap_or_default());
        let place = titles.iter().position(|title| title == "missing");
        let place = place.ok_or_else(|| anyhow::anyhow!("no column `missing` in {titles:?}"))?;
        Ok((titles, text.lines().skip(1).map(|line| cells(line).swap_remove(place)).collect()))
    };
    let mut predicts = |more: &[&str], right: i32| -> anyhow::Result<()> {
        let _ = std::fs::remove_file(&file);
        let ended = predict_with(&world, more)?.wait(kit.patience(30))?;
        if ended.code != Some(right) {
            let what = format!("{more:?}: {}; expected {right}: {}", ended.describe(), ended.stderr);
            verdict.fault(FaultKind::WrongCode, what);
        }
        if file.exists() != (right == 0) {
            verdict.fault(
                FaultKind::Files,
                format!("{more:?}: new-predictions.csv is there: {}", file.exists()),
            );
        }
        Ok(())
    };
    predicts(&drop, 0)?;
    let (all, none) = marked()?;
    anyhow::ensure!(none.iter().all(String::is_empty), "somebody is marked as missing: {none:?}");
    parties[0].kill();
    predicts(&["--wait", "2"], 75)?;
    predicts(&drop, 0)?;
    let (left, marks) = marked()?;
    anyhow::ensure!(!marks.is_empty() && marks.iter().all(|mark| !mark.is_empty()), "not marked: {marks:?}");
    let bounded =
        |titles: &[String]| titles.iter().any(|title| ["likely", "lower"].contains(&title.as_str()));
    anyhow::ensure!(bounded(&all) && !bounded(&left), "bounds: {all:?}, {left:?}");
    parties.iter_mut().for_each(Process::kill);
    predicts(&drop, 75)?;
    world.panics(&mut verdict)?;
    Ok(verdict)
}

/// Predicts without a party although the model was trained with all parties in each step.
fn never(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Places), true, 10)?;
    allow(&world)?;
    let mut parties = finished(&world, &mut verdict)?;
    let ended = predict_with(&world, &["--missing", "drop"])?.wait(kit.patience(30))?;
    if ended.code != Some(2) {
        verdict.fault(
            FaultKind::WrongCode,
            format!("the primary: {}; expected 2: {}", ended.describe(), ended.stderr),
        );
    }
    for problem in problems(&ended.stderr, &["method.party_dropout"]) {
        verdict.fault(FaultKind::Unclear, format!("the primary: {problem}: {}", ended.stderr));
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}

/// Predicts although a party's policy forbids predictions.
fn forbidden(kit: &Kit, folder: &Path) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Refused);
    let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Places), true, 10)?;
    allow(&world)?;
    // The first party has the default policy, which forbids predictions.
    std::fs::write(world.member_folder("p1").join("party.toml"), world.party_file("p1", "", ""))?;
    let mut parties = finished(&world, &mut verdict)?;
    let ended = predict(&world)?.wait(kit.patience(30))?;
    if ended.code != Some(2) {
        verdict.fault(
            FaultKind::WrongCode,
            format!("the primary: {}; expected 2: {}", ended.describe(), ended.stderr),
        );
    } else {
        for problem in problems(&ended.stderr, &["policy.predictions", "streets|p1|party 1"]) {
            verdict.fault(FaultKind::Unclear, format!("the primary: {problem}: {}", ended.stderr));
        }
    }
    if world.member_folder("primary").join("new-predictions.csv").exists() {
        verdict.fault(FaultKind::Files, "the refused command left new-predictions.csv");
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}
