//! Packets that arrive at a party and leave it: handshakes, requests and answers.
//!
//! Each program of the primary has a lane of its own, so that a training and predictions do not disturb each other.

mod lane;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::end::End;
use crate::identity::PublicIdentity;
use crate::names::Route;
use crate::session::{CARD, Card, Ends, FIRST, Hello, LARGEST_PLAIN, PacketOutcome, Session, TWICE, respond};
use crate::settings::{Local, Peer, Settings};
use crate::state::{Activity, State};
use crate::transport::Transport;
use lane::Lane;

/// Maximum number of begun sessions without any packet yet. A first message may be a replay; this many
/// replays can be in transit before they displace a genuine one.
const CANDIDATES: usize = 8;

/// Silence after which a program counts as gone.
const GONE: Duration = Duration::from_secs(60 * 60);

/// Event for the party's threads.
pub(super) enum Event {
    /// A program of the primary begins. `is_above` is true if it is one too many.
    Begins { lane: u64, peer: Peer, is_above: bool },
    /// A program offered a protocol version that this end does not speak. It may offer an older one next.
    Refused(Peer, u16),
    /// A request arrived.
    Request { lane: u64, number: u64, bytes: Vec<u8> },
    /// The lane is closed.
    Ends(u64),
}

pub(super) struct Post {
    transport: Arc<dyn Transport>,
    settings: Settings,
    local: Local,
    route: Route,
    primary: PublicIdentity,
    /// Maximum number of programs that the party serves. From it on, a new program displaces a silent one.
    most: usize,
    /// True if a program that begins ends the former ones.
    pub(super) takes_turns: bool,
    lanes: Vec<Lane>,
    /// Number of lanes so far.
    begun: u64,
    candidates: VecDeque<Candidate>,
    events: VecDeque<Event>,
    /// Packets of all handshakes, and all closed lanes.
    past: Past,
    /// Reason why the primary and this end cannot agree.
    objection: Option<String>,
    /// Last version that was refused, so that a refusal is reported once.
    refused: Option<(u64, u16)>,
    opened: Vec<u8>,
}

