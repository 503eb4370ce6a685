//! What carries packets between the primary and one party. It may lose, repeat, reorder, delay and alter them.
//!
//! Nothing here is trusted or retried: sessions keep secrets, and links keep order.

use std::time::Instant;

use bytes::Bytes;

/// The largest packet that a transport must carry, in bytes.
pub const LARGEST_PACKET: usize = 128 * 1024 + 1024;

/// One way to exchange unreliable packets with one other end.
///
/// One thread may send while another receives; only one receives at a time.
pub trait Transport: Send + Sync {
    /// Sends a packet of at most [`LARGEST_PACKET`] bytes, or drops it. It does not wait.
    fn send(&self, packet: Vec<u8>);

    /// The next packet, or none until `until`. A time that is past asks for what is there already.
    fn receive(&self, until: Instant) -> Option<Bytes>;

    /// Whether packets can leave at present.
    fn connection(&self) -> Connection;

    /// Whether no packet will ever come again: whoever waits must connect anew.
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

    fn has_ended(&self) -> bool {
        (**self).has_ended()
    }
}

/// Whether packets can leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// They can, as far as is known; `warning` is what the relay last objected to, if anything.
    Up {
        /// What the relay last refused.
        warning: Option<String>,
    },
    /// The server is there, and does not let this end use the subjects of its run and party.
    Denied {
        /// What it said.
        why: String,
    },
    /// They cannot.
    Down {
        /// Since when.
        since: Instant,
        /// The last reason.
        why: String,
    },
}

impl std::fmt::Display for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Up { warning: None } => f.write_str("the server is connected"),
            Self::Up { warning: Some(warning) } => {
                write!(f, "the server is connected but refused: {warning}")
            }
            Self::Denied { why } => {
                write!(
                    f,
                    "the server does not let this end take part ({why}): compare `run` and the names in the roster \
                     with those that the server was configured with (`fet hub config`)"
                )
            }
            Self::Down { since, why } => {
                write!(f, "the server does not answer since {} s ({why})", since.elapsed().as_secs())
            }
        }
    }
}
