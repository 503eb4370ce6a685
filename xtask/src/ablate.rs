//! `ablate` and `tune`: commands of `fet-study`, with a `fet` that cargo builds.
//!
//! `fet-study` defines and runs studies. This module only builds `fet`.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use fet_study::{AblateArguments, Fet, TuneArguments};
use serde_json::Value;

use crate::libtorch;
use crate::output::Failed;
use crate::workspace::Workspace;

/// `cargo xtask ablate`.
pub(crate) fn ablate(arguments: &AblateArguments) -> Result<ExitCode> {
    fet_study::ablate(arguments, located)
}

/// `cargo xtask tune`.
pub(crate) fn tune(arguments: &TuneArguments) -> Result<ExitCode> {
    fet_study::tune(arguments, located)
}

fn located() -> Result<Fet> {
    match Fet::from_environment()? {
        Some(fet) => Ok(fet),
        None => build_fet(),
    }
}

/// Builds `fet`, with LibTorch if it is set up.
fn build_fet() -> Result<Fet> {
    let workspace = Workspace::find()?;
    let environment = libtorch::environment(&workspace.target)?;
    let mut cargo = libtorch::cargo(&workspace, &["build", "--release", "-p", "fet", "--bin", "fet"])?;
    if environment.is_some() {
        cargo.args(["--features", "libtorch"]);
    }
    Ok(Fet::new(build(&mut cargo)?, environment.unwrap_or_default()))
}

/// Builds `fet` and returns its path. Cargo's messages go to the terminal.
fn build(cargo: &mut Command) -> Result<PathBuf> {
    let output = cargo
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!(Failed("`fet` could not be built".to_string()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let program = text.lines().find_map(executable);
    program.ok_or_else(|| Failed("cargo built no `fet`".to_string()).into())
}

fn executable(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_fet = message["reason"] == "compiler-artifact" && message["target"]["name"] == "fet";
    message["executable"].as_str().filter(|_| is_fet).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_among_cargos_messages() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(executable(line), expected.map(PathBuf::from), "{line}");
        };
        let artifact = |name: &str, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","target":{{"name":"{name}"}},"executable":{executable}}}"#
            )
        };
        check(&artifact("fet", "\"/t/release/fet\""), Some("/t/release/fet"));
        check(&artifact("fet", "null"), None);
        check(&artifact("other", "\"/t/release/other\""), None);
        check(r#"{"reason":"build-finished","success":true}"#, None);
        check("no JSON", None);
    }
}
