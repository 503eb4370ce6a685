//! The primary's end of a link: one request at a time, answered exactly once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::end::End;
use crate::errors::CallError;
use crate::identity::PublicIdentity;
use crate::names::Route;
use crate::session::{CARD, Card, Ends, Hello, Initiation, SECOND, TWICE};
use crate::settings::{Local, Peer, Settings};
use crate::state::{Doing, State};
use crate::transport::{Connection, Transport};
use crate::wire::{LARGEST_MESSAGE, Message, Purpose};

/// Between two first messages of a handshake, in milliseconds, to which chance adds up to 255: a path that is interrupted
/// at regular times must not meet each of them.
const KNOCK: u64 = 120;
/// Between two reports to whoever waits.
const TELL: Duration = Duration::from_millis(500);
/// Unreadable packets without progress from which on a silence is called an alteration.
const ALTERED: u64 = 3;
/// Between two questions whether another process has the party's key.
const PROBE: Duration = Duration::from_secs(3);
/// Time for a last packet to leave before the process may end.
const LEAVE: Duration = Duration::from_millis(200);
/// Packets taken before something is sent again.
const BATCH: usize = 32;

/// The primary's end of a link to one party.
pub struct Caller {
    end: End,
    local: Local,
    route: Route,
    party: PublicIdentity,
    peer: Option<Peer>,
    knocking: Option<Knocking>,
    number: u64,
    /// The SHA-256 of the request of a call that was lost and may go on.
    pending: Option<[u8; 32]>,
    /// Answers to a handshake that the party's identity had not made.
    forged: u64,
    /// Whether a packet of the party came since it joined: it has taken this process for its primary.
    answered: bool,
    /// Why the party and this end cannot agree, as the party says.
    objection: Option<String>,
    probe: Probe,
    doing: Doing,
}

/// The question whether another process than the one that answers has the party's key.
#[derive(Default)]
struct Probe {
    /// The last question, until it is answered.
    asked: Option<Initiation>,
    /// When the next is due.
    due: Option<Instant>,
    /// The other process, once it has answered.
    other: Option<u64>,
}

struct Knocking {
    initiation: Initiation,
    again: Instant,
}

impl Caller {
    /// The end at the primary, which takes only `party` for the other end.
    pub fn new(
        transport: impl Transport + 'static,
        local: Local,
        route: Route,
        party: PublicIdentity,
        settings: Settings,
    ) -> Self {
        Self {
            end: End::new(Arc::new(transport), settings),
            local,
            route,
            party,
            peer: None,
            knocking: None,
            number: 0,
            pending: None,
            forged: 0,
            answered: false,
            objection: None,
            probe: Probe::default(),
            doing: Doing::Idle,
        }
    }

    /// Waits until the party joins, for `limit` at most; tells `report` how it stands, twice a second.
    ///
    /// # Errors
    /// [`CallError::NotJoined`]; [`CallError::Version`]; [`CallError::Denied`]; [`CallError::Restarted`] where it is not the
    /// start of the program that this caller knew: it has joined, and the next call goes to it.
    pub fn wait_for(&mut self, limit: Duration, report: &mut dyn FnMut(&State)) -> Result<Peer, CallError> {
        let (began, mut tell) = (Instant::now(), Instant::now());
        self.doing = Doing::Joining;
        self.knocking = None;
        let joined = loop {
            let now = Instant::now();
            if now.duration_since(began) >= limit {
                break Err(CallError::NotJoined {
                    waited: limit,
                    unreadable: self.forged,
                    objection: self.objection.clone(),
                    connection: self.end.transport.connection(),
                });
            }
            self.refuse_denied()?;
            if now >= tell {
                report(&self.state());
                tell = now + TELL;
            }
            let knock = self.knock(now);
            match self.receive(knock.min(tell).min(began + limit)) {
                Err(error) => break Err(error),
                Ok(true) => break Ok(self.peer.clone().expect("it has just joined")),
                Ok(false) => {}
            }
        };
        self.doing = Doing::Idle;
        joined
    }

    /// Sends a request and waits for its answer. A party that has not joined is waited for, as long as silence is borne.
    ///
    /// After [`CallError::Lost`] or [`CallError::Altered`], a call with the same request goes on where the first was cut;
    /// the party does not compute it twice. A call with another request gives the first up.
    ///
    /// # Errors
    /// Any [`CallError`].
    pub fn call(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        self.call_with(request, &mut |_| {})
    }

