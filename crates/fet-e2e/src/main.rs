//! `fet-e2e`: runs the suites of this crate. Exit codes: 0: no faults. 1: faults. 2: invalid input.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fet_e2e::golden;
#[cfg(unix)]
use fet_e2e::{abuse, fuzz, soak, stop};

/// Tests of the whole program.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run `fet` on hostile and careless inputs.
    #[cfg(unix)]
    Abuse(abuse::Arguments),
    /// Run the parties of an experiment as processes, disturb them, and compare their files with a simulation.
    #[cfg(unix)]
    Soak(soak::Arguments),
    /// Give damaged inputs to each reader and count faults.
    #[cfg(unix)]
    Fuzz(fuzz::command::Arguments),
    /// Compare this program with another implementation's figures.
    Golden(golden::Arguments),
}

/// Stack size of the working thread in bytes, as in `fet`.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(|| match Arguments::parse().command {
        #[cfg(unix)]
        Command::Abuse(arguments) => suite(|say| abuse::run(&arguments, say)),
        #[cfg(unix)]
        Command::Soak(arguments) => suite(|say| soak::run(&arguments, say)),
        #[cfg(unix)]
        Command::Fuzz(arguments) => ended(fuzz::command::run(&arguments, &mut say)),
        Command::Golden(arguments) => golden::run(&arguments),
    });
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => ended(Err(error.into())),
    }
}

/// Runs a suite with child processes, which Ctrl-C must end.
#[cfg(unix)]
fn suite(run: impl Fn(&mut dyn FnMut(String)) -> anyhow::Result<bool>) -> ExitCode {
    ended(ctrlc::set_handler(stop).map_err(Into::into).and_then(|()| run(&mut say)))
}

/// Prints a line and ignores a closed pipe.
#[cfg(unix)]
fn say(line: String) {
    let _ = fet_io::answer(&format!("{line}\n"));
}

fn ended(outcome: anyhow::Result<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            fet_io::note!("fet-e2e: {error:#}");
            ExitCode::from(2)
        }
    }
}