/// Counts that outlive a lane.
#[derive(Default)]
struct Past {
    sent: u64,
    received: u64,
    unreadable: u64,
    /// Number of first messages that the primary's identity did not make for this route.
    forged: u64,
    heard: Option<Instant>,
    latency: Option<Duration>,
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
        Self {
            transport,
            settings,
            local,
            route,
            primary,
            most: 1,
            takes_turns: true,
            lanes: Vec::new(),
            begun: 0,
            candidates: VecDeque::new(),
            events: VecDeque::new(),
            past: Past::default(),
            objection: None,
            refused: None,
            opened: vec![0; LARGEST_PLAIN],
        }
    }

    /// Serves up to `most` programs at the same time, instead of one after another.
    pub(super) fn serve_at_once(&mut self, most: usize) {
        (self.most, self.takes_turns) = (most, false);
    }

    /// Takes a packet of any sender.
    pub(super) fn take(&mut self, packet: &[u8], now: Instant) {
        match packet.first() {
            Some(&FIRST) => self.take_first(packet),
            Some(&CARD) => self.take_card(packet),
            _ => {
                let found = self.lanes.iter_mut().position(|lane| lane.end.take(packet, now));
                if let Some(at) = found.or_else(|| self.take_candidates_packet(packet, now)) {
                    self.take_request(at);
                    if self.lanes[at].end.other_left {
                        self.remove(at);
                    }
                }
            }
        }
    }

    /// Passes the request that has arrived completely in a lane, if there is one, to the party.
    fn take_request(&mut self, at: usize) {
        let lane = &mut self.lanes[at];
        let Some((message, bytes)) = lane.finished() else { return };
        let id = lane.id;
        // A waiting request is dropped when another arrives.
        self.events.retain(|event| !matches!(event, Event::Request { lane, .. } if *lane == id));
        self.events.push_back(Event::Request { lane: id, number: message.number, bytes });
    }

    /// Answers the first message of a handshake. All sessions stay unchanged.
    fn take_first(&mut self, packet: &[u8]) {
        if self.lanes.iter().any(|lane| lane.first == packet) {
            return;
        }
        if let Some(known) = self.candidates.iter().find(|candidate| candidate.first == packet) {
            self.transport.send(known.second.clone());
            return;
        }
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.primary };
        // A program whose lane was closed learns from `serves` that the party no longer answers it.
        let serves = |hello: &Hello| match self.lanes.iter().any(|lane| lane.is_of(hello.instance_id)) {
            true => hello.instance_id,
            false => 0,
        };
        let ours = |theirs: &Hello| {
            let version = self.local.answers(theirs.version);
            Hello { serves: serves(theirs), ..self.local.hello(version, &self.settings) }
        };
        let Some((session, hello, second)) = respond(ends, ours, packet) else {
            self.past.forged += 1;
            self.transport.send(Card::for_ends(ends, true).encode());
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
                self.transport.send(second);
                return;
            }
        }
        self.transport.send(second.clone());
        if !self.local.speaks(hello.version) {
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

    /// Makes a session the current one of its program on its first authentic packet. Returns the place of the
    /// program's lane.
    fn take_candidates_packet(&mut self, packet: &[u8], now: Instant) -> Option<usize> {
        let opened = &mut self.opened;
        let mut opens = |candidate: &mut Candidate| match candidate.session.open(packet, opened) {
            PacketOutcome::Plain(length) => Some(length),
            _ => None,
        };
        let (at, length) =
            self.candidates.iter_mut().enumerate().find_map(|(at, found)| Some((at, opens(found)?)))?;
        let Candidate { first, session, hello, .. } = self.candidates.remove(at)?;
        // A later candidate of the program may already be the current session at the primary.
        let mut place = 0;
        self.candidates.retain(|other| {
            place += 1;
            place > at || other.hello.instance_id != hello.instance_id
        });
        let known = self.lanes.iter().position(|lane| lane.is_of(hello.instance_id));
        let lane = match known {
            Some(lane) => lane,
            None => self.open(&hello, now),
        };
        self.objection = None;
        let found = &mut self.lanes[lane];
        found.renew(first, session, hello.into());
        found.end.take_plain(&self.opened[..length], packet.len(), now);
        Some(lane)
    }

    /// Opens a lane for a program, and returns its place.
    fn open(&mut self, hello: &Hello, now: Instant) -> usize {
        if self.takes_turns {
            (0..self.lanes.len()).rev().for_each(|at| self.remove(at));
        }
        let silence = self.settings.silence;
        let is_silent = |lane: &Lane| lane.silence(now).is_some_and(|time| time > silence);
        while let Some(at) = self.lanes.iter().position(|lane| lane.is_above && is_silent(lane)) {
            self.remove(at);
        }
        while self.served() >= self.most {
            let silent = (0..self.lanes.len()).filter(|&at| is_silent(&self.lanes[at]));
            let Some(at) = silent.max_by_key(|&at| self.lanes[at].silence(now)) else { break };
            self.remove(at);
        }
        // Programs above the limit are answered too, so that the party can tell them the reason.
        let is_above = self.served() >= self.most;
        if is_above && self.lanes.len() - self.served() >= self.most {
            let oldest = self.lanes.iter().position(|lane| lane.is_above);
            oldest.into_iter().for_each(|at| self.remove(at));
        }
        self.begun += 1;
        let mut end = End::new(Arc::clone(&self.transport), self.settings);
        end.parks = true;
        let peer = Peer::from(hello.clone());
        self.lanes.push(Lane::new(self.begun, end, peer.clone(), is_above));
        self.events.push_back(Event::Begins { lane: self.begun, peer, is_above });
        self.lanes.len() - 1
    }

    /// Returns the number of programs that the party serves, without those that are too many.
    fn served(&self) -> usize {
        self.lanes.iter().filter(|lane| !lane.is_above).count()
    }

    fn remove(&mut self, at: usize) {
        let lane = self.lanes.remove(at);
        let (sent, received) = lane.end.traffic();
        self.past.sent += sent;
        self.past.received += received;
        self.past.unreadable += lane.end.unreadable().all();
        self.past.heard = self.past.heard.max(lane.end.heard());
        self.past.latency = lane.end.latency().or(self.past.latency);
        // The party no longer answers requests of this program.
        self.events.retain(|event| !matches!(event, Event::Request { lane: of, .. } if *of == lane.id));
        self.events.push_back(Event::Ends(lane.id));
    }

    /// Returns the time since a program was last heard; `None` if the party computes for it, or its lane is
    /// closed.
    pub(super) fn silence(&self, instance: u64, now: Instant) -> Option<Duration> {
        self.lanes.iter().find(|lane| lane.is_of(instance))?.silence(now)
    }

    /// Closes a program's lane, if it is open.
    pub(super) fn close(&mut self, instance: u64) {
        if let Some(at) = self.lanes.iter().position(|lane| lane.is_of(instance)) {
            self.remove(at);
        }
    }

    /// Takes an answer, unless its request is no longer wanted, and sends as much of the answer as it may.
    pub(super) fn answer(&mut self, lane: u64, number: u64, bytes: Vec<u8>, now: Instant) {
        if let Some(lane) = self.lanes.iter_mut().find(|open| open.id == lane) {
            lane.answer(number, bytes, now);
        }
    }

    pub(super) fn pump(&mut self, now: Instant) {
        if !self.takes_turns {
            let is_gone = |lane: &Lane| lane.silence(now).is_some_and(|silence| silence > GONE);
            while let Some(at) = self.lanes.iter().position(is_gone) {
                self.remove(at);
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.pump(now));
    }

    pub(super) fn due(&self, now: Instant) -> Instant {
        let dues = self.lanes.iter().map(|lane| lane.end.due(now));
        dues.min().unwrap_or(now + Duration::from_secs(1))
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the state of all lanes together.
    pub(super) fn state(&self) -> State {
        let Past { mut sent, mut received, mut unreadable, forged, .. } = self.past;
        for end in self.lanes.iter().map(|lane| &lane.end) {
            sent += end.traffic().0;
            received += end.traffic().1;
            unreadable += end.unreadable().all();
        }
        let last = self.lanes.iter().max_by_key(|lane| lane.end.heard());
        let heard = last.and_then(|lane| lane.end.heard()).max(self.past.heard);
        let any = |does: fn(&End) -> bool| self.lanes.iter().any(|lane| does(&lane.end));
        State {
            connection: self.transport.connection(),
            doing: match () {
                () if self.lanes.is_empty() => Activity::Joining,
                () if any(|end| end.computing) => Activity::Computing,
                () if any(End::is_sending) => Activity::Sending,
                () => Activity::Idle,
            },
            heard: heard.map(|heard| heard.elapsed()),
            latency: last.and_then(|lane| lane.end.latency()).or(self.past.latency),
            sent,
            received,
            unreadable: unreadable + forged,
            objection: self.objection.clone(),
        }
    }
}
