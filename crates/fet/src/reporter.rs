//! Log messages for people or programs, and those of a party.

use std::fmt::Display;
use std::time::SystemTime;

use serde::Serialize;

/// Form of progress messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Log {
    /// On standard error: a progress bar on a terminal, else a line per epoch.
    #[default]
    Human,
    /// On standard output: one JSON object per line.
    Json,
}

/// Importance of log messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// All messages.
    #[default]
    Info,
    /// Only warnings, refusals and problems of the link.
    Warn,
}

impl LogLevel {
    /// Returns the importance of an event.
    fn of(event: &str) -> Self {
        match event {
            "warning" | "refused" | "unable" | "silent" | "waiting" | "disconnected" => Self::Warn,
            _ => Self::Info,
        }
    }
}

/// Reports events at a party.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    party: String,
    log: Log,
    level: LogLevel,
}

/// Line of the log for programs.
#[derive(Debug, Serialize)]
struct LogEntry<'a> {
    /// Seconds since 1970.
    time: f64,
    party: &'a str,
    level: LogLevel,
    event: &'a str,
    message: &'a str,
}

impl Reporter {
    pub(crate) fn new(party: &str, log: Log) -> Self {
        Self { party: party.to_string(), log, level: LogLevel::default() }
    }

    /// Leaves out less important messages.
    pub(crate) fn at(self, level: LogLevel) -> Self {
        Self { level, ..self }
    }

    /// Writes a line to standard error, or a JSON object to standard output.
    pub(crate) fn tell(&self, event: &str, message: impl Display) {
        let level = LogLevel::of(event);
        if level < self.level {
            return;
        }
        let message = message.to_string();
        // Warnings about a table begin with its name, which is usually the party's.
        let message = message.strip_prefix(&format!("{}: ", self.party)).unwrap_or(&message);
        match self.log {
            Log::Human if event == "warning" => fet_io::note!("warning: {}: {message}", self.party),
            Log::Human => fet_io::note!("{}: {message}", self.party),
            Log::Json => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let line = LogEntry { time: now.as_secs_f64(), party: &self.party, level, event, message };
                // The party keeps serving if the write fails.
                let _ = fet_io::answer(&format!("{}\n", serde_json::to_string(&line).expect("plain data")));
            }
        }
    }
}
