//! The workspace's own commands: `cargo xtask ablate`, `test`, `check`, `bench`, `libtorch`.
//!
//! It links no tensor library, so that it is built in seconds, and drives the `fet` program.

#![expect(clippy::print_stdout, reason = "a command answers on standard output")]

mod ablate;
mod checks;
mod libtorch;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands of the Federated Transformer workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train every variant of an experiment with every seed, and compare them in a table.
    ///
    /// Cells that are done are skipped: the same command continues what was interrupted.
    Ablate(ablate::Arguments),
    /// Run all tests; with LibTorch where `cargo xtask libtorch` has set it up.
    Test {
        /// Passed on to `cargo test`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Everything a change must pass: format, lints, feature sets, documentation, tests.
    Check {
        /// Leave out the tests.
        #[arg(long)]
        fast: bool,
    },
    /// Measure speed; raw numbers are printed and kept by criterion under `target/criterion`.
    Bench {
        /// Passed on to `cargo bench`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Fetch the LibTorch that the backends `libtorch` and `libtorch-cuda` are built with.
    Libtorch(libtorch::Arguments),
}

/// The input of a command is at fault: exit code 2.
#[derive(Debug)]
pub(crate) struct InputError(pub(crate) String);

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InputError {}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Ablate(arguments) => ablate::ablate(&arguments),
        Command::Test { arguments } => checks::test(&arguments),
        Command::Check { fast } => checks::check(fast),
        Command::Bench { arguments } => checks::bench(&arguments),
        Command::Libtorch(arguments) => libtorch::set_up(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(if error.is::<InputError>() { 2 } else { 1 })
    })
}
