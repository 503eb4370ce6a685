//! The workspace's own commands, as `cargo xtask <command>`: what they are given and the exit codes.
//!
//! It links no tensor library, so that it is built in seconds, and computes nothing itself: it drives `cargo`
//! and the `fet` command.

mod ablate;
mod bench;
mod check;
mod gpu;
mod libtorch;
mod output;
mod site;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::Failed;

/// The commands of the Federated Transformer's workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  cargo xtask ablate                                  the quickstart study, from the build to the table
  cargo xtask ablate --dry-run                        which cells that is, and which are done
  cargo xtask tune hdb --variant FeT                  better settings for one of its variants, by the validation rows
  cargo xtask libtorch                                fetch LibTorch, the fastest device on a CPU
  cargo xtask libtorch --cuda && cargo xtask gpu      the same for a GPU: fetched, checked and timed
  cargo xtask check                                   everything CI checks

Exit codes: 0 done; 1 a cell, a test or a build failed; 2 the input is at fault; 130 interrupted.
`cargo xtask <command> --help` says more.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an ablation study: every variant with every seed; resumes where it was left.
    Ablate(fet_study::Arguments),
    /// Search for better settings on the validation rows; the test rows stay unseen.
    Tune(fet_study::TuneArguments),
    /// Set LibTorch up, for the device `libtorch`.
    Libtorch(libtorch::Arguments),
    /// Run every test of the workspace.
    Test(check::Passed),
    /// Check format, lints, feature sets, documentation and tests; stops at the first failure.
    Check(check::Arguments),
    /// Run the benchmarks, or take turns with the authors' program.
    Bench(bench::Arguments),
    /// Run the tests that compare devices, and the benchmarks, on a GPU.
    Gpu(gpu::Arguments),
    /// Make a site of the guides, with mdBook, which is compiled for it.
    Site,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Ablate(arguments) => ablate::ablate(&arguments),
        Command::Tune(arguments) => ablate::tune(&arguments),
        Command::Libtorch(arguments) => libtorch::libtorch(&arguments),
        Command::Test(passed) => check::test(&passed),
        Command::Check(arguments) => check::check(&arguments),
        Command::Bench(arguments) => bench::bench(&arguments),
        Command::Gpu(arguments) => gpu::gpu(&arguments),
        Command::Site => site::site(),
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
