//! Current state of a link, for a line of progress.

use std::fmt;
use std::time::Duration;

use crate::transport::Connection;

/// Current state of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// State of the connection to the relay.
    pub connection: Connection,
    /// Event that the link waits for.
    pub doing: Activity,
    /// Time since the other end was last heard.
    pub heard: Option<Duration>,
    /// Smoothed round-trip time of a packet.
    pub latency: Option<Duration>,
    /// Number of bytes sent, including repetitions and overhead.
    pub sent: u64,
    /// Number of authentic bytes received, including overhead.
    pub received: u64,
    /// Number of packets that could not be read: altered in transit, or made by a key that is not pinned.
    pub unreadable: u64,
    /// Reason why the two ends cannot agree, as far as is known: other names or keys, or two processes with
    /// one key.
    pub objection: Option<String>,
}

/// Event that a link waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// The link waits for the other end to join.
    Joining,
    /// No call is in progress.
    Idle,
    /// The link waits for a request to leave.
    Sending,
    /// The link waits for the other end, which reports that it computes.
    Computing,
    /// The link waits for the bytes of the answer.
    Receiving,
}

impl fmt::Display for State {
    /// Writes a line of progress.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.doing {
            Activity::Joining => "waits for the other end to join",
            Activity::Idle => "joined",
            Activity::Sending => "sends the request",
            Activity::Computing => "computes",
            Activity::Receiving => "receives the answer",
        };
        f.write_str(doing)?;
        if self.connection != (Connection::Up { warning: None }) {
            write!(f, "; {}", self.connection)?;
        }
        if let Some(heard) = self.heard.filter(|heard| heard.as_secs() >= 3) {
            write!(f, "; last heard {} s ago", heard.as_secs())?;
        }
        if self.unreadable > 0 {
            let packets = if self.unreadable == 1 { "packet" } else { "packets" };
            write!(f, "; {} {packets} could not be read", self.unreadable)?;
        }
        if let Some(objection) = &self.objection {
            write!(f, "; {objection}")?;
        }
        Ok(())
    }
}
