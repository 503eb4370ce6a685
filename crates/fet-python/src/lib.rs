//! Native module `fet._fet` of the Python package `fet`, whose Python code is in the folder `python`.
//!
//! The module contains what Python cannot do itself: it imports and exports tables, trains, predicts, and runs the command
//! line. The Python code makes the settings and reads the reports.
#![cfg(feature = "extension")]

mod aggregator;
mod attack;
mod calls;
mod cells;
mod encoder;
mod errors;
mod frame;
mod learner;
mod linker;
mod method;
mod plugin;
mod work;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

use fet::account::AccountArguments;
use fet::init::{self, InitArguments};
use fet_io::input::input;
use pyo3::prelude::*;

use crate::errors::raised;
use crate::work::wait;

/// Native part of the Python package `fet`.
#[pymodule]
mod _fet {
    #[pymodule_export]
    use super::aggregator::check_aggregator;
    #[pymodule_export]
    use super::attack::check_attack;
    #[pymodule_export]
    use super::encoder::check_encoder;
    #[pymodule_export]
    use super::frame::{Frame, empty_frame, read_frame, write_table};
    #[pymodule_export]
    use super::linker::check_linker;
    #[pymodule_export]
    use super::method::check_method;
    #[pymodule_export]
    use super::work::{predict, run};
    #[pymodule_export]
    use super::{account, main, plan, schema, to_toml, version};
}

/// Runs the command line with these arguments and returns its exit code. The first argument is the name of the program.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let run = || catch_unwind(AssertUnwindSafe(|| fet::main_with(arguments)));
    let code = py.detach(run).unwrap_or_else(|panic| match calls::failure() {
        Some(failure) => {
            fet_io::note!("fet: {failure}");
            ExitCode::FAILURE
        }
        None => resume_unwind(panic),
    });
    // An exit code has no other way to its number.
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

/// Returns the version of the program.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the JSON schema of experiments.
#[pyfunction]
fn schema() -> String {
    fet::schema::for_editors().to_string()
}

/// Converts the settings of an experiment from JSON to TOML, or any other value to a value of a `--set`.
#[pyfunction]
fn to_toml(json: &str) -> PyResult<String> {
    let refuse = |error: &dyn std::fmt::Display| raised(&input(format!("the settings: {error}")));
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| refuse(&error))?;
    let is_table = value.is_object();
    let value = toml::Value::try_from(value).map_err(|error| refuse(&error))?;
    match value {
        toml::Value::Table(table) if is_table => Ok(table.to_string()),
        value => Ok(value.to_string()),
    }
}

/// Chooses the settings of an experiment on these tables, as `fet init` does, and returns them as JSON. `note` receives each line
/// for the user.
#[pyfunction]
fn plan(tables: Vec<PathBuf>, label: String, keys: Vec<String>, note: &Bound<'_, PyAny>) -> PyResult<String> {
    let arguments = InitArguments { tables, label, keys, out: PathBuf::from(fet_io::output::STANDARD) };
    let planned = wait(note, move |_| init::init(&arguments))?;
    let settings: toml::Table = planned.parse().map_err(|error| raised(&input(error)))?;
    Ok(serde_json::to_string(&settings).unwrap_or_default())
}

/// Returns the answer of `fet account` as JSON.
#[pyfunction]
fn account(noise: Option<f64>, epsilon: Option<f64>, rate: f64, steps: u64, delta: f64) -> PyResult<String> {
    let question = AccountArguments { noise, epsilon, rate, steps, delta, json: true };
    fet::account::answer(&question).map_err(|error| raised(&input(error)))
}
