//! The JSON lines of `fet run --log json`.
//!
//! Only what is shown is read; lines of other kinds are left aside.

use serde::Deserialize;

/// One line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// A step of training. A number that is none (a loss that overflowed) is `null` in JSON.
    Progress {
        /// The epoch under way, from 1.
        epoch: usize,
        /// Of how many.
        epochs: usize,
        /// How much of it is done, from 0 to 1.
        fraction: f64,
        /// The epoch's training loss so far.
        loss: Option<f64>,
        /// Training rows per second.
        rows_per_second: Option<f64>,
    },
    /// An epoch that is done.
    Epoch {
        /// From 1.
        epoch: usize,
        /// Of how many.
        epochs: usize,
        /// The training loss.
        loss: Option<f64>,
        /// The validation metric.
        validation: Option<f64>,
    },
    /// Any other.
    #[serde(other)]
    Other,
}

impl Event {
    /// Reads a line; nothing where it is no event.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// How much of the run is done, from 0 to 1.
    pub(crate) fn share(&self) -> Option<f64> {
        let (done, epochs) = match *self {
            Self::Progress { epoch, epochs, fraction, .. } => {
                (epoch.saturating_sub(1) as f64 + fraction, epochs)
            }
            Self::Epoch { epoch, epochs, .. } => (epoch as f64, epochs),
            Self::Other => return None,
        };
        (epochs > 0).then(|| (done / epochs as f64).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let check = |line: &str, is_event: bool, share: Option<f64>| {
            let event = Event::parse(line);
            assert_eq!(event.is_some(), is_event, "{line}");
            assert_eq!(event.and_then(|event| event.share()), share, "{line}");
        };
        check(r#"{"event":"start","rows":{"train":9},"metric":"accuracy","epochs":4}"#, true, None);
        let progress =
            r#"{"event":"progress","epoch":2,"epochs":4,"fraction":0.5,"loss":0.3,"rows_per_second":9}"#;
        check(progress, true, Some(0.375));
        let epoch =
            r#"{"event":"epoch","epoch":2,"epochs":4,"loss":null,"validation":0.9,"test":null,"seconds":1}"#;
        check(epoch, true, Some(0.5));
        check(r#"{"event":"done","report":"x/report.json"}"#, true, None);
        check(r#"{"event":"later","new":1}"#, true, None);
        check("a line that a library printed", false, None);
    }
}
