//! Measures the overhead of separate processes: runs the same experiment alternately as a simulation and as
//! processes. Of their files it compares only the reports.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::process::{LOOK, Process};
use crate::soak::compare::reports;
use crate::soak::experiment::{Data, Given, SoakExperiment};
use crate::soak::kit::{Kit, MOST_PARTIES};
use crate::soak::world::SoakWorld;

/// Time limit of a run in seconds; some experiments take an hour.
const LONGEST: u64 = 4 * 3600;
/// Minimum duration in seconds of a run for a meaningful ratio.
const LEAST: f64 = 1.0;
/// Arguments of a run with separate processes.
const BETWEEN: &[&str] = &["--parties", "roster.toml", "--key", "own.key"];

/// Runs `pairs` pairs of runs and reports their times. Returns true if every pair was measured and had equal
/// reports.
pub(crate) fn overhead(
    kit: &Kit,
    root: &Path,
    file: Option<(&Path, Option<usize>)>,
    pairs: u32,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<bool> {
    let mut experiment = SoakExperiment::new(Data::Digits);
    if let Some((file, parties)) = file {
        experiment.given = Some(given(kit, root, file, parties)?);
    }
    let world = SoakWorld::new(kit, &root.join("overhead"), experiment, true, 20)?;
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
            _ => say(format!("warning: pair {pair}: no measurement: a report has no `cost.seconds`")),
        }
        for out in [simulation, processes] {
            std::fs::remove_dir_all(&out).with_context(|| format!("{}", out.display()))?;
        }
    }
    say(summary(&measured));
    if all_equal {
        say("the reports of each pair are equal except for `cost`".into());
    }
    if measured.iter().any(|(one, _)| *one < LEAST) {
        say("warning: a run of less than a second is too short for a meaningful ratio; set a longer one with `--experiment`".into());
    }
    Ok(all_equal && measured.len() == pairs as usize)
}

/// Returns an experiment's file with its number of parties, which the file or `asked` gives.
fn given(kit: &Kit, root: &Path, file: &Path, asked: Option<usize>) -> anyhow::Result<Given> {
    let shown = file.display();
    let file = file.canonicalize().with_context(|| format!("{shown}"))?;
    let text = kit.output_of(root, &["show", &file.to_string_lossy(), "--json"])?;
    let named = named(&serde_json::from_str(&text).with_context(|| format!("`fet show` of {shown}"))?);
    let parties = named
        .or(asked)
        .with_context(|| format!("{shown} does not list its parties: set their number with --parties"))?;
    ensure!(
        asked.is_none_or(|asked| asked == parties),
        "{shown} has {parties} parties without the primary, but --parties is {}",
        asked.unwrap_or(parties)
    );
    ensure!(
        (1..=MOST_PARTIES).contains(&parties),
        "{parties} parties: the number must be 1 to {MOST_PARTIES}"
    );
    let data = std::env::var_os("FET_DATA").filter(|place| !place.is_empty());
    let data = data.map_or_else(|| "data".into(), PathBuf::from).canonicalize().ok();
    Ok(Given { file, parties, data })
}

/// Returns the number of parties without the primary from an experiment in JSON, if it lists the parties.
fn named(experiment: &serde_json::Value) -> Option<usize> {
    let data = experiment.get("data")?;
    match data.get("secondaries").and_then(serde_json::Value::as_array) {
        Some(secondaries) => Some(secondaries.len()),
        None => usize::try_from(data.get("parties")?.as_u64()?.checked_sub(1)?).ok(),
    }
}

/// Waits until all parties are ready for the primary, so that their start is not measured.
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

/// Completes a run and returns its folder.
fn run(world: &SoakWorld<'_>, out: &str, more: &[&str]) -> anyhow::Result<PathBuf> {
    let ended = world.start(out, more)?.wait(world.kit.patience(LONGEST))?;
    ensure!(ended.code == Some(0), "the run `{out}`: {}: {}", ended.describe(), ended.stderr);
    Ok(world.member_folder("primary").join(out))
}

/// Returns the duration of a run from its report.
fn seconds(out: &Path) -> anyhow::Result<Option<f64>> {
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(out.join("report.json"))?)?;
    let seconds = report.pointer("/cost/seconds").and_then(serde_json::Value::as_f64);
    Ok(seconds.filter(|&seconds| seconds > 0.0))
}

/// Formats the median, minimum and maximum of the ratios.
fn summary(measured: &[(f64, f64)]) -> String {
    let mut ratios: Vec<f64> = measured.iter().map(|(one, many)| many / one).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else {
        return "warning: no pair was measured".into();
    };
    let half = ratios.len() / 2;
    let median = (ratios[half] + ratios[(ratios.len() - 1) / 2]) / 2.0;
    format!("pairs: {}; median ratio {median:.2} ({least:.2} to {most:.2})", ratios.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_ratios_is_between_their_extremes() {
        for (measured, expected) in [
            (&[][..], "warning: no pair was measured"),
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
