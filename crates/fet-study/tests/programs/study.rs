//! The harness as a command for the tests of this crate. Users call `cargo xtask ablate`.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use fet_study::output::Failed;
use fet_study::{AblateArguments, Fet, TuneArguments};

#[derive(Debug, Parser)]
struct AblateCommandLine {
    #[command(flatten)]
    arguments: AblateArguments,
}

/// Command line of a search: the arguments of `tune`, and the word `tune` at the end.
#[derive(Debug, Parser)]
struct TuneCommandLine {
    #[command(flatten)]
    arguments: TuneArguments,
    word: String,
}

fn main() -> ExitCode {
    let locate = || Fet::from_environment()?.context("the tests name a stand-in for `fet` in FET_BIN");
    let outcome = if std::env::args().any(|word| word == "tune") {
        let TuneCommandLine { arguments, .. } = TuneCommandLine::parse();
        fet_study::tune(&arguments, locate)
    } else {
        fet_study::ablate(&AblateCommandLine::parse().arguments, locate)
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::from(if error.is::<Failed>() { 1 } else { 2 })
    })
}
