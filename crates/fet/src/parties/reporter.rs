//! Log messages of a party, for people or programs.

use std::fmt::Display;
use std::time::SystemTime;

use serde::Serialize;

use crate::watch::Log;

/// Reports events at a party.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    party: String,
    log: Log,
}

/// Line of the log for programs.
#[derive(Debug, Serialize)]
struct LogEntry<'a> {
    /// Seconds since 1970.
    time: f64,
    party: &'a str,
    event: &'a str,
    message: &'a str,
}

impl Reporter {
    pub(super) fn new(party: &str, log: Log) -> Self {
        Self { party: party.to_string(), log }
    }

    /// Writes a line to standard error, or a JSON object to standard output.
    pub(super) fn tell(&self, event: &str, message: impl Display) {
        let message = message.to_string();
        // Warnings about a table begin with its name, which is usually the party's.
        let message = message.strip_prefix(&format!("{}: ", self.party)).unwrap_or(&message);
        match self.log {
            Log::Human if event == "warning" => fet_io::note!("warning: {}: {message}", self.party),
            Log::Human => fet_io::note!("{}: {message}", self.party),
            Log::Json => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let line = LogEntry { time: now.as_secs_f64(), party: &self.party, event, message };
                // The party keeps serving if the write fails.
                let _ = fet_io::answer(&format!("{}\n", serde_json::to_string(&line).expect("plain data")));
            }
        }
    }
}
