//! The JSON lines of `fet run --log json`: one event each.
//!
//! How events are shown to people is for their readers.

use std::path::PathBuf;

use crate::Metric;
use serde::{Deserialize, Serialize};

use super::report::Rows;
use crate::nullable;

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
pub enum Event {
    /// Training begins.
    Start {
        /// How many epochs there will be.
        epochs: usize,
        /// The metric of validation and test.
        metric: Metric,
        /// How many rows each part has.
        rows: Rows,
    },
    /// A step of training is done.
    Progress {
        /// The epoch under way, from 1.
        epoch: usize,
        /// Of how many.
        epochs: usize,
        /// How much of the epoch is done, from 0 to 1.
        fraction: f64,
        /// The epoch's training loss so far; may be NaN.
        #[serde(deserialize_with = "nullable::nan")]
        loss: f64,
        /// Training rows per second in this epoch so far.
        #[serde(deserialize_with = "nullable::nan")]
        rows_per_second: f64,
    },
    /// An epoch is done.
    Epoch {
        /// From 1.
        epoch: usize,
        /// Of how many.
        epochs: usize,
        /// The training loss; may be NaN.
        #[serde(deserialize_with = "nullable::nan")]
        loss: f64,
        /// The validation metric; may be NaN.
        #[serde(deserialize_with = "nullable::nan")]
        validation: f64,
        /// The test metric, where it was computed.
        #[serde(deserialize_with = "nullable::given")]
        test: Option<f64>,
        /// How long the epoch took.
        seconds: f64,
    },
    /// The run is done.
    Done {
        /// Where its report is.
        report: PathBuf,
    },
}

impl Event {
    /// Reads a line; nothing where it is no event.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// How much of the run is done, from 0 to 1; nothing where the event does not tell.
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
    fn lines_are_read_and_written_as_they_were() {
        let check = |line: &str, share: Option<f64>| {
            let event = Event::parse(line).expect(line);
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
    fn other_lines_are_no_events() {
        for line in [
            "a line that a library printed",
            r#"{"event":"later","new":1}"#,
            r#"{"event":"done"}"#,
            r#"{"event":"done","report":"x","new":1}"#,
            r#"{"event":"epoch","epoch":2,"epochs":4,"loss":1,"validation":0.9,"seconds":1}"#,
        ] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }
}
