//! The harness as a command, as the tests of this crate call it. `cargo xtask ablate` is the command for people.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use fet_study::output::Failed;
use fet_study::{Arguments, Fet};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

fn main() -> ExitCode {
    let locate = || Fet::from_environment()?.context("the tests name a stand-in for `fet` in FET_BIN");
    fet_study::ablate(&Command::parse().arguments, locate).unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::from(if error.is::<Failed>() { 1 } else { 2 })
    })
}