    /// [`Caller::call`], which tells `report` how it stands, twice a second.
    ///
    /// # Errors
    /// Any [`CallError`].
    pub fn call_with(
        &mut self,
        request: &[u8],
        report: &mut dyn FnMut(&State),
    ) -> Result<Vec<u8>, CallError> {
        self.refuse_too_large(request)?;
        if !self.end.has_session() {
            self.wait_for(self.end.settings.silence, report)?;
            self.refuse_too_large(request)?;
        }
        let goes_on = self.pending.take().is_some_and(|digest| digest == fet_io::sha256(request));
        if !goes_on {
            self.number += 1;
            self.end.forget();
            (self.end.floor, self.end.ceiling) = (self.number - 1, self.number);
            self.end.begin(Message::of(self.number, request, Purpose::Content));
        }
        let answer = self.exchange(request, report);
        self.doing = Doing::Idle;
        if matches!(answer, Err(CallError::Lost { .. } | CallError::Altered { .. })) {
            self.pending = Some(fet_io::sha256(request));
        }
        answer
    }

    fn exchange(&mut self, request: &[u8], report: &mut dyn FnMut(&State)) -> Result<Vec<u8>, CallError> {
        let began = Instant::now();
        let mut tell = began + TELL;
        self.end.start_clock(began);
        loop {
            let now = Instant::now();
            if let Some((message, bytes)) = self.end.finished() {
                self.end.report(now);
                return match message.purpose {
                    Purpose::Content => Ok(bytes),
                    Purpose::TooLarge => Err(self.answer_too_large(&bytes)),
                };
            }
            self.end.pump(now, request);
            self.doing = match (self.end.is_sending(), self.end.other_computes) {
                (_, true) => Doing::Computing,
                (true, false) => Doing::Sending,
                (false, false) => Doing::Receiving,
            };
            let heard = self.end.heard().map_or(began, |heard| heard.max(began));
            self.refuse_denied()?;
            self.refuse_silence(now, heard)?;
            if now.duration_since(heard) < self.end.settings.heartbeat {
                self.ask_for_another(now);
            }
            let Settings { silence, patience: stalls, .. } = self.end.settings;
            let mut until = self.end.due(now).min(tell).min(heard.min(self.end.progress()) + silence);
            until = until.min(self.end.advanced() + stalls);
            let patience = heard + self.end.settings.heartbeat * 2;
            if now >= patience {
                // Perhaps it started again: an agreement that it has forgotten is no use.
                until = until.min(self.knock(now));
            } else {
                self.knocking = None;
                until = until.min(patience);
            }
            if now >= tell {
                report(&self.state());
                tell = now + TELL;
            }
            self.receive(until)?;
        }
    }

    fn refuse_denied(&self) -> Result<(), CallError> {
        match self.end.transport.connection() {
            denied @ Connection::Denied { .. } => Err(CallError::Denied(denied)),
            _ => Ok(()),
        }
    }

    /// For how long the last call has made no progress, whoever was heard meanwhile.
    pub fn stalled(&self) -> Duration {
        self.end.advanced().elapsed()
    }

    fn refuse_silence(&self, now: Instant, heard: Instant) -> Result<(), CallError> {
        let stalled = now.duration_since(self.end.advanced());
        if stalled >= self.end.settings.patience {
            return Err(CallError::Stalled {
                since: stalled,
                computing: self.end.other_computes,
                connection: self.end.transport.connection(),
            });
        }
        let since = now.duration_since(heard.min(self.end.progress()));
        if since < self.end.settings.silence {
            return Ok(());
        }
        let packets = self.end.unreadable().since_progress();
        if packets >= ALTERED {
            return Err(CallError::Altered { packets, since });
        }
        Err(CallError::Lost { since, connection: self.end.transport.connection() })
    }

    /// Sends the first message of a handshake where it is due; returns when it is next.
    fn knock(&mut self, now: Instant) -> Instant {
        let knocking = match self.knocking.take() {
            Some(knocking) => knocking,
            None => Knocking { initiation: self.initiation(0), again: now },
        };
        let knocking = self.knocking.insert(knocking);
        if now >= knocking.again {
            self.end.transport.send(knocking.initiation.packet.clone());
            let mut chance = [0];
            let _ = getrandom::fill(&mut chance);
            knocking.again = now + Duration::from_millis(KNOCK + u64::from(chance[0]));
        }
        knocking.again
    }

