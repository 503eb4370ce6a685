//! Packets that arrive at a party and leave it: handshakes, requests and answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::end::End;
use crate::identity::PublicIdentity;
use crate::names::Route;
use crate::session::{CARD, Card, Ends, FIRST, Hello, LARGEST_PLAIN, PacketOutcome, Session, TWICE, respond};
use crate::settings::{Local, Peer, Settings};
use crate::state::{Activity, State};
use crate::transport::Transport;
use crate::wire::{LARGEST_MESSAGE, Message, Purpose};

/// Maximum number of begun sessions without any packet yet. A first message may be a replay; this many
/// replays can be in transit before they displace a genuine one.
const CANDIDATES: usize = 8;

/// Event for the party's thread.
pub(super) enum Event {
    Begins(Peer),
    Refused(Peer, u16),
    Request { epoch: u64, number: u64, bytes: Vec<u8> },
}

pub(super) struct Post {
    end: End,
    local: Local,
    route: Route,
    primary: PublicIdentity,
    peer: Option<Peer>,
    candidates: VecDeque<Candidate>,
    /// First message of the current session.
    current: Vec<u8>,
    /// Number of instances of the primary so far.
    epoch: u64,
    events: VecDeque<Event>,
    /// Last answer.
    answer: Vec<u8>,
    /// Number of first messages that the primary's identity did not make for this route.
    forged: u64,
    /// Reason why the primary and this end cannot agree.
    objection: Option<String>,
    /// Last version that was refused, so that a refusal is reported once.
    refused: Option<(u64, u16)>,
    opened: Vec<u8>,
}

struct Candidate {
    first: Vec<u8>,
    second: Vec<u8>,
    session: Session,
    hello: Hello,
}

impl Post {
    pub(super) fn new(
        transport: Arc<dyn Transport>,
        local: Local,
        route: Route,
        primary: PublicIdentity,
        settings: Settings,
    ) -> Self {
        let mut end = End::new(transport, settings);
        end.parks = true;
        Self {
            end,
            local,
            route,
            primary,
            peer: None,
            candidates: VecDeque::new(),
            current: Vec::new(),
            epoch: 0,
            events: VecDeque::new(),
            answer: Vec::new(),
            forged: 0,
            objection: None,
            refused: None,
            opened: vec![0; LARGEST_PLAIN],
        }
    }

    /// Takes a packet of any sender.
    pub(super) fn take(&mut self, packet: &[u8], now: Instant) {
        if packet.first() == Some(&FIRST) {
            self.take_first(packet);
        } else if packet.first() == Some(&CARD) {
            self.take_card(packet);
        } else if !self.end.take(packet, now) {
            self.take_candidates_packet(packet, now);
        }
        if let Some((message, bytes)) = self.end.finished() {
            self.end.computing = true;
            // The primary has the last answer, otherwise it would not send another request.
            self.answer = Vec::new();
            // A waiting request is dropped when another arrives.
            self.events.retain(|event| !matches!(event, Event::Request { .. }));
            self.events.push_back(Event::Request { epoch: self.epoch, number: message.number, bytes });
        }
    }

    /// Answers the first message of a handshake. The current session stays unchanged.
    fn take_first(&mut self, packet: &[u8]) {
        if packet == self.current {
            return;
        }
        if let Some(known) = self.candidates.iter().find(|candidate| candidate.first == packet) {
            self.end.transport.send(known.second.clone());
            return;
        }
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.primary };
        let serves = self.peer.as_ref().map_or(0, |peer| peer.instance_id);
        let ours = Hello { serves, ..self.local.hello(&self.end.settings) };
        let Some((session, hello, second)) = respond(ends, &ours, packet) else {
            self.forged += 1;
            self.end.transport.send(Card::for_ends(ends, true).encode());
            return;
        };
        match hello.serves {
            0 => {}
            // The primary asks if a process other than the one it knows has this key.
            served if served == self.local.instance_id => return,
            TWICE => {
                self.objection = Some(
                    "two processes answer the primary with this party's key: this one, and another, perhaps on another \
                     machine; stop one of them"
                        .into(),
                );
                return;
            }
            _ => {
                self.end.transport.send(second);
                return;
            }
        }
        self.end.transport.send(second.clone());
        if hello.version != self.local.version {
            let refused = Some((hello.instance_id, hello.version));
            if self.refused != refused {
                self.refused = refused;
                self.events.push_back(Event::Refused(hello.into(), self.local.version));
            }
            return;
        }
        if self.candidates.len() == CANDIDATES {
            self.candidates.pop_front();
        }
        self.candidates.push_back(Candidate { first: packet.to_vec(), second, session, hello });
    }

    /// Compares this end's names and keys with those of an end whose first message could not be read.
    fn take_card(&mut self, packet: &[u8]) {
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.primary };
        let Some(theirs) = Card::decode(packet) else { return };
        if let Some(difference) = Card::for_ends(ends, false).difference(&theirs) {
            self.objection = Some(difference);
        }
    }

    /// Makes a session the current one on its first authentic packet.
    fn take_candidates_packet(&mut self, packet: &[u8], now: Instant) {
        let opened = &mut self.opened;
        let mut opens = |candidate: &mut Candidate| match candidate.session.open(packet, opened) {
            PacketOutcome::Plain(length) => Some(length),
            _ => None,
        };
        let found = self.candidates.iter_mut().enumerate().find_map(|(at, found)| Some((at, opens(found)?)));
        let Some((at, length)) = found else { return };
        let Some(Candidate { first, session, hello, .. }) = self.candidates.remove(at) else { return };
        // A later candidate may already be the current session at the primary.
        self.candidates.drain(..at);
        self.current = first;
        if self.peer.as_ref().is_none_or(|peer| peer.instance_id != hello.instance_id) {
            self.epoch += 1;
            self.end.forget();
            self.end.accept_all();
            self.answer = Vec::new();
            // Requests of an earlier instance are no longer wanted.
            self.events.retain(|event| !matches!(event, Event::Request { .. }));
            self.events.push_back(Event::Begins(hello.clone().into()));
        }
        self.peer = Some(hello.into());
        self.objection = None;
        self.end.replace(session);
        self.end.take_plain(&self.opened[..length], packet.len(), now);
    }

    /// Takes an answer, unless its request is no longer wanted, and sends as much of the answer as it may.
    pub(super) fn answer(&mut self, epoch: u64, number: u64, bytes: Vec<u8>, now: Instant) {
        if epoch != self.epoch || number != self.end.last_number() {
            return;
        }
        let limit = self.peer.as_ref().map_or(0, |peer| peer.largest.min(LARGEST_MESSAGE));
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

    pub(super) fn due(&self, now: Instant) -> Instant {
        self.end.due(now)
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(super) fn state(&self) -> State {
        let (sent, received) = self.end.traffic();
        State {
            connection: self.end.transport.connection(),
            doing: match (self.end.has_session(), self.end.computing, self.end.is_sending()) {
                (false, ..) => Activity::Joining,
                (true, true, _) => Activity::Computing,
                (true, false, true) => Activity::Sending,
                (true, false, false) => Activity::Idle,
            },
            heard: self.end.heard().map(|heard| heard.elapsed()),
            latency: self.end.latency(),
            sent,
            received,
            unreadable: self.end.unreadable().all() + self.forged,
            objection: self.objection.clone(),
        }
    }
}
