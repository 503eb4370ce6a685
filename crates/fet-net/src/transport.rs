//! Transport of packets between the primary and one party. It may lose, repeat, reorder, delay and alter
//! them.
//!
//! A transport is not trusted and repeats no packets: sessions keep secrets, and links keep order.

use std::time::{Duration, Instant};

use bytes::Bytes;

/// Largest packet that a transport must carry, in bytes.
pub const LARGEST_PACKET: usize = 128 * 1024 + 1024;

/// Exchange of unreliable packets with one other end.
///
/// One thread may send while another receives; only one thread receives at a time.
pub trait Transport: Send + Sync {
    /// Sends a packet of at most [`LARGEST_PACKET`] bytes, or drops it, without waiting.
    fn send(&self, packet: Vec<u8>);

    /// Returns the next packet, or `None` if there is none until `until`. If that time is past, returns only
    /// a packet that has already arrived.
    fn receive(&self, until: Instant) -> Option<Bytes>;

    /// Returns the state of the connection.
    fn connection(&self) -> Connection;

    /// Waits until the packets sent so far have left this process, for `limit` at most.
    fn flush(&self, limit: Duration) {
        let _ = limit;
    }

    /// Returns true if no packet will ever arrive again, so that the user must connect again.
    fn has_ended(&self) -> bool {
        false
    }
}

impl<T: Transport + ?Sized> Transport for std::sync::Arc<T> {
    fn send(&self, packet: Vec<u8>) {
        (**self).send(packet);
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        (**self).receive(until)
    }

    fn connection(&self) -> Connection {
        (**self).connection()
    }

    fn flush(&self, limit: Duration) {
        (**self).flush(limit);
    }

    fn has_ended(&self) -> bool {
        (**self).has_ended()
    }
}

/// State of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// Packets can leave, as far as is known.
    Up {
        /// Last refusal of the relay, if any.
        warning: Option<String>,
    },
    /// The server can be reached, but denies this end the subjects of its run and party.
    Denied {
        /// Reason that the server gave.
        why: String,
    },
    /// Packets cannot leave.
    Down {
        /// Time at which the connection broke.
        since: Instant,
        /// Last known reason.
        why: String,
    },
}

impl std::fmt::Display for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Up { warning: None } => f.write_str("the server is connected"),
            Self::Up { warning: Some(warning) } => {
                write!(f, "the server is connected but refused a request: {warning}")
            }
            Self::Denied { why } => {
                write!(
                    f,
                    "the server refuses this end of the link ({why}): compare `run` and the names in the roster \
                     with those that the server was configured with (`fet hub config`)"
                )
            }
            Self::Down { since, why } => {
                write!(f, "the server has not answered for {} s ({why})", since.elapsed().as_secs())
            }
        }
    }
}
