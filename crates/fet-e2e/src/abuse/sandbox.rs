//! Runs one command in a folder, with limits, and returns how it ended. Another module judges the result.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::script::{Expect, Stdout, Step};
use crate::process::{Ended, Process, command};

/// Memory limit in KiB, more than any command of these sizes needs. It keeps a fault from taking the memory
/// of the whole machine.
const MOST_MEMORY: u64 = 8 << 20;

/// Environment of commands.
#[derive(Debug)]
pub(crate) struct Sandbox<'a> {
    /// Path of the program `fet`.
    pub(crate) fet: &'a Path,
    /// Folder of the case.
    pub(crate) folder: &'a Path,
    /// Folder for the output of commands.
    pub(crate) logs: &'a Path,
    /// Factor on the time limits, which assume an idle machine.
    pub(crate) patience: u32,
}

impl Sandbox<'_> {
    /// Runs shell lines. Returns true if they succeeded.
    pub(crate) fn shell(&self, lines: &str) -> anyhow::Result<bool> {
        if lines.is_empty() {
            return Ok(true);
        }
        let mut command = self.command(lines);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        Ok(status.success())
    }

    /// Runs a command of `fet` with its preparation.
    pub(crate) fn run(&self, step: &Step) -> anyhow::Result<Ended> {
        let [out, err] = ["stdout", "stderr"].map(|name| self.logs.join(name));
        let lines = format!(
            "ulimit -c 0; ulimit -v {MOST_MEMORY} 2>/dev/null; {} exec \"$FET\" {}",
            step.before, step.command
        );
        let mut command = self.command(&lines);
        command.stdin(match &step.input {
            Some(bytes) => {
                let path = self.logs.join("stdin");
                std::fs::write(&path, bytes)?;
                Stdio::from(File::open(path)?)
            }
            None => Stdio::null(),
        });
        let mut process = Process::spawn(&mut command, out, err, step.stdout == Stdout::OneLine)?;
        let reader = process.pipe().map(|pipe| {
            std::thread::spawn(move || {
                let mut line = String::new();
                // Dropping the reader closes the pipe, so the rest is never read.
                let _ = BufReader::with_capacity(1, pipe).read_line(&mut line);
                line
            })
        });
        let mut shown: Option<Instant> = None;
        let mut sent = 0;
        let patience = Duration::from_secs(step.seconds * u64::from(self.patience));
        let mut ended = process.wait_with(patience, |process| {
            let Some(send) = step.send.filter(|send| sent < send.times) else { return };
            if shown.is_none() && process.stderr().contains(send.shown) {
                shown = Some(Instant::now());
            }
            let wait = send.after + Duration::from_millis(10) * sent;
            if shown.is_some_and(|shown| shown.elapsed() >= wait) {
                process.signal(send.signal);
                sent += 1;
            }
        })?;
        if let Some(reader) = reader {
            ended.stdout = reader.join().unwrap_or_default();
        }
        Ok(ended)
    }

    fn command(&self, lines: &str) -> Command {
        let mut command = command(Path::new("sh"));
        command.arg("-c").arg(lines).current_dir(self.folder);
        command.env("FET", self.fet).env("RAYON_NUM_THREADS", "1").env("TMPDIR", self.folder.join("tmp"));
        command
    }
}

/// Returns the output of a valid command, for generating cases.
pub(crate) fn output_of(fet: &Path, folder: &Path, logs: &Path, command: &str) -> anyhow::Result<String> {
    let place = Sandbox { fet, folder, logs, patience: 1 };
    let ended = place.run(&Step::new(command, Expect::Accepted))?;
    ensure!(ended.code == Some(0), "`fet {command}` fails: {}", ended.stderr);
    Ok(ended.stdout)
}
