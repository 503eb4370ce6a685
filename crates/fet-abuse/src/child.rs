//! Runs one command in a folder, with limits, and returns how it ended. Another module judges the result.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Pid, kill_process};

use crate::case::{Expect, Stdout, Step};

/// Memory limit in KiB, more than any command of these sizes needs. It keeps a fault from taking the memory
/// of the whole machine.
const MOST_MEMORY: u64 = 8 << 20;
/// Maximum number of bytes of a command's output to check.
const MOST_OUTPUT: u64 = 4 << 20;

/// End of a command: its status and output.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) hung: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Environment of commands.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// Path of the program `fet`.
    pub(crate) fet: &'a Path,
    /// Folder of the case.
    pub(crate) folder: &'a Path,
    /// Folder for the output of commands.
    pub(crate) logs: &'a Path,
    /// Factor on the time limits, which assume an idle machine.
    pub(crate) patience: u64,
}

impl Place<'_> {
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
        command.stderr(File::create(&err)?);
        match step.stdout {
            Stdout::Kept => command.stdout(File::create(&out)?),
            Stdout::OneLine => command.stdout(Stdio::piped()),
        };
        let mut child = command.spawn().context("cannot start a shell")?;
        let reader = child.stdout.take().map(|pipe| {
            std::thread::spawn(move || {
                let mut line = String::new();
                // The pipe closes when the reader goes out of scope, so that the rest is never read.
                let _ = BufReader::with_capacity(1, pipe).read_line(&mut line);
                line
            })
        });
        let (status, hung) = self.wait(&mut child, step, &err)?;
        let stdout = match reader {
            Some(reader) => reader.join().unwrap_or_default(),
            None => printed(&out)?,
        };
        Ok(Ended { code: status.code(), signal: status.signal(), hung, stdout, stderr: printed(&err)? })
    }

    fn command(&self, lines: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(lines).current_dir(self.folder);
        command.env("FET", self.fet).env("RAYON_NUM_THREADS", "1").env("TMPDIR", self.folder.join("tmp"));
        for name in ["FET_DATA", "FET_LINK_CACHE", "RUST_BACKTRACE", "RUST_LOG"] {
            command.env_remove(name);
        }
        command
    }

    fn wait(
        &self,
        child: &mut Child,
        step: &Step,
        err: &Path,
    ) -> anyhow::Result<(std::process::ExitStatus, bool)> {
        let start = Instant::now();
        let mut shown: Option<Instant> = None;
        let mut sent = 0;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, false));
            }
            if let Some(send) = step.send.filter(|send| sent < send.times) {
                if shown.is_none() && printed(err)?.contains(send.shown) {
                    shown = Some(Instant::now());
                }
                let wait = send.after + Duration::from_millis(10) * sent;
                if shown.is_some_and(|shown| shown.elapsed() >= wait) {
                    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                    // The process may have ended in the meantime.
                    let _ = id.map(|id| kill_process(id, send.signal));
                    sent += 1;
                }
            }
            if start.elapsed() > Duration::from_secs(step.seconds * self.patience) {
                child.kill()?;
                return Ok((child.wait()?, true));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn printed(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the output of a valid command, from which cases are generated.
pub(crate) fn asked(fet: &Path, folder: &Path, logs: &Path, command: &str) -> anyhow::Result<String> {
    let place = Place { fet, folder, logs, patience: 1 };
    let ended = place.run(&Step::new(command, Expect::Accepted))?;
    ensure!(ended.code == Some(0), "`fet {command}` fails: {}", ended.stderr);
    Ok(ended.stdout)
}
