//! Child process: its start in a folder, output in files, signals, and waiting with a limit. The process is
//! killed when it goes out of scope.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Maximum number of bytes of a process's output to check.
const MOST_OUTPUT: u64 = 4 << 20;
/// Interval between two checks of a process.
pub(crate) const LOOK: Duration = Duration::from_millis(1);

static STOP: AtomicBool = AtomicBool::new(false);

/// Makes all waiting functions return an error, so that no process remains.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// Returns an error after a call of [`stop`].
pub(crate) fn go_on() -> anyhow::Result<()> {
    ensure!(!STOP.load(Ordering::Relaxed), "stopped");
    Ok(())
}

/// End of a process: its status and output.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) hung: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Describes the end in a few words.
    pub(crate) fn describe(&self) -> String {
        match (self.hung, self.code, self.signal) {
            (true, ..) => "hung".into(),
            (_, Some(code), _) => format!("exit code {code}"),
            (_, None, signal) => format!("signal {}", signal.unwrap_or(0)),
        }
    }
}

/// Child process with its output files.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    /// True if JSON logs are shown as text.
    in_words: bool,
}

/// Returns a command without the user's settings for `fet` in its environment.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for name in ["FET_DATA", "FET_LINK_CACHE", "RUST_BACKTRACE", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

impl Process {
    /// Starts a command. Its output goes to the files `out` and `err`, or its standard output to a pipe.
    pub(crate) fn spawn(
        command: &mut Command,
        out: PathBuf,
        err: PathBuf,
        pipe: bool,
    ) -> anyhow::Result<Self> {
        let file = File::create(&out)?;
        command.stdout(if pipe { Stdio::piped() } else { file.into() }).stderr(File::create(&err)?);
        let program = Path::new(command.get_program()).display().to_string();
        let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        Ok(Self { child, out, err, in_words: false })
    }

    /// Starts `program` in `folder`. Its environment contains the parties' secret for linkers, or the secret
    /// from the file `secret`. Its output goes to `name.out` and `name.err` in the folder, with a number if
    /// these files exist.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        folder: &Path,
        name: &str,
    ) -> anyhow::Result<Self> {
        let numbered = |number: usize, end: &str| match number {
            0 => folder.join(format!("{name}.{end}")),
            _ => folder.join(format!("{name}-{number}.{end}")),
        };
        let number = (0..).find(|&number| !numbered(number, "err").exists()).unwrap_or(0);
        let mut command = command(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        let secret = std::fs::read_to_string(folder.join("secret"));
        command.env("FET_SOAK_SECRET", secret.as_deref().unwrap_or("a secret of sixteen bytes or more"));
        let mut process = Self::spawn(&mut command, numbered(number, "out"), numbered(number, "err"), false)?;
        process.in_words = true;
        Ok(process)
    }

    /// Returns the standard error so far.
    pub(crate) fn stderr(&self) -> String {
        let text = printed(&self.err);
        if self.in_words { text.lines().map(|line| in_words(line) + "\n").collect() } else { text }
    }

    /// Returns the standard output so far.
    pub(crate) fn stdout(&self) -> String {
        printed(&self.out)
    }

    /// Returns the pipe of the standard output, if there is one.
    pub(crate) fn pipe(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Sends a signal unless the process has ended.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if let (Ok(None), Some(id)) =
            (self.child.try_wait(), i32::try_from(self.child.id()).ok().and_then(Pid::from_raw))
        {
            let _ = kill_process(id, signal);
        }
    }

    /// Kills the process as `kill -9` does, and waits for its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Returns the end of the process, or `None` while it runs.
    pub(crate) fn ended(&mut self) -> anyhow::Result<Option<Ended>> {
        go_on()?;
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        Ok(Some(self.end(status.code(), status.signal(), false)))
    }

    fn end(&self, code: Option<i32>, signal: Option<i32>, hung: bool) -> Ended {
        Ended { code, signal, hung, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Waits for the end of the process. Kills the process after `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> anyhow::Result<Ended> {
        self.wait_with(patience, |_| ())
    }

    /// Waits as [`Self::wait`] does, and calls `meanwhile` at each check of the process.
    pub(crate) fn wait_with(
        &mut self,
        patience: Duration,
        mut meanwhile: impl FnMut(&mut Self),
    ) -> anyhow::Result<Ended> {
        let began = Instant::now();
        loop {
            if let Some(ended) = self.ended()? {
                return Ok(ended);
            }
            meanwhile(self);
            if began.elapsed() > patience {
                self.kill();
                return Ok(self.end(None, None, true));
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a file of output, and an empty text if the file cannot be read.
fn printed(path: &Path) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(path).and_then(|file| file.take(MOST_OUTPUT).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Converts a line of a JSON log to the text log. Other lines stay unchanged.
fn in_words(line: &str) -> String {
    let parsed: Option<serde_json::Value> =
        line.starts_with('{').then(|| serde_json::from_str(line).ok()).flatten();
    let field = |name: &str| parsed.as_ref().and_then(|parsed| parsed.get(name)?.as_str());
    match (field("event"), field("message")) {
        (Some("error"), Some(message)) => format!("fet: {message}"),
        (Some("warning"), Some(message)) => format!("warning: {message}"),
        (_, Some(message)) => message.to_string(),
        _ => line.to_string(),
    }
}
