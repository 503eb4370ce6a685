//! `fet-abuse`: runs the program `fet` on hostile and careless inputs, and counts its faults.
//!
//! Each case states the expected result: a refusal with exit code 2 and one clear message, success, or
//! another exit code. The suite uses `fet` only as a user does. It does not check the results of valid
//! experiments, which other tests do. It needs Unix, because other systems lack signals, FIFOs and resource
//! limits.

#![expect(clippy::print_stdout, reason = "the program answers on standard output")]

#[cfg(unix)]
mod areas;
#[cfg(unix)]
mod base;
#[cfg(unix)]
mod case;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod judge;
#[cfg(unix)]
mod message;
#[cfg(unix)]
mod snapshot;
#[cfg(unix)]
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Runs `fet` on hostile and careless inputs. Exits with 0 if every case ended as expected.
#[derive(Debug, Parser)]
#[cfg_attr(not(unix), expect(dead_code, reason = "nothing runs here"))]
struct Arguments {
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
    patience: u64,
    /// Keep the folder of each failing case.
    #[arg(long)]
    keep: bool,
    /// Print each case and its result.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    answer(&arguments)
}

#[cfg(unix)]
fn answer(arguments: &Arguments) -> ExitCode {
    match work::work(arguments) {
        Ok(tally) => {
            println!("{}", tally.table());
            println!("{} of {} cases are as they should be", tally.good(), tally.cases());
            if tally.good() == tally.cases() { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            eprintln!("fet-abuse: {error:#}");
            ExitCode::from(2)
        }
    }
}

#[cfg(not(unix))]
fn answer(_: &Arguments) -> ExitCode {
    eprintln!("fet-abuse: needs a Unix");
    ExitCode::from(2)
}
