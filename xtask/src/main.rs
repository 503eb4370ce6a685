//! Commands of the workspace, as `cargo xtask <command>`: arguments and exit codes.
//!
//! The program links no tensor library, so that it builds in seconds. It computes nothing itself but drives
//! `cargo` and the `fet` command.

mod ablate;
mod bench;
mod check;
mod circles;
mod gpu;
mod libtorch;
mod output;
mod prose;
mod reference;
mod site;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Failed;

/// Development commands of the Federated Transformer's workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  cargo xtask ablate                                  the quickstart study, from the build to the table
  cargo xtask ablate --dry-run                        list the cells of the study, done and missing
  cargo xtask tune hdb --variant FeT                  better settings for one variant, by the validation rows
  cargo xtask libtorch                                fetch LibTorch, the fastest device on a CPU
  cargo xtask libtorch --cuda && cargo xtask gpu      fetch LibTorch for a GPU, check and time it
  cargo xtask check                                   everything CI checks

Exit codes: 0 done; 1 a cell, a test or a build failed; 2 invalid input; 130 interrupted.
`cargo xtask <command> --help` describes a command.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an ablation study: every variant with every seed; resumes an interrupted study.
    Ablate(fet_study::AblateArguments),
    /// Search for better settings on the validation rows; the search never reads the test rows.
    Tune(fet_study::TuneArguments),
    /// Set LibTorch up, for the device `libtorch`.
    Libtorch(libtorch::Arguments),
    /// Run the tests of the workspace.
    Test(check::TestArguments),
    /// Check format, lints, feature sets, documentation and tests; stops at the first failure.
    Check(check::Arguments),
    /// Run the benchmarks, or alternate with the authors' program.
    Bench(bench::Arguments),
    /// Run the tests that compare devices, and the benchmarks, on a GPU.
    Gpu(gpu::Arguments),
    /// Build the site of the guides, and mdBook for it.
    Site,
    /// Write the reference of settings, docs/reference, after a change of settings or plug-ins.
    Reference,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Ablate(arguments) => ablate::ablate(&arguments),
        Command::Tune(arguments) => ablate::tune(&arguments),
        Command::Libtorch(arguments) => libtorch::libtorch(&arguments),
        Command::Test(arguments) => check::test(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Gpu(arguments) => gpu::gpu(&arguments),
        Command::Site => site::site(),
        Command::Reference => reference::reference(),
    };
    outcome.unwrap_or_else(|error| {
        fet_io::note!("xtask: {error:#}");
        ExitCode::from(if error.is::<Failed>() { 1 } else { 2 })
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
