//! `fet study` and `fet tune`: studies whose cells this program runs itself.

use std::process::ExitCode;

use anyhow::Context;
use fet_io::input::input;
use fet_study::output::Failed;
use fet_study::{AblateArguments, Fet, TuneArguments};

/// Runs a study and returns the exit code of [`fet_study::ablate`].
pub fn study(arguments: &AblateArguments) -> anyhow::Result<ExitCode> {
    fet_study::ablate(arguments, this_program).map_err(classified)
}

/// Searches for better settings and returns the exit code of [`fet_study::tune`].
pub fn tune(arguments: &TuneArguments) -> anyhow::Result<ExitCode> {
    fet_study::tune(arguments, this_program).map_err(classified)
}

/// Returns the program that runs the cells: the one that `FET_BIN` names, or this one.
pub(crate) fn this_program() -> anyhow::Result<Fet> {
    match Fet::from_environment()? {
        Some(fet) => Ok(fet),
        None => {
            Ok(Fet::new(std::env::current_exe().context("cannot find the path of this program")?, Vec::new()))
        }
    }
}

/// Marks every error as invalid input, except for failures of cells.
pub(crate) fn classified(error: anyhow::Error) -> anyhow::Error {
    if error.is::<Failed>() { error } else { input(format!("{error:#}")) }
}
