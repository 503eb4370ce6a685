//! Runs the program `fet` on hostile and careless inputs, and counts its faults.
//!
//! Each case states the expected result: a refusal with exit code 2 and one clear message, success, or
//! another exit code. The suite uses `fet` only as a user does. It does not check the results of valid
//! experiments, which other tests do.

mod areas;
mod base;
mod judge;
mod play;
mod sandbox;
mod script;
mod snapshot;

use std::path::PathBuf;

use crate::runner::{self, RunnerOptions};
use base::Bases;
use play::Shared;

/// Arguments of `fet-e2e abuse`.
#[derive(Debug, clap::Args)]
pub struct AbuseArguments {
    /// Path of the program `fet`.
    fet: PathBuf,
    /// Run some cases of each area: about 150, in at most a minute.
    #[arg(long)]
    short: bool,
    /// Run only the cases whose `area/name` contains NAME.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Seed of the generated cases.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Factor on the time limits, which assume an idle machine.
    #[arg(long, default_value_t = 1)]
    patience: u32,
    /// Keep the folder of each failing case.
    #[arg(long)]
    keep: bool,
    /// Print each case and its result.
    #[arg(long)]
    verbose: bool,
}

/// Runs the chosen cases. Calls `say` with each line to show. Returns true if every case ended as expected.
///
/// # Errors
/// Returns an error if the base folders cannot be made, or no case is chosen.
pub fn run(arguments: &AbuseArguments, say: &mut dyn FnMut(String)) -> anyhow::Result<bool> {
    let (fet, root) = runner::prepare(&arguments.fet)?;
    let logs = root.path().join("logs");
    std::fs::create_dir(&logs)?;
    let bases = Bases::new(&fet, root.path(), &logs)?;
    let cases = play::cases(areas::all(&fet, &bases, &logs, arguments.seed)?);
    let kept = format!("fet-e2e-kept-{}", std::process::id());
    let options = RunnerOptions {
        root: root.path(),
        suite: "abuse",
        short: arguments.short,
        only: arguments.only.as_deref(),
        seed: arguments.seed,
        minutes: None,
        keep: arguments.keep.then(|| std::env::temp_dir().join(kept)),
        verbose: arguments.verbose,
    };
    runner::run(&Shared { fet, bases, logs, patience: arguments.patience }, cases, &options, say)
}
