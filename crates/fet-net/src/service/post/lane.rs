//! Lane of one program of the primary: its session, its request and its answer.

use std::time::{Duration, Instant};

use crate::end::{CompleteMessage, End};
use crate::session::Session;
use crate::settings::Peer;
use crate::wire::{LARGEST_MESSAGE, Message, Purpose};

pub(super) struct Lane {
    /// Number of the lane, from 1.
    pub(super) id: u64,
    pub(super) end: End,
    peer: Peer,
    /// First message of the current session.
    pub(super) first: Vec<u8>,
    /// True if the program is one too many: the party only refuses its requests.
    pub(super) is_above: bool,
    /// Last answer.
    answer: Vec<u8>,
}

impl Lane {
    pub(super) fn new(id: u64, end: End, peer: Peer, is_above: bool) -> Self {
        Self { id, end, peer, first: Vec::new(), is_above, answer: Vec::new() }
    }

    /// Returns true if this is the lane of the program with this instance id.
    pub(super) fn is_of(&self, instance: u64) -> bool {
        self.peer.instance_id == instance
    }

    /// Returns the time since the program was last heard, or `None` if the party computes for it.
    pub(super) fn silence(&self, now: Instant) -> Option<Duration> {
        let heard = self.end.heard()?;
        (!self.end.computing).then(|| now.duration_since(heard))
    }

    /// Continues in a new session, which the program began with the message `first`.
    pub(super) fn renew(&mut self, first: Vec<u8>, session: Session, peer: Peer) {
        (self.first, self.peer) = (first, peer);
        self.end.replace(session);
    }

    /// Returns the request that has arrived completely, once.
    pub(super) fn finished(&mut self) -> Option<CompleteMessage> {
        let request = self.end.finished()?;
        self.end.computing = true;
        // The primary has the last answer, otherwise it would not send another request.
        self.answer = Vec::new();
        Some(request)
    }

    /// Takes the answer to the request `number`, unless the request is no longer wanted.
    pub(super) fn answer(&mut self, number: u64, bytes: Vec<u8>, now: Instant) {
        if number != self.end.last_number() {
            return;
        }
        let limit = self.peer.largest.min(LARGEST_MESSAGE);
        let purpose = if bytes.len() as u64 > limit { Purpose::TooLarge } else { Purpose::Content };
        self.answer = match purpose {
            Purpose::Content => bytes,
            Purpose::TooLarge => (bytes.len() as u64).to_le_bytes().to_vec(),
        };
        self.end.computing = false;
        self.end.begin(Message::for_bytes(number, &self.answer, purpose));
        self.pump(now);
    }

    pub(super) fn pump(&mut self, now: Instant) {
        self.end.pump(now, &self.answer);
    }
}