    /// A handshake for a session, or for a question about the party's process `serves`.
    fn initiation(&self, serves: u64) -> Initiation {
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.party };
        Initiation::new(ends, &Hello { serves, ..self.local.hello(&self.end.settings) })
    }

    /// Asks, where it is due, for another process with the party's key: only one that is not the known one answers.
    fn ask_for_another(&mut self, now: Instant) {
        let Some(peer) = self.peer.as_ref().map(|peer| peer.incarnation) else { return };
        if self.probe.due.is_none_or(|due| now >= due) {
            self.probe.other = None;
            self.probe.due = Some(now + PROBE);
            self.ask_besides(peer);
        }
    }

    fn ask_besides(&mut self, known: u64) {
        let asked = self.initiation(known);
        self.end.transport.send(asked.packet.clone());
        self.probe.asked = Some(asked);
    }

    /// Takes the answer to such a question. The known process is asked besides the other one then: if it answers, too, both
    /// live, and neither was started in the place of the other.
    fn take_probe(&mut self, packet: &[u8]) -> Result<bool, CallError> {
        let Some(asked) = self.probe.asked.take() else { return Ok(false) };
        let hello = match asked.finish(packet) {
            Ok((_, hello)) => hello,
            Err(asked) => {
                self.probe.asked = Some(asked);
                return Ok(false);
            }
        };
        let known = self.peer.as_ref().map_or(0, |peer| peer.incarnation);
        if hello.incarnation != known {
            self.probe.other = Some(hello.incarnation);
            self.ask_besides(hello.incarnation);
        } else if self.probe.other.is_some() {
            self.ask_besides(TWICE);
            std::thread::sleep(LEAVE);
            return Err(CallError::Twice);
        }
        Ok(true)
    }

    /// Compares the names and keys of a party that cannot read the handshake, and tells it this end's.
    fn take_card(&mut self, packet: &[u8]) {
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.party };
        let Some(theirs) = Card::decode(packet) else { return };
        let ours = Card::of(ends, false);
        if let Some(difference) = ours.difference(&theirs) {
            self.objection = Some(difference);
            if theirs.asks {
                self.end.transport.send(ours.encode());
            }
        }
    }

    /// Takes the packets that come until `until`, the first that comes and those behind it; returns whether the party joined.
    fn receive(&mut self, until: Instant) -> Result<bool, CallError> {
        let mut joined = false;
        let mut until = until;
        for _ in 0..BATCH {
            let Some(packet) = self.end.transport.receive(until) else { break };
            let now = Instant::now();
            if packet.first() == Some(&SECOND) {
                joined |= self.take_second(&packet)?;
            } else if packet.first() == Some(&CARD) {
                self.take_card(&packet);
            } else {
                self.answered |= self.end.take(&packet, now);
            }
            until = now;
        }
        Ok(joined)
    }

    /// Takes the second message of a handshake: a fresh agreement, as it answers keys that were made for it.
    fn take_second(&mut self, packet: &[u8]) -> Result<bool, CallError> {
        if self.take_probe(packet)? {
            return Ok(false);
        }
        let Some(knocking) = self.knocking.take() else { return Ok(false) };
        let (session, hello) = match knocking.initiation.finish(packet) {
            Ok(finished) => finished,
            Err(initiation) => {
                self.forged += 1;
                self.knocking = Some(Knocking { initiation, ..knocking });
                return Ok(false);
            }
        };
        if hello.version != self.local.version {
            return Err(CallError::Version {
                ours: self.local.version,
                theirs: hello.version,
                about: hello.about,
            });
        }
        let restarted = self.peer.as_ref().is_some_and(|peer| peer.incarnation != hello.incarnation);
        // It answered this process, and has since begun with another.
        if !restarted && self.answered && hello.serves != self.local.incarnation {
            return Err(CallError::Taken);
        }
        self.answered &= !restarted;
        self.peer = Some(hello.into());
        self.forged = 0;
        self.objection = None;
        self.probe = Probe::default();
        if restarted {
            self.end.forget();
            self.pending = None;
        }
        self.end.replace(session);
        // The party takes the session for the current one once a packet of it arrives.
        self.end.report(Instant::now());
        if restarted { Err(CallError::Restarted) } else { Ok(true) }
    }

    fn refuse_too_large(&self, request: &[u8]) -> Result<(), CallError> {
        let limit = self.peer.as_ref().map_or(LARGEST_MESSAGE, |peer| peer.largest.min(LARGEST_MESSAGE));
        let size = request.len() as u64;
        if size > limit { Err(CallError::TooLarge { size, limit }) } else { Ok(()) }
    }

    fn answer_too_large(&self, bytes: &[u8]) -> CallError {
        let size = bytes.try_into().map_or(0, u64::from_le_bytes);
        CallError::AnswerTooLarge { size, limit: self.end.settings.largest.min(LARGEST_MESSAGE) }
    }

    /// How the link stands.
    pub fn state(&self) -> State {
        let (sent, received) = self.end.traffic();
        State {
            connection: self.end.transport.connection(),
            doing: self.doing,
            heard: self.end.heard().map(|heard| heard.elapsed()),
            latency: self.end.latency(),
            sent,
            received,
            unreadable: self.end.unreadable().all() + self.forged,
            objection: self.objection.clone(),
        }
    }

    /// The party, as it said of itself when it last joined.
    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// Whose link it is.
    pub fn route(&self) -> &Route {
        &self.route
    }
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Caller of {} in {}: {}", self.route.party, self.route.run, self.state())
    }
}

#[cfg(test)]
mod tests;
