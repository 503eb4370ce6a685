//! Secret and authentic packets between two pinned identities: Noise `KK`, with packets in any order.
//!
//! Both ends know each other's key in advance. The prologue binds names, run and version, so that a handshake
//! of one route is invalid for another. A packet that was altered, repeated or made by a third party is not
//! opened, and changes nothing. This module neither interprets packets nor ensures that they arrive.

mod card;
mod handshake;
mod replay;

use snow::StatelessTransportState;

pub(crate) use card::Card;
pub(crate) use handshake::{Ends, Hello, Initiation, TWICE, respond};

use replay::Replay;

/// Newest version of the links that this program speaks.
///
/// The primary offers this version. The party answers with the same version if it speaks it, and otherwise with
/// its own newest version. The primary then begins again with the version of that answer if it speaks it. Both
/// ends therefore use the newest version that both speak. The answer is authentic, so a relay cannot make two
/// ends use an older version.
pub const PROTOCOL: u16 = 3;

/// Oldest version of the links that this program speaks. A new version keeps the former one.
pub(crate) const OLDEST_PROTOCOL: u16 = 3;

/// First byte of a packet: the first message of a handshake, the second, a packet of a session, or a card.
pub(crate) const FIRST: u8 = 1;
pub(crate) const SECOND: u8 = 2;
pub(crate) const PACKET: u8 = 3;
pub(crate) const CARD: u8 = 4;

/// Number of bytes before the encrypted content: kind, session, counter.
const HEADER: usize = 1 + 8 + 8;
/// Number of bytes of the authentication tag.
const TAG: usize = 16;
/// Number of bytes that a packet adds to its content.
pub(crate) const AROUND: usize = HEADER + TAG;
/// Maximum content of one packet, in bytes: Noise's limit of 65,535 minus the tag.
pub(crate) const LARGEST_PLAIN: usize = 65_535 - TAG;

/// Session, from its handshake to its replacement.
pub(crate) struct Session {
    keys: StatelessTransportState,
    /// Distinguishes the packets of sessions: the first bytes of the handshake's hash, equal at both ends.
    name: [u8; 8],
    next: u64,
    seen: Replay,
    /// Number of packets that claimed this session and were not authentic.
    pub(crate) unreadable: u32,
}

/// Result of opening a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PacketOutcome {
    /// The packet is authentic, and its content has this many bytes.
    Plain(usize),
    /// The packet is of another session, or of none.
    Elsewhere,
    /// The packet claims this session, but was altered or made by a third party.
    Unreadable,
    /// The packet was opened before, or is too old to decide.
    Repeated,
}

impl Session {
    fn new(keys: StatelessTransportState, hash: &[u8]) -> Self {
        let name = hash[..8].try_into().expect("a hash of 32 bytes");
        Self { keys, name, next: 0, seen: Replay::default(), unreadable: 0 }
    }

    /// Seals at most [`LARGEST_PLAIN`] bytes in a packet.
    ///
    /// # Panics
    /// If there are more bytes, or after 2^64 packets.
    pub(crate) fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        let counter = self.next;
        self.next += 1;
        let mut packet = vec![0; HEADER + plain.len() + TAG];
        packet[0] = PACKET;
        packet[1..9].copy_from_slice(&self.name);
        packet[9..HEADER].copy_from_slice(&counter.to_le_bytes());
        let sealed = self.keys.write_message(counter, plain, &mut packet[HEADER..]);
        sealed.expect("a packet is within Noise's limit");
        packet
    }

    /// Opens a packet into `plain`, which must have at least [`LARGEST_PLAIN`] bytes.
    pub(crate) fn open(&mut self, packet: &[u8], plain: &mut [u8]) -> PacketOutcome {
        if packet.len() < HEADER + TAG || packet[0] != PACKET || packet[1..9] != self.name {
            return PacketOutcome::Elsewhere;
        }
        let counter = u64::from_le_bytes(packet[9..HEADER].try_into().expect("8 bytes"));
        if !self.seen.may_be_new(counter) {
            return PacketOutcome::Repeated;
        }
        // Only authentic packets move the window.
        match self.keys.read_message(counter, &packet[HEADER..], plain) {
            Ok(length) => {
                self.seen.note(counter);
                PacketOutcome::Plain(length)
            }
            Err(_) => {
                self.unreadable = self.unreadable.saturating_add(1);
                PacketOutcome::Unreadable
            }
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session with {} packets sent", self.next)
    }
}

#[cfg(test)]
mod tests;
