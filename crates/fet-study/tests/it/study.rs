//! A study in a temporary folder, run by the harness with a stand-in for `fet`.
//!
//! The harness and the stand-in are the programs in `tests/programs`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

pub(crate) const STUDY: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1]\n\
    [[ablation.variants]]\nname = \"Full\"\n\
    [[ablation.variants]]\nname = \"No mask\"\nset = [\"encoder.mask=false\"]\n";

/// Working directory of the harness, with the study as `tiny.toml`.
pub(crate) struct Study(TempDir);

#[derive(Debug)]
pub(crate) struct CommandOutcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Study {
    pub(crate) fn new(text: &str) -> Self {
        let study = Self(tempfile::tempdir().expect("a folder"));
        fs::write(study.path("tiny.toml"), text).expect("written");
        study
    }

    pub(crate) fn ablate(&self, fake: &str, arguments: &[&str]) -> CommandOutcome {
        CommandOutcome::from_output(self.command(fake, arguments).output().expect("ran"))
    }

    pub(crate) fn command(&self, fake: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fet-study-in-tests"));
        command.current_dir(self.0.path()).arg("tiny.toml").args(arguments);
        command.env("FET_BIN", env!("CARGO_BIN_EXE_fet-stand-in"));
        command.env("FAKE_FET", fake).env("FAKE_FET_CALLS", self.path("calls"));
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// Returns the command lines of all runs so far.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }

    pub(crate) fn cells(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("runs/tiny/cells")).expect("cells");
        entries.map(|entry| entry.expect("a cell").path()).collect()
    }
}

impl CommandOutcome {
    pub(crate) fn from_output(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

pub(crate) fn check(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}
