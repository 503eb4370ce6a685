//! A case: the files that it begins with, the commands that are run one after another, and what is right for each.
//!
//! Commands are lines of the shell, so that a failing one can be repeated as it is printed. Nothing runs here.

use std::time::Duration;

/// The folder that a case begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Small tables and experiments.
    Tables,
    /// The same with a finished run of `shops.toml` in `result`.
    Finished,
    /// The same with a finished run of `long.toml` in `reference`.
    Reference,
}

/// How a command must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// With exit code 2 and a clear message, and with every file as it was.
    Refused,
    /// With exit code 0.
    Accepted,
    /// With exit code 0, or as `Refused`.
    Either,
    /// With exit code 1 or 2 (75 if the disk is full) and a clear message.
    Stopped,
    /// With exit code 0, 1 or 2 (75 if the disk is full), and a clear message if not with 0.
    Any,
    /// With this exit code.
    Code(i32),
    /// By the signal that was sent, or with an exit code that stands for it.
    Signalled,
    /// With exit code 0, or by SIGPIPE.
    Quiet,
}

/// What becomes of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdout {
    /// It is kept.
    Kept,
    /// It is closed after the first line.
    OneLine,
}

/// A signal to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Send {
    pub(crate) signal: rustix::process::Signal,
    /// Once standard error contains this.
    pub(crate) shown: &'static str,
    /// This long after that.
    pub(crate) after: Duration,
    /// How often; once each ten milliseconds.
    pub(crate) times: u32,
}

/// One command.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Lines of the shell that prepare the folder.
    pub(crate) prepare: String,
    /// Lines of the shell in the process of the command: limits, variables.
    pub(crate) before: String,
    /// What stands behind `fet`.
    pub(crate) command: String,
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) stdout: Stdout,
    pub(crate) send: Option<Send>,
    pub(crate) expect: Expect,
    /// A refusal contains one of these, separated by `|`.
    pub(crate) names: String,
    /// If it is accepted, this is printed.
    pub(crate) says: &'static str,
    /// If it is accepted, this line of the shell succeeds.
    pub(crate) check: String,
    /// After this long it hangs.
    pub(crate) seconds: u64,
    /// A place that it may write, where the words of the command do not tell.
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

    pub(crate) fn place(mut self, place: impl Into<String>) -> Self {
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

    /// The files and folders that the command may write.
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
                    words[1..]
                        .iter()
                        .take(1)
                        .flat_map(|run| ["json", "svg"].map(|end| format!("{run}/explanation.{end}"))),
                ),
                _ => {}
            }
        }
        found
    }
}

/// A case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) area: &'static str,
    pub(crate) name: String,
    pub(crate) base: Base,
    /// Files that differ from the base.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) steps: Vec<Step>,
    /// Two files that must be equal at the end, if the last command was accepted.
    pub(crate) same: Option<(&'static str, &'static str)>,
    /// Lines of the shell at the end.
    pub(crate) cleanup: String,
    /// Left out of the short form.
    pub(crate) slow: bool,
}

impl Case {
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

    /// A case of one command on the tables.
    pub(crate) fn of(area: &'static str, name: impl Into<String>, step: Step) -> Self {
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

    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }
}

/// A word of the shell.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
