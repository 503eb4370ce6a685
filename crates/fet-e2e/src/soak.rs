//! Runs the parties of an experiment as processes that communicate through a server, disturbs them, and
//! compares their files with a simulation of the same experiment, byte for byte. It can also measure the
//! overhead of separate processes.
//!
//! The soak uses `fet` and `nats-server` only as their users do. [`crate::abuse`] tests faults of single
//! processes.

mod areas;
mod compare;
mod experiment;
mod kit;
mod overhead;
mod proxy;
mod server;
mod tables;
mod world;

use std::path::PathBuf;

use crate::runner::{self, RunnerOptions};
use kit::Kit;

/// Areas of the cases.
pub const AREAS: [&str; 8] = ["equal", "refusal", "capture", "kill", "state", "predict", "serve", "path"];

/// Arguments of `fet-e2e soak`.
#[derive(Debug, clap::Args)]
pub struct SoakArguments {
    /// Path of the program `fet`.
    fet: PathBuf,
    /// Program of the parties, such as that of the previous version; repeatable. The parties take these programs in turn, and
    /// FET remains the program of the primary and of the simulation.
    #[arg(long = "party", value_name = "FET")]
    parties_programs: Vec<PathBuf>,
    /// Run some cases of each area, in a minute.
    #[arg(long)]
    short: bool,
    /// Run only the cases whose `area/name` contains AREA.
    #[arg(long, value_name = "AREA")]
    only: Option<String>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Repeat the cases with random choices, with the following seeds, for M minutes.
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// Factor on the time limits, which assume an idle machine.
    #[arg(long, default_value_t = 1)]
    patience: u32,
    /// Number of kills in each case of the area `serve`, in place of 5.
    #[arg(long, value_name = "N")]
    kills: Option<u32>,
    /// Keep the folder of each failing case below DIR.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print each case and its result.
    #[arg(long)]
    verbose: bool,
    /// Instead of the cases, measure the overhead of separate processes with N pairs of runs, alternating
    /// with runs in one process.
    #[arg(long, value_name = "N", conflicts_with_all = ["short", "only", "seed", "minutes", "kills", "keep", "verbose"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    overhead: Option<u32>,
    /// Experiment for `--overhead`, in place of a small one.
    #[arg(long, value_name = "FILE", requires = "overhead")]
    experiment: Option<PathBuf>,
    /// Number of parties without the primary, if the experiment does not list its parties.
    #[arg(long, value_name = "P", requires = "experiment")]
    parties: Option<usize>,
}

/// Runs the chosen cases, or measures the overhead. Calls `say` with each line to show. Returns true if every
/// case ended as expected.
///
/// # Errors
/// Returns an error if `nats-server` does not run, or no case is chosen.
pub fn run(arguments: &SoakArguments, say: &mut dyn FnMut(String)) -> anyhow::Result<bool> {
    let (fet, root) = runner::prepare(&arguments.fet)?;
    let mut kit = Kit::new(&fet, root.path(), arguments.patience, arguments.kills)?;
    for program in &arguments.parties_programs {
        kit.add_party_program(program)?;
    }
    if let Some(pairs) = arguments.overhead {
        let given = arguments.experiment.as_deref().map(|file| (file, arguments.parties));
        return overhead::overhead(&kit, root.path(), given, pairs, say);
    }
    let options = RunnerOptions {
        root: root.path(),
        suite: "soak",
        short: arguments.short,
        only: arguments.only.as_deref(),
        seed: arguments.seed,
        minutes: arguments.minutes,
        keep: arguments.keep.clone(),
        verbose: arguments.verbose,
    };
    runner::run(&kit, areas::all(), &options, say)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_in_a_listed_area() {
        for case in areas::all() {
            assert!(AREAS.contains(&case.area), "{}", case.title());
        }
    }
}
