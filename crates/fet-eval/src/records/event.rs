//! JSON lines of `fet run --log json`, one event per line.
//!
//! Readers decide how to show events to people.

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
        fraction: f64,
        /// Training loss of the epoch so far; can be NaN.
        #[serde(deserialize_with = "nullable::nan")]
        loss: f64,
        /// Training rows per second in this epoch so far.
        #[serde(deserialize_with = "nullable::nan")]
        rows_per_second: f64,
    },
    /// An epoch is done.
    Epoch {
        /// Completed epoch, from 1.
        epoch: usize,
        /// Number of epochs.
        epochs: usize,
        /// Training loss; can be NaN.
        #[serde(deserialize_with = "nullable::nan")]
        loss: f64,
        /// Validation metric; can be NaN.
        #[serde(deserialize_with = "nullable::nan")]
        validation: f64,
        /// Test metric, if the run computed it.
        #[serde(deserialize_with = "nullable::given")]
        test: Option<f64>,
        /// Duration of the epoch in seconds.
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
            r#"{"event":"epoch","epoch":2,"epochs":4,"loss":1,"validation":0.9,"seconds":1}"#,
        ] {
            assert_eq!(RunEvent::parse(line), None, "{line}");
        }
    }
}
