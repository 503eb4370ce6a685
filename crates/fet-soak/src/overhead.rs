//! What it costs that parties are processes: the same experiment as a simulation and between processes, in turns. Of what
//! they write, only the reports are compared.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::Arguments;
use crate::compare::reports;
use crate::experiment::{Data, Experiment, Given};
use crate::kit::{Kit, MOST_PARTIES};
use crate::process::{LOOK, Process};
use crate::world::World;

/// After so many seconds a run hangs; some experiments take an hour.
const LONGEST: u64 = 4 * 3600;
/// A ratio of runs that take less than this, in seconds, says little.
const LEAST: f64 = 1.0;
/// What makes a run one between processes.
const BETWEEN: &[&str] = &["--parties", "roster.toml", "--key", "own.key"];

/// Runs `pairs` pairs, and says what each took. Whether all were measured, with equal reports.
pub fn overhead(arguments: &Arguments, pairs: u32, say: &mut dyn FnMut(String)) -> anyhow::Result<bool> {
    let fet = arguments.fet.canonicalize().with_context(|| format!("{}", arguments.fet.display()))?;
    let root = tempfile::Builder::new().prefix("fet-soak-").tempdir().context("no temporary folder")?;
    let kit = Kit::new(&fet, root.path(), arguments.patience)?;
    let mut experiment = Experiment::new(Data::Digits);
    if let Some(file) = &arguments.experiment {
        experiment.given = Some(given(&kit, root.path(), file, arguments.parties)?);
    }
    let world = World::new(&kit, &root.path().join("overhead"), experiment, true, 20)?;
    let mut parties = world.parties()?;
    ready(&mut parties, kit.patience(60))?;

    let mut measured = Vec::new();
    let mut all_equal = true;
    for pair in 1..=pairs {
        let simulation = run(&world, "simulation", &[])?;
        let processes = run(&world, "processes", BETWEEN)?;
        if let Some(difference) = reports(&simulation, &processes)? {
            all_equal = false;
            say(format!("pair {pair}: {difference}"));
        }
        match (seconds(&simulation)?, seconds(&processes)?) {
            (Some(one), Some(many)) => {
                say(format!(
                    "pair {pair}: simulation {one:.2} s, processes {many:.2} s, ratio {:.2}",
                    many / one
                ));
                measured.push((one, many));
            }
            _ => say(format!("warning: pair {pair}: nothing was measured: a report has no `cost.seconds`")),
        }
        for out in [simulation, processes] {
            std::fs::remove_dir_all(&out).with_context(|| format!("{}", out.display()))?;
        }
    }
    say(summary(&measured));
    if all_equal {
        say("the reports of each pair are equal but for `cost`".into());
    }
    if measured.iter().any(|(one, _)| *one < LEAST) {
        say("warning: a run of less than a second says little; `--experiment` takes a longer one".into());
    }
    Ok(all_equal && measured.len() == pairs as usize)
}

/// An experiment's file, with the number of parties that it names, or that `asked` does.
fn given(kit: &Kit, root: &Path, file: &Path, asked: Option<usize>) -> anyhow::Result<Given> {
    let shown = file.display();
    let file = file.canonicalize().with_context(|| format!("{shown}"))?;
    let text = kit.asked(root, &["show", &file.to_string_lossy(), "--json"])?;
    let named = named(&serde_json::from_str(&text).with_context(|| format!("`fet show` of {shown}"))?);
    let parties = named.or(asked).with_context(|| {
        format!("{shown} does not say how many parties there are: name their number with --parties")
    })?;
    ensure!(
        asked.is_none_or(|asked| asked == parties),
        "{shown} names {parties} parties besides the primary, and --parties {}",
        asked.unwrap_or(parties)
    );
    ensure!((1..=MOST_PARTIES).contains(&parties), "{parties} parties: there can be 1 to {MOST_PARTIES}");
    let data = std::env::var_os("FET_DATA").filter(|place| !place.is_empty());
    let data = data.map_or_else(|| "data".into(), PathBuf::from).canonicalize().ok();
    Ok(Given { file, parties, data })
}

/// The parties besides the primary of an experiment in JSON, where it names them.
fn named(experiment: &serde_json::Value) -> Option<usize> {
    let data = experiment.get("data")?;
    match data.get("secondaries").and_then(serde_json::Value::as_array) {
        Some(secondaries) => Some(secondaries.len()),
        None => usize::try_from(data.get("parties")?.as_u64()?.checked_sub(1)?).ok(),
    }
}

/// Waits until all parties wait for the primary, so that their start is not measured.
fn ready(parties: &mut [Process], patience: Duration) -> anyhow::Result<()> {
    let began = Instant::now();
    for party in parties {
        while !party.stderr().contains("ready") {
            let gone = party.ended()?.is_some() || began.elapsed() > patience;
            ensure!(!gone, "a party is not ready: {}", party.stderr());
            std::thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// A run to its end; the folder of what it wrote.
fn run(world: &World<'_>, out: &str, more: &[&str]) -> anyhow::Result<PathBuf> {
    let ended = world.start(out, more)?.wait(world.kit.patience(LONGEST))?;
    ensure!(ended.code == Some(0), "the run `{out}`: {}: {}", ended.said(), ended.stderr);
    Ok(world.of("primary").join(out))
}

/// The seconds of a run by its report.
fn seconds(out: &Path) -> anyhow::Result<Option<f64>> {
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json"))?)?;
    let seconds = report.pointer("/cost/seconds").and_then(serde_json::Value::as_f64);
    Ok(seconds.filter(|&seconds| seconds > 0.0))
}

/// The median of the ratios, and the least and the greatest.
fn summary(measured: &[(f64, f64)]) -> String {
    let mut ratios: Vec<f64> = measured.iter().map(|(one, many)| many / one).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else {
        return "warning: nothing was measured".into();
    };
    let half = ratios.len() / 2;
    let median = (ratios[half] + ratios[(ratios.len() - 1) / 2]) / 2.0;
    format!("pairs: {}; median ratio {median:.2} ({least:.2} to {most:.2})", ratios.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_ratios_stands_between_the_least_and_the_greatest() {
        for (measured, expected) in [
            (&[][..], "warning: nothing was measured"),
            (&[(2.0, 3.0)], "pairs: 1; median ratio 1.50 (1.50 to 1.50)"),
            (&[(1.0, 4.0), (2.0, 4.0)], "pairs: 2; median ratio 3.00 (2.00 to 4.00)"),
            (&[(1.0, 4.0), (2.0, 4.0), (1.0, 1.0)], "pairs: 3; median ratio 2.00 (1.00 to 4.00)"),
        ] {
            assert_eq!(summary(measured), expected);
        }
    }

    #[test]
    fn an_experiment_names_its_parties_as_tables_or_as_a_number() {
        for (experiment, expected) in [
            (r#"{"data": {"kind": "split", "parties": 4}}"#, Some(3)),
            (r#"{"data": {"kind": "linked", "secondaries": [{}, {}]}}"#, Some(2)),
            (r#"{"data": {"kind": "other"}}"#, None),
            (r#"{"data": {"parties": 0}}"#, None),
            ("{}", None),
        ] {
            let experiment = serde_json::from_str(experiment).expect("JSON");
            assert_eq!(named(&experiment), expected, "{experiment}");
        }
    }
}
