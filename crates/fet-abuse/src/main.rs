//! `fet-abuse`: runs the program `fet` on hostile and careless inputs, and counts what it gets wrong.
//!
//! Each case states what is right: a refusal with exit code 2 and one clear message, success, or another stated code. The
//! program knows `fet` from outside only, as a user does; it does not look at the results of sound experiments, which are
//! tested elsewhere. It needs a Unix: signals, FIFOs and limits have no equal on other systems.

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

/// Runs `fet` on hostile and careless inputs. Exits with 0 if every case ended as is right.
#[derive(Debug, Parser)]
#[cfg_attr(not(unix), expect(dead_code, reason = "nothing runs here"))]
struct Arguments {
    /// The program `fet`.
    fet: PathBuf,
    /// Some cases of each area: about 150, in a minute at most.
    #[arg(long)]
    short: bool,
    /// Only the cases whose `area/name` contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The seed of the generated cases.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many times longer than on an idle machine a command may take.
    #[arg(long, default_value_t = 1)]
    patience: u64,
    /// Keep the folder of each failing case.
    #[arg(long)]
    keep: bool,
    /// Print each case and how it ended.
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
