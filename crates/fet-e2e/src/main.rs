//! `fet-e2e`: runs the suites of this crate. Exit codes: 0: no faults. 1: faults. 2: invalid input.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fet_e2e::golden;
#[cfg(unix)]
use fet_e2e::{abuse, fuzz, soak, stop};

/// Tests of the whole program.
#[derive(Debug, Parser)]
struct E2eArguments {
    #[command(subcommand)]
    command: E2eCommand,
}

#[derive(Debug, Subcommand)]
enum E2eCommand {
    /// Run `fet` on hostile and careless inputs.
    #[cfg(unix)]
    Abuse(abuse::AbuseArguments),
    /// Run the parties of an experiment as processes, disturb them, and compare their files with a simulation.
    #[cfg(unix)]
    Soak(soak::SoakArguments),
    /// Give damaged inputs to each reader and count faults.
    #[cfg(unix)]
    Fuzz(fuzz::command::FuzzArguments),
    /// Compare this program with another implementation's figures.
    Golden(golden::GoldenArguments),
}

/// Stack size of the working thread in bytes, as in `fet`.
const STACK: usize = 16 << 20;

fn main() -> ExitCode {
    let worker =
        std::thread::Builder::new().stack_size(STACK).spawn(|| match E2eArguments::parse().command {
            #[cfg(unix)]
            E2eCommand::Abuse(arguments) => suite(|say| abuse::run(&arguments, say)),
            #[cfg(unix)]
            E2eCommand::Soak(arguments) => suite(|say| soak::run(&arguments, say)),
            #[cfg(unix)]
            E2eCommand::Fuzz(arguments) => ended(fuzz::command::run(&arguments, &mut say)),
            E2eCommand::Golden(arguments) => golden::run(&arguments),
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
