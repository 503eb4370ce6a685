//! Runs the `fet` command, or another program, as a child process to describe and to run experiments.
//!
//! `docs/other-programs.md` describes the calls. This module does not know cells. The caller of the harness builds `fet`; the
//! engines read the output of a run.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use fet_eval::records::{RunIdentity, ShowAnswer, ShowQuestion};
use fet_io::shorten;

use crate::output::{Failed, json_problem, shell_quoted};

/// Executable of `fet` or of another program, and its additional environment variables.
#[derive(Debug, Clone)]
pub struct Fet {
    program: PathBuf,
    environment: Vec<(String, String)>,
    /// True if the user named the executable as a program other than `fet`. Its answers must then name the program.
    is_other: bool,
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

impl Base<'_> {
    /// Returns the name that the changes give to the experiment, if any.
    pub(crate) fn name(&self) -> Option<&str> {
        let name = self.sets.iter().rev().find_map(|set| set.strip_prefix("name="))?;
        Some(name.trim_matches('"'))
    }
}

/// Changes of one cell to the base.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variation<'a> {
    /// The variant's changes, each as `path=value`.
    pub(crate) sets: &'a [String],
    /// The seed.
    pub(crate) seed: u64,
    /// True if `fet` runs the cell, and not another program.
    pub(crate) is_of_fet: bool,
}

impl Fet {
    /// Creates a handle to the executable `program`. Its runs get `environment` in addition to the
    /// environment of this process.
    pub fn new(program: PathBuf, environment: Vec<(String, String)>) -> Self {
        Self { program, environment, is_other: false }
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
        Ok(Some(Self::new(executable("FET_BIN", Path::new(&program))?, Vec::new())))
    }

    /// Creates a handle to a program other than `fet`.
    pub(crate) fn other(program: &Path) -> Result<Self> {
        Ok(Self { is_other: true, ..Self::new(executable("--program", program)?, Vec::new()) })
    }

    /// Asks one `show --batch` process for the identities of all `cells`.
    pub(crate) fn show(&self, base: &Base<'_>, cells: &[Variation<'_>]) -> Result<Vec<ShowAnswer>> {
        let mut command = self.command("show", base);
        command.arg("--batch").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}{}", self.program.display(), self.hint_to_run()))?;
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
        let call = format!("`{} show --batch`", self.name());
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            match output.status.code() {
                Some(2) if message.is_empty() => bail!("{call} ended with exit code 2 and no message"),
                Some(2) => bail!("{message}"),
                _ => bail!(Failed(format!("{call} ended with {}: {message}", output.status))),
            }
        }
        match asking.join() {
            // A program may answer without reading all questions. The number of answers decides.
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(error).with_context(|| format!("cannot write to {call}"));
            }
            _ => {}
        }
        let lines = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let mut answers = Vec::new();
        for (index, line) in lines.enumerate() {
            let answer = serde_json::from_slice(line).map_err(|error| {
                let (number, text) = (index + 1, String::from_utf8_lossy(line));
                anyhow!(
                    "{call}, answer {number}: {}. The answer is {}{HELP}",
                    json_problem(&error),
                    shorten(&text)
                )
            })?;
            if let ShowAnswer::Identity(RunIdentity { program: None, .. }) = &answer
                && self.is_other
            {
                bail!(
                    "{call}, answer {}: missing field `program`. For another build of `fet`, set FET_BIN instead of \
                     `--program`{HELP}",
                    index + 1
                );
            }
            answers.push(answer);
        }
        ensure!(
            answers.len() == cells.len(),
            "{call}: must answer each line of its standard input with one line, but gave {} answers to {} questions{HELP}",
            answers.len(),
            cells.len()
        );
        Ok(answers)
    }

    /// Returns the name of the program in messages.
    fn name(&self) -> String {
        self.program.file_name().unwrap_or(self.program.as_os_str()).to_string_lossy().into_owned()
    }

    /// Returns advice for an executable that the system could not start.
    fn hint_to_run(&self) -> &'static str {
        #[cfg(unix)]
        if std::fs::metadata(&self.program)
            .is_ok_and(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 == 0)
        {
            return " (make the file executable with `chmod +x`)";
        }
        " (the first line of a script names its interpreter, as in `#!/usr/bin/env python3`)"
    }

    /// Starts a run in `folder`. The child's standard output carries its events; its standard error goes to
    /// `log`.
    pub(crate) fn start(
        &self,
        base: &Base<'_>,
        cell: Variation<'_>,
        folder: &Path,
        log: File,
    ) -> io::Result<Child> {
        self.run(base, cell, folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()
    }

    /// Returns the command of a run, for display.
    pub(crate) fn run_line(&self, base: &Base<'_>, cell: Variation<'_>, folder: &Path) -> String {
        let program = match cell.is_of_fet {
            true => "fet".to_string(),
            false => shell_quoted(&self.program.display().to_string()),
        };
        format!("{program} {}", words(&self.run(base, cell, folder)))
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
        command.arg("--out").arg(folder);
        // Options of `fet` alone: another program needs fewer.
        if cell.is_of_fet {
            command.args(["--log", "json", "--forget"]);
        }
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

/// Reference to the guide, at the end of a message.
const HELP: &str = ". docs/other-programs.md lists the fields";

/// Returns the absolute path of a program that `source` names. The system would search PATH for a bare name.
fn executable(source: &str, program: &Path) -> Result<PathBuf> {
    ensure!(program.is_file(), "{source}: must name a program, but {} is not a file", program.display());
    program.canonicalize().with_context(|| format!("{source}: cannot resolve {}", program.display()))
}

/// Returns the arguments of a command, quoted for a shell.
fn words(command: &Command) -> String {
    let words = command.get_args().map(|word| shell_quoted(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}
