//! The harness as a command, as the tests of this crate call it. `cargo xtask ablate` is the command for people.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use fet_study::output::Failed;
use fet_study::{Arguments, Fet, TuneArguments};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

/// With `tune` as the last word.
#[derive(Debug, Parser)]
struct Search {
    #[command(flatten)]
    arguments: TuneArguments,
    word: String,
}

fn main() -> ExitCode {
    let locate = || Fet::from_environment()?.context("the tests name a stand-in for `fet` in FET_BIN");
    let outcome = if std::env::args().any(|word| word == "tune") {
        let Search { arguments, .. } = Search::parse();
        fet_study::tune(&arguments, locate)
    } else {
        fet_study::ablate(&Command::parse().arguments, locate)
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::from(if error.is::<Failed>() { 1 } else { 2 })
    })
}
