//! Runs the cases one after another, prints failing cases, and counts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fet_testing::folder::copy;
use fet_testing::mutate::generator;
use fet_testing::tally::Tally;

use crate::areas;
use crate::case::{Case, End, Kind, Verdict};
use crate::kit::Kit;
use crate::process::go_on;

/// Runs the parties of an experiment as processes, disturbs them, and compares their files with a simulation.
/// Exits with 0 if every case ended as expected.
#[derive(Debug, Clone, clap::Parser)]
pub struct Arguments {
    /// Path of the program `fet`.
    pub fet: PathBuf,
    /// Run some cases of each area, in a minute.
    #[arg(long)]
    pub short: bool,
    /// Run only the cases whose `area/name` contains AREA.
    #[arg(long, value_name = "AREA")]
    pub only: Option<String>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Repeat the cases with random choices, with the following seeds, for M minutes.
    #[arg(long, value_name = "M")]
    pub minutes: Option<u64>,
    /// Factor on the time limits, which assume an idle machine.
    #[arg(long, default_value_t = 1)]
    pub patience: u32,
    /// Keep the folder of each failing case below DIR.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Print each case and its result.
    #[arg(long)]
    pub verbose: bool,
    /// Instead of the cases, measure the overhead of separate processes with N pairs of runs, alternating
    /// with runs in one process.
    #[arg(long, value_name = "N", conflicts_with_all = ["short", "only", "seed", "minutes", "keep", "verbose"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub overhead: Option<u32>,
    /// Experiment for `--overhead`, in place of a small one.
    #[arg(long, value_name = "FILE", requires = "overhead")]
    pub experiment: Option<PathBuf>,
    /// Number of parties without the primary, if the experiment does not list its parties.
    #[arg(long, value_name = "P", requires = "experiment")]
    pub parties: Option<usize>,
}

/// Runs the chosen cases. Calls `say` with each line to show.
pub fn work(arguments: &Arguments, say: &mut dyn FnMut(String)) -> anyhow::Result<Tally> {
    let start = Instant::now();
    let fet = arguments.fet.canonicalize().with_context(|| format!("{}", arguments.fet.display()))?;
    let root =
        tempfile::Builder::new().prefix("fet-soak-").tempdir().context("cannot create a temporary folder")?;
    let kit = Kit::new(&fet, root.path(), arguments.patience)?;
    let mut cases = areas::all();
    cases.retain(|case| arguments.only.as_ref().is_none_or(|only| case.title().contains(only.as_str())));
    cases.retain(|case| case.short || !arguments.short);
    ensure!(!cases.is_empty(), "no case matches --only");
    let mut tally = Tally::new(End::ALL.map(End::name).into_iter().chain(Kind::ALL.map(Kind::name)));
    'seeds: for seed in arguments.seed.. {
        for case in cases.iter().filter(|case| seed == arguments.seed || case.seeded) {
            let over =
                arguments.minutes.is_some_and(|minutes| start.elapsed() > Duration::from_secs(60 * minutes));
            if over && seed > arguments.seed {
                break 'seeds;
            }
            let began = Instant::now();
            let verdict = one(&kit, case, seed, root.path(), arguments, say)?;
            if go_on().is_err() {
                say(format!("stopped in {}", case.title()));
                break 'seeds;
            }
            let faults = verdict.faults.iter().map(|fault| fault.kind.name());
            tally.add(case.area, Some(verdict.end.name()), faults);
            if arguments.verbose {
                let how =
                    if verdict.faults.is_empty() { format!("{:?}", verdict.end) } else { "FAIL".into() };
                let notes = verdict.notes.join("; ");
                say(format!(
                    "{:6.2} s  {} seed {seed}: {how}  {notes}",
                    began.elapsed().as_secs_f64(),
                    case.title()
                ));
            }
        }
        let minutes = arguments.minutes.unwrap_or(0);
        if start.elapsed() >= Duration::from_secs(60 * minutes) || !cases.iter().any(|case| case.seeded) {
            break;
        }
    }
    say(format!("{} cases in {:.1} s", tally.cases(), start.elapsed().as_secs_f64()));
    Ok(tally)
}

fn one(
    kit: &Kit,
    case: &Case,
    seed: u64,
    root: &Path,
    arguments: &Arguments,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<Verdict> {
    let folder = root.join("case");
    std::fs::create_dir_all(&folder)?;
    let number = case.name.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(257).wrapping_add(byte.into()));
    let verdict = (case.run)(kit, &folder, &mut generator(seed, case.area, number)).unwrap_or_else(|error| {
        let mut verdict = Verdict::new(End::Refused);
        verdict.fault(Kind::WrongCode, format!("cannot run the case: {error:#}"));
        verdict
    });
    if !verdict.faults.is_empty() && go_on().is_ok() {
        say(format!("FAIL {}", case.title()));
        for note in &verdict.notes {
            say(format!("    {note}"));
        }
        for fault in &verdict.faults {
            say(format!("    {}: {}", fault.kind.name(), fault.what.trim_end().replace('\n', "\n        ")));
        }
        say(format!("    again: fet-soak FET --seed {seed} --only '{}'", case.title()));
        if let Some(keep) = &arguments.keep {
            let kept = keep.join(format!("{}-s{seed}", case.title().replace(['/', ' ', ','], "-")));
            copy(&folder, &kept).with_context(|| format!("cannot keep {}", kept.display()))?;
            say(format!("    kept: {}", kept.display()));
        }
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(verdict)
}
