//! Runs the `fet` command as a child process, to describe and to run experiments.
//!
//! This module does not know cells. The caller of the harness builds `fet`; the engines read the output of a
//! run.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use fet_eval::records::{ShowAnswer, ShowQuestion};

use crate::output::{Failed, shell_quoted};

/// `fet` executable and its additional environment variables.
#[derive(Debug, Clone)]
pub struct Fet {
    program: PathBuf,
    environment: Vec<(String, String)>,
}

/// Settings common to all cells: the experiment file and the changes from the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    /// The experiment file.
    pub(crate) file: &'a Path,
    /// Changes applied before those of a variant.
    pub(crate) sets: &'a [String],
    /// Tensor backend, if it differs from the file's.
    pub(crate) device: Option<&'a str>,
}

/// Changes of one cell to the base.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variation<'a> {
    /// The variant's changes, each as `path=value`.
    pub(crate) sets: &'a [String],
    /// The seed.
    pub(crate) seed: u64,
}

impl Fet {
    /// Creates a handle to the executable `program`. Its runs get `environment` in addition to the
    /// environment of this process.
    pub fn new(program: PathBuf, environment: Vec<(String, String)>) -> Self {
        Self { program, environment }
    }

    /// Returns the handle with one more environment variable for its runs.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_string(), value.to_string()));
        self
    }

    /// Returns the program that the environment variable FET_BIN names, or `None` if FET_BIN is not set.
    pub fn from_environment() -> Result<Option<Self>> {
        let Some(program) = env::var_os("FET_BIN").filter(|program| !program.is_empty()) else {
            return Ok(None);
        };
        let program = PathBuf::from(program);
        if !program.is_file() {
            bail!("FET_BIN must name the `fet` program, but {} is not a file", program.display());
        }
        // An absolute path is needed: the system would search PATH for a bare name.
        let program = program.canonicalize().context("cannot resolve FET_BIN")?;
        Ok(Some(Self::new(program, Vec::new())))
    }

    /// Asks one `fet show` process for the identities of all `cells`.
    pub(crate) fn show(&self, base: &Base<'_>, cells: &[Variation<'_>]) -> Result<Vec<ShowAnswer>> {
        let mut command = self.command("show", base);
        command.arg("--batch").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let mut questions = Vec::new();
        for cell in cells {
            let question = ShowQuestion { set: cell.sets.to_vec(), seed: Some(cell.seed) };
            serde_json::to_writer(&mut questions, &question).context("a question is plain data")?;
            questions.push(b'\n');
        }
        let stdin = child.stdin.take();
        // A separate thread writes the questions, because the child starts to answer before it has read all
        // of them.
        let asking =
            std::thread::spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(&questions)));
        let output = child.wait_with_output().with_context(|| format!("cannot run {command:?}"))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            match output.status.code() {
                Some(2) => bail!("{message}"),
                _ => bail!(Failed(format!("`fet show` ended with {}: {message}", output.status))),
            }
        }
        if let Ok(asked) = asking.join() {
            asked.context("cannot write to `fet show --batch`")?;
        }
        let answers = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let answers = answers.map(serde_json::from_slice).collect::<Result<Vec<ShowAnswer>, _>>();
        let answers = answers.context(
            "cannot read the answers of `fet show --batch`; does FET_BIN name a `fet` of this version?",
        )?;
        ensure!(
            answers.len() == cells.len(),
            "`fet show --batch` answered for {} of {} cells; does FET_BIN name a `fet` of this version?",
            answers.len(),
            cells.len()
        );
        Ok(answers)
    }

    /// Starts a run in `folder`. The child's standard output carries its events; its standard error goes to
    /// `log`.
    pub(crate) fn start(
        &self,
        base: &Base<'_>,
        cell: Variation<'_>,
        folder: &Path,
        log: File,
    ) -> std::io::Result<Child> {
        self.run(base, cell, folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()
    }

    /// Returns the command of a run, for display.
    pub(crate) fn run_line(&self, base: &Base<'_>, cell: Variation<'_>, folder: &Path) -> String {
        format!("fet {}", words(&self.run(base, cell, folder)))
    }

    /// Returns the command of a run as a line of a shell script. The line writes standard output, standard
    /// error and the exit code to files in `folder`.
    pub(crate) fn shell_line(&self, base: &Base<'_>, cell: Variation<'_>, folder: &Path) -> Result<String> {
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

    fn run(&self, base: &Base<'_>, cell: Variation<'_>, folder: &Path) -> Command {
        let mut command = self.command("run", base);
        for set in cell.sets {
            command.args(["--set", set]);
        }
        command.args(["--seed", &cell.seed.to_string()]);
        command.arg("--out").arg(folder).args(["--log", "json", "--forget"]);
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

/// Returns the arguments of a command, quoted for a shell.
fn words(command: &Command) -> String {
    let words = command.get_args().map(|word| shell_quoted(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}
