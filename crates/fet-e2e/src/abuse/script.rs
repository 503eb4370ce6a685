//! Script of a case: its initial files, its commands in order, and the expected result of each command.
//!
//! Commands are lines of the shell, so that a failing command can be repeated as printed. This module runs no
//! commands.

use std::time::Duration;

/// Base folder of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Small tables and experiments.
    Tables,
    /// Tables with a finished run of `shops.toml` in `result`.
    Finished,
    /// Tables with a finished run of `long.toml` in `reference`.
    Reference,
}

/// Expected end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Exit code 2, a clear message, and no changed file.
    Refused,
    /// Exit code 0.
    Accepted,
    /// Exit code 0, or as `Refused`.
    Either,
    /// Exit code 1 or 2 (75 if the disk is full) and a clear message.
    Stopped,
    /// Exit code 0, 1 or 2 (75 if the disk is full), and a clear message unless the code is 0.
    Any,
    /// This exit code.
    Code(i32),
    /// End by the sent signal, or with an exit code for the signal.
    Signalled,
    /// Exit code 0, or end by SIGPIPE.
    Quiet,
}

/// Treatment of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// Stored for the checks.
    Kept,
    /// Closed after the first line.
    OneLine,
}

/// Signal to send during a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) signal: rustix::process::Signal,
    /// Text in standard error that triggers the signal.
    pub(crate) shown: &'static str,
    /// Delay after the trigger.
    pub(crate) after: Duration,
    /// Number of signals, one every ten milliseconds.
    pub(crate) times: u32,
}

/// Command with its preparation and its expected result.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Shell lines that prepare the folder.
    pub(crate) prepare: String,
    /// Shell lines in the process of the command, for limits and variables.
    pub(crate) before: String,
    /// Arguments of `fet`.
    pub(crate) command: String,
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) stdout: Stdout,
    pub(crate) send: Option<Send>,
    pub(crate) expect: Expect,
    /// Alternatives, separated by `|`. A refusal must contain one of them.
    pub(crate) names: String,
    /// Text that an accepted command must print.
    pub(crate) says: &'static str,
    /// Shell line that must succeed after an accepted command.
    pub(crate) check: String,
    /// Time limit in seconds. A longer command hangs.
    pub(crate) seconds: u64,
    /// Path outside the arguments that the command may write.
    pub(crate) place: String,
}

impl Step {
    pub(crate) fn new(command: impl Into<String>, expect: Expect) -> Self {
        Self {
            prepare: String::new(),
            before: String::new(),
            command: command.into(),
            input: None,
            stdout: Stdout::Kept,
            send: None,
            expect,
            names: String::new(),
            says: "",
            check: String::new(),
            seconds: 8,
            place: String::new(),
        }
    }

    pub(crate) fn prepare(mut self, lines: impl Into<String>) -> Self {
        self.prepare = lines.into();
        self
    }

    pub(crate) fn before(mut self, lines: impl Into<String>) -> Self {
        self.before = lines.into();
        self
    }

    pub(crate) fn writes_to(mut self, place: impl Into<String>) -> Self {
        self.place = place.into();
        self
    }

    pub(crate) fn names(mut self, names: impl Into<String>) -> Self {
        self.names = names.into();
        self
    }

    pub(crate) fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    pub(crate) fn check(mut self, line: impl Into<String>) -> Self {
        self.check = line.into();
        self
    }

    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    pub(crate) fn stdout(mut self, stdout: Stdout) -> Self {
        self.stdout = stdout;
        self
    }

    pub(crate) fn send(mut self, send: Send) -> Self {
        self.send = Some(send);
        self
    }

    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Returns the files and folders that the command may write.
    pub(crate) fn writes(&self) -> Vec<String> {
        let words: Vec<&str> = self.command.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        let after = |name: &str| {
            words
                .windows(2)
                .filter(|pair| pair[0] == name)
                .map(|pair| pair[1].to_string())
                .collect::<Vec<_>>()
        };
        let mut found = [after("--out"), after("--cache")].concat();
        found.retain(|name| name != "-");
        found.extend(Some(self.place.clone()).filter(|place| !place.is_empty()));
        if self.before.contains("FET_LINK_CACHE=cache") {
            found.push("cache".to_string());
        }
        if after("--out").is_empty() {
            match words.first() {
                Some(&"run") => found.push("runs".to_string()),
                Some(&"plot") => found.push("plots".to_string()),
                Some(&"explain") => found.extend(
                    words[1..].iter().take(1).flat_map(|run| EXPLAINED.map(|file| format!("{run}/{file}"))),
                ),
                _ => {}
            }
        }
        found
    }
}

/// Files that `fet explain` writes in the folder of its run.
const EXPLAINED: [&str; 3] = ["explanation.json", "explanation.svg", "report.html"];

/// Script of a case.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) area: &'static str,
    pub(crate) name: String,
    pub(crate) base: Base,
    /// Files that replace or extend those of the base.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) steps: Vec<Step>,
    /// Two files that must be equal at the end, if the last command was accepted.
    pub(crate) same: Option<(&'static str, &'static str)>,
    /// Shell lines that run at the end.
    pub(crate) cleanup: String,
    /// True if the short form skips the case.
    pub(crate) slow: bool,
}

impl Script {
    pub(crate) fn new(area: &'static str, name: impl Into<String>, base: Base) -> Self {
        Self {
            area,
            name: name.into(),
            base,
            files: Vec::new(),
            steps: Vec::new(),
            same: None,
            cleanup: String::new(),
            slow: false,
        }
    }

    /// Creates a script of one command on the tables.
    pub(crate) fn on_tables(area: &'static str, name: impl Into<String>, step: Step) -> Self {
        Self::new(area, name, Base::Tables).step(step)
    }

    pub(crate) fn file(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((name.into(), bytes.into()));
        self
    }

    pub(crate) fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn same(mut self, one: &'static str, other: &'static str) -> Self {
        self.same = Some((one, other));
        self
    }

    pub(crate) fn cleanup(mut self, lines: impl Into<String>) -> Self {
        self.cleanup = lines.into();
        self
    }

    pub(crate) fn slow(mut self) -> Self {
        self.slow = true;
        self
    }
}
