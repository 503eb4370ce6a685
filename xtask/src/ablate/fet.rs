//! The `fet` command as a child process: finding or building it, asking it what a cell is, running a cell.
//!
//! What the lines of a run mean is in `event`; this module reads none of them.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

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

/// What a cell follows from, as `fet show --batch` answers; or why it is none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shown {
    /// Every setting.
    #[serde(default)]
    pub(crate) experiment: Value,
    /// Checksum of the data files.
    #[serde(default)]
    pub(crate) data: String,
    /// Version of the program's results.
    #[serde(default)]
    pub(crate) results: u32,
    /// What is wrong with the cell.
    pub(crate) error: Option<String>,
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

    /// What each of many cells follows from, in one process: their changes and seeds, in order.
    pub(crate) fn show(&self, base: &Base<'_>, cells: &[(&[String], u64)]) -> Result<Vec<Shown>> {
        let mut command = self.command("show", base);
        command.arg("--batch").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let questions: String =
            cells.iter().map(|(set, seed)| format!("{}\n", json!({"set": set, "seed": seed}))).collect();
        let stdin = child.stdin.take();
        // On a thread of its own: the child answers while it is still being asked.
        let asking = std::thread::spawn(move || {
            stdin.map_or(Ok(()), |mut stdin| stdin.write_all(questions.as_bytes()))
        });
        let output = child.wait_with_output().with_context(|| format!("cannot run {command:?}"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            match output.status.code() {
                Some(2) => bail!("{message}"),
                _ => bail!(Failed(format!("`fet show` ended with {}: {message}", output.status))),
            }
        }
        if let Ok(asked) = asking.join() {
            asked.context("`fet show --batch` did not listen")?;
        }
        let answers = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let answers = answers.map(serde_json::from_slice).collect::<Result<Vec<Shown>, _>>();
        let answers =
            answers.context("`fet show --batch` printed no answers; is FET_BIN of this version?")?;
        ensure!(
            answers.len() == cells.len(),
            "`fet show --batch` answered {} cells of {}",
            answers.len(),
            cells.len()
        );
        Ok(answers)
    }

    /// Starts the run of a cell: its lines can be read from the child, what it complains goes to `log`.
    pub(crate) fn start(&self, base: &Base<'_>, cell: &Cell, log: File) -> std::io::Result<Child> {
        self.run(base, cell, &cell.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()
    }

    /// The command of a cell, to be read or typed.
    pub(crate) fn run_line(&self, base: &Base<'_>, cell: &Cell) -> String {
        format!("fet {}", words(&self.run(base, cell, &cell.folder)))
    }

    /// The command of a cell as a line of a script: its events, complaints and exit code go to files in `folder`.
    pub(crate) fn shell_line(&self, base: &Base<'_>, cell: &Cell, folder: &Path) -> Result<String> {
        let mut line = String::new();
        for (name, value) in &self.environment {
            line.push_str(&format!("export {name}={}; ", shell_quoted(value)));
        }
        let program = std::path::absolute(&self.program).context("cannot resolve the path of `fet`")?;
        let file = |name: &str| shell_quoted(&folder.join(name).display().to_string());
        line.push_str(&format!(
            "{} {} >>{} 2>{}; echo $? >{}",
            shell_quoted(&program.display().to_string()),
            words(&self.run(base, cell, folder)),
            file("events.jsonl"),
            file("cell.log"),
            file("exit"),
        ));
        Ok(line)
    }

    fn run(&self, base: &Base<'_>, cell: &Cell, folder: &Path) -> Command {
        let mut command = self.command("run", base);
        for set in &cell.sets {
            command.args(["--set", set]);
        }
        command.args(["--seed", &cell.seed.to_string()]);
        command.arg("--out").arg(folder).args(["--log", "json"]);
        command
    }

    fn command(&self, verb: &str, base: &Base<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.arg(verb).arg(base.file);
        for set in base.sets {
            command.args(["--set", set]);
        }
        if let Some(device) = base.device {
            command.args(["--device", device]);
        }
        command
    }
}

/// The arguments of a command as a shell reads them.
fn words(command: &Command) -> String {
    let words = command.get_args().map(|word| {
        let word = word.to_string_lossy();
        let is_plain =
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:".contains(c));
        if is_plain { word.into_owned() } else { shell_quoted(&word) }
    });
    words.collect::<Vec<_>>().join(" ")
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
