//! What is known of a link at present, for a line of progress.

use std::fmt;
use std::time::Duration;

use crate::transport::Connection;

/// A link at present.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Whether the relay is reached.
    pub connection: Connection,
    /// What the link waits for.
    pub doing: Doing,
    /// How long ago the other end was last heard.
    pub heard: Option<Duration>,
    /// The round trip of a packet, smoothed.
    pub latency: Option<Duration>,
    /// Bytes that left, repetitions and overhead included.
    pub sent: u64,
    /// Bytes that arrived and were authentic, overhead included.
    pub received: u64,
    /// Packets that could not be read: altered on their way, or made by a key that is not pinned.
    pub unreadable: u64,
    /// Why the two ends cannot agree, as far as is known: other names or keys, or two processes with one key.
    pub objection: Option<String>,
}

/// What a link waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// For the other end to join.
    Joining,
    /// For nothing: no call is under way.
    Idle,
    /// For a request to leave.
    Sending,
    /// For the other end, which says that it computes.
    Computing,
    /// For the answer's bytes.
    Receiving,
}

impl fmt::Display for State {
    /// A line of progress.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.doing {
            Doing::Joining => "waits for the other end to join",
            Doing::Idle => "joined",
            Doing::Sending => "sends the request",
            Doing::Computing => "computes",
            Doing::Receiving => "receives the answer",
        };
        f.write_str(doing)?;
        if self.connection != (Connection::Up { warning: None }) {
            write!(f, "; {}", self.connection)?;
        }
        if let Some(heard) = self.heard.filter(|heard| heard.as_secs() >= 3) {
            write!(f, "; last heard {} s ago", heard.as_secs())?;
        }
        if self.unreadable > 0 {
            write!(f, "; {} packets could not be read", self.unreadable)?;
        }
        if let Some(objection) = &self.objection {
            write!(f, "; {objection}")?;
        }
        Ok(())
    }
}
