//! JSON lines of `fet run --log json`, one event per line.
//!
//! `fet` writes every field. Other programs may leave out the fields that only inform people. Readers decide how to show events.

use std::path::PathBuf;

use crate::Metric;
use serde::{Deserialize, Serialize};

use super::report::Rows;
use crate::nullable;

/// Progress event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
pub enum RunEvent {
    /// Training begins.
    Start {
        /// Number of epochs.
        epochs: usize,
        /// Metric of validation and test.
        metric: Metric,
        /// Number of rows in each part.
        rows: Rows,
    },
    /// A training step is done.
    Progress {
        /// Current epoch, from 1.
        epoch: usize,
        /// Number of epochs.
        epochs: usize,
        /// Completed fraction of the epoch, from 0 to 1.
        #[serde(default)]
        fraction: f64,
        /// Training loss of the epoch so far; can be NaN.
        #[serde(default = "nan", deserialize_with = "nullable::nan")]
        loss: f64,
        /// Training rows per second in this epoch so far.
        #[serde(default = "nan", deserialize_with = "nullable::nan")]
        rows_per_second: f64,
    },
    /// An epoch is done.
    Epoch {
        /// Completed epoch, from 1.
        epoch: usize,
        /// Number of epochs.
        epochs: usize,
        /// Training loss; can be NaN.
        #[serde(default = "nan", deserialize_with = "nullable::nan")]
        loss: f64,
        /// Validation metric; can be NaN.
        #[serde(default = "nan", deserialize_with = "nullable::nan")]
        validation: f64,
        /// Test metric, if the run computed it.
        #[serde(default)]
        test: Option<f64>,
        /// Duration of the epoch in seconds.
        #[serde(default = "nan", deserialize_with = "nullable::nan")]
        seconds: f64,
    },
    /// The run is done.
    Done {
        /// Path of the report.
        report: PathBuf,
    },
}

impl RunEvent {
    /// Parses a line. Returns `None` if the line is not an event.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// Returns the problem of a line that names one of these events and is not valid, such as a missing field. Returns `None` for
    /// valid events and for all other lines.
    pub fn problem(line: &str) -> Option<String> {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        let name = value.get("event")?.as_str()?;
        if !["start", "progress", "epoch", "done"].contains(&name) {
            return None;
        }
        serde_json::from_str::<Self>(line).err().map(|error| error.to_string())
    }

    /// Returns the completed fraction of the run, from 0 to 1, or `None` if the event does not contain it.
    pub fn share(&self) -> Option<f64> {
        let (done, epochs) = match *self {
            Self::Progress { epoch, epochs, fraction, .. } => {
                (epoch.saturating_sub(1) as f64 + fraction, epochs)
            }
            Self::Epoch { epoch, epochs, .. } => (epoch as f64, epochs),
            Self::Start { .. } | Self::Done { .. } => return None,
        };
        (epochs > 0).then(|| (done / epochs as f64).clamp(0.0, 1.0))
    }
}

fn nan() -> f64 {
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_a_round_trip() {
        let check = |line: &str, share: Option<f64>| {
            let event = RunEvent::parse(line).expect(line);
            assert_eq!(event.share(), share, "{line}");
            assert_eq!(serde_json::to_string(&event).expect("plain data"), line);
        };
        check(
            r#"{"event":"start","epochs":4,"metric":"accuracy","rows":{"train":9,"validation":1,"test":2}}"#,
            None,
        );
        check(
            r#"{"event":"progress","epoch":2,"epochs":4,"fraction":0.5,"loss":0.3,"rows_per_second":9.0}"#,
            Some(0.375),
        );
        check(
            r#"{"event":"epoch","epoch":2,"epochs":4,"loss":null,"validation":0.9,"test":null,"seconds":1.0}"#,
            Some(0.5),
        );
        check(r#"{"event":"done","report":"x/report.json"}"#, None);
    }

    #[test]
    fn refuses_other_lines() {
        for line in [
            "a line that a library printed",
            r#"{"event":"later","new":1}"#,
            r#"{"event":"done"}"#,
            r#"{"event":"done","report":"x","new":1}"#,
            r#"{"event":"epoch","epochs":4,"loss":1,"validation":0.9,"seconds":1}"#,
        ] {
            assert_eq!(RunEvent::parse(line), None, "{line}");
        }
    }

    #[test]
    fn short_events_have_a_share() {
        for (line, share) in [
            (r#"{"event":"epoch","epoch":1,"epochs":4}"#, 0.25),
            (r#"{"event":"progress","epoch":2,"epochs":4}"#, 0.25),
            (r#"{"event":"progress","epoch":1,"epochs":1,"fraction":0.5}"#, 0.5),
        ] {
            assert_eq!(RunEvent::parse(line).expect(line).share(), Some(share), "{line}");
            assert_eq!(RunEvent::problem(line), None, "{line}");
        }
    }

    #[test]
    fn problems_name_the_field() {
        for (line, expected) in [
            (r#"{"event":"epoch","epochs":4}"#, "missing field `epoch`"),
            (r#"{"event":"progress","epoch":1}"#, "missing field `epochs`"),
            (r#"{"event":"epoch","epoch":1,"epochs":4,"lossy":1}"#, "unknown field `lossy`"),
        ] {
            let problem = RunEvent::problem(line).expect(line);
            assert!(problem.contains(expected), "{problem} of {line}");
        }
        for line in ["text", "7", r#"{"event":"later","new":1}"#, r#"{"level":"info"}"#] {
            assert_eq!(RunEvent::problem(line), None, "{line}");
        }
    }
}
