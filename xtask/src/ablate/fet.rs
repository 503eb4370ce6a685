//! The `fet` command as a child process: finding or building it, asking it what a cell is, running a cell.
//!
//! What the lines of a run mean is in `event`; this module reads none of them.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::cell::Cell;
use crate::libtorch;
use crate::output::{Failed, shell_quoted};
use crate::workspace::Workspace;

/// A `fet` that can be run.
#[derive(Debug)]
pub(crate) struct Fet {
    program: PathBuf,
    environment: Vec<(String, String)>,
}

/// What all cells have in common: the file and what the command line says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    /// The experiment file.
    pub(crate) file: &'a Path,
    /// Changes that come before a variant's own.
    pub(crate) sets: &'a [String],
    /// The tensor backend, if not the file's.
    pub(crate) device: Option<&'a str>,
}

impl Fet {
    /// The program that FET_BIN names; without it, `fet` is built, with LibTorch where that is set up.
    pub(crate) fn locate() -> Result<Self> {
        if let Some(program) = env::var_os("FET_BIN").filter(|program| !program.is_empty()) {
            let program = PathBuf::from(program);
            if !program.is_file() {
                bail!("FET_BIN must name the `fet` program, but {} is no file", program.display());
            }
            // A bare name would be looked for in PATH.
            let program = program.canonicalize().context("cannot resolve FET_BIN")?;
            return Ok(Self { program, environment: Vec::new() });
        }
        let workspace = Workspace::find()?;
        let environment = libtorch::environment(&workspace.target)?;
        let mut cargo = workspace.cargo(&["build", "--release", "-p", "fet", "--bin", "fet"])?;
        if environment.is_some() {
            cargo.args(["--features", "libtorch"]);
        }
        Ok(Self { program: build(&mut cargo)?, environment: environment.unwrap_or_default() })
    }

    /// The experiment of a cell with every setting filled in.
    pub(crate) fn show(&self, base: &Base<'_>, sets: &[String], seed: u64) -> Result<Value> {
        let mut command = self.command("show", base, sets, seed);
        let output = command.arg("--json").output().with_context(|| format!("cannot run {command:?}"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            match output.status.code() {
                Some(2) => bail!("{message}"),
                _ => bail!(Failed(format!("`fet show` ended with {}: {message}", output.status))),
            }
        }
        serde_json::from_slice(&output.stdout).context("`fet show --json` printed no JSON")
    }

    /// Starts the run of a cell: its lines can be read from the child, what it complains goes to `log`.
    pub(crate) fn start(&self, base: &Base<'_>, cell: &Cell, log: File) -> std::io::Result<Child> {
        self.run(base, cell).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()
    }

    /// The command of a cell, to be read or typed.
    pub(crate) fn run_line(&self, base: &Base<'_>, cell: &Cell) -> String {
        let command = self.run(base, cell);
        let words = command.get_args().map(|word| {
            let word = word.to_string_lossy();
            let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:".contains(c));
            if is_plain { word.into_owned() } else { shell_quoted(&word) }
        });
        format!("fet {}", words.collect::<Vec<_>>().join(" "))
    }

    fn run(&self, base: &Base<'_>, cell: &Cell) -> Command {
        let mut command = self.command("run", base, &cell.sets, cell.seed);
        command.arg("--out").arg(&cell.folder).args(["--log", "json"]);
        command
    }

    fn command(&self, verb: &str, base: &Base<'_>, sets: &[String], seed: u64) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg(verb).arg(base.file);
        for set in base.sets.iter().chain(sets) {
            command.args(["--set", set]);
        }
        if let Some(device) = base.device {
            command.args(["--device", device]);
        }
        command.args(["--seed", &seed.to_string()]);
        command
    }
}

/// Builds `fet`; returns where cargo put it. What cargo has to say goes to the terminal.
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
