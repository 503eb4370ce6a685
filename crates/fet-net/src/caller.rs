//! The primary's end of a link: one request at a time, each answered exactly once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::end::End;
use crate::errors::CallError;
use crate::identity::PublicIdentity;
use crate::names::Route;
use crate::session::{CARD, Card, Ends, Hello, Initiation, SECOND, TWICE};
use crate::settings::{Local, Peer, Settings};
use crate::state::{Activity, State};
use crate::transport::{Connection, Transport};
use crate::wire::{LARGEST_MESSAGE, Message, Purpose};

/// Interval between two first messages of a handshake, in milliseconds. A random number up to 255 is added,
/// so that a path with interruptions at regular times does not stop every message.
const KNOCK: u64 = 120;
/// Interval between two calls of a `report` function.
const TELL: Duration = Duration::from_millis(500);
/// Number of unreadable packets without progress from which a silence counts as an alteration.
const ALTERED: u64 = 3;
/// Interval between two probes for another process with the party's key.
const PROBE: Duration = Duration::from_secs(3);
/// Time for a last packet to leave before the process may end.
const LEAVE: Duration = Duration::from_millis(200);
/// Maximum number of packets taken before the end sends again.
const BATCH: usize = 32;

/// The primary's end of a link to one party.
pub struct Caller {
    end: End,
    local: Local,
    route: Route,
    party: PublicIdentity,
    peer: Option<Peer>,
    knocking: Option<HandshakeAttempt>,
    /// Protocol version that the next handshake offers.
    offers: u16,
    number: u64,
    /// SHA-256 of the request of a lost call that may continue.
    pending: Option<[u8; 32]>,
    /// Number of answers to a handshake that the party's identity did not make.
    forged: u64,
    /// True if a packet of the party arrived since it joined: the party has accepted this process as its
    /// primary.
    answered: bool,
    /// Reason why the party and this end cannot agree, as reported by the party.
    objection: Option<String>,
    probe: Probe,
    doing: Activity,
}

/// Probe for another process that has the party's key.
#[derive(Default)]
struct Probe {
    /// Last probe, until it is answered.
    asked: Option<Initiation>,
    /// Time at which the next probe is due.
    due: Option<Instant>,
    /// Instance ID of the other process, once it has answered.
    other: Option<u64>,
}

impl Drop for Caller {
    /// Tells the party that this program has ended. If the packet is lost, the party notices the silence.
    fn drop(&mut self) {
        self.end.leave(LEAVE);
    }
}

struct HandshakeAttempt {
    initiation: Initiation,
    again: Instant,
}

impl Caller {
    /// Creates the primary's end, which accepts only `party` as the other end.
    pub fn new(
        transport: impl Transport + 'static,
        local: Local,
        route: Route,
        party: PublicIdentity,
        settings: Settings,
    ) -> Self {
        Self {
            end: End::new(Arc::new(transport), settings),
            offers: local.version,
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
            doing: Activity::Idle,
        }
    }

    /// Waits for the party to join, for `limit` at most. Calls `report` with the state of the link twice a
    /// second.
    ///
    /// # Errors
    /// [`CallError::NotJoined`], [`CallError::Version`] or [`CallError::Denied`]. Also
    /// [`CallError::Restarted`] if the party's program has restarted since this caller knew it: the party has
    /// joined, and the next call goes to the new program.
    pub fn wait_for(&mut self, limit: Duration, report: &mut dyn FnMut(&State)) -> Result<Peer, CallError> {
        let (began, mut tell) = (Instant::now(), Instant::now());
        self.doing = Activity::Joining;
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
        self.doing = Activity::Idle;
        joined
    }

    /// Sends a request and waits for its answer. If the party has not joined, the call waits for it for at
    /// most [`Settings::silence`].
    ///
    /// After [`CallError::Lost`] or [`CallError::Altered`], a call with the same request continues where the
    /// first was cut; the party does not compute it twice. A call with another request abandons the first.
    ///
    /// # Errors
    /// Any [`CallError`].
    pub fn call(&mut self, request: &[u8]) -> Result<Vec<u8>, CallError> {
        self.call_with(request, &mut |_| {})
    }

    /// Like [`Caller::call`], and calls `report` with the state of the link twice a second.
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
            self.end.accept_only(self.number);
            self.end.begin(Message::for_bytes(self.number, request, Purpose::Content));
        }
        let answer = self.exchange(request, report);
        self.doing = Activity::Idle;
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
                (_, true) => Activity::Computing,
                (true, false) => Activity::Sending,
                (false, false) => Activity::Receiving,
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
                // The party may have restarted: a session that it has forgotten is useless.
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

    /// Returns the time for which the last call has made no progress, even if the party was heard meanwhile.
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

    /// Sends the first message of a handshake if it is due. Returns the time at which the next one is due.
    fn knock(&mut self, now: Instant) -> Instant {
        let knocking = match self.knocking.take() {
            Some(knocking) => knocking,
            None => HandshakeAttempt { initiation: self.initiation(0), again: now },
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

    /// Creates a handshake: for a session if `serves` is 0, otherwise for a probe about the party's process
    /// `serves`.
    fn initiation(&self, serves: u64) -> Initiation {
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.party };
        Initiation::new(ends, &Hello { serves, ..self.local.hello(self.offers, &self.end.settings) })
    }

    /// Probes for another process with the party's key, if a probe is due. The known process does not answer
    /// a probe.
    fn ask_for_another(&mut self, now: Instant) {
        let Some(peer) = self.peer.as_ref().map(|peer| peer.instance_id) else { return };
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

    /// Takes the answer to a probe. If another process has answered, the next probe is for the known process.
    /// If the known process answers too, both are running and neither has replaced the other.
    fn take_probe(&mut self, packet: &[u8]) -> Result<bool, CallError> {
        let Some(asked) = self.probe.asked.take() else { return Ok(false) };
        let hello = match asked.finish(packet) {
            Ok((_, hello)) => hello,
            Err(asked) => {
                self.probe.asked = Some(asked);
                return Ok(false);
            }
        };
        let known = self.peer.as_ref().map_or(0, |peer| peer.instance_id);
        if hello.instance_id != known {
            self.probe.other = Some(hello.instance_id);
            self.ask_besides(hello.instance_id);
        } else if self.probe.other.is_some() {
            self.ask_besides(TWICE);
            std::thread::sleep(LEAVE);
            return Err(CallError::Twice);
        }
        Ok(true)
    }

    /// Compares the names and keys of a party that cannot read the handshake, and sends this end's card if
    /// the party asks for it.
    fn take_card(&mut self, packet: &[u8]) {
        let ends = Ends { route: &self.route, keys: &self.local.keys, other: &self.party };
        let Some(theirs) = Card::decode(packet) else { return };
        let ours = Card::for_ends(ends, false);
        if let Some(difference) = ours.difference(&theirs) {
            self.objection = Some(difference);
            if theirs.asks {
                self.end.transport.send(ours.encode());
            }
        }
    }

    /// Takes the first packet that arrives before `until`, and those behind it. Returns true if the party
    /// joined.
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

    /// Takes the second message of a handshake. Its session is fresh, because the message answers keys that
    /// were made for it.
    fn take_second(&mut self, packet: &[u8]) -> Result<bool, CallError> {
        if self.take_probe(packet)? {
            return Ok(false);
        }
        let Some(knocking) = self.knocking.take() else { return Ok(false) };
        let (session, hello) = match knocking.initiation.finish(packet) {
            Ok(finished) => finished,
            Err(initiation) => {
                self.forged += 1;
                self.knocking = Some(HandshakeAttempt { initiation, ..knocking });
                return Ok(false);
            }
        };
        if hello.version != self.offers && self.local.speaks(hello.version) {
            // The party has refused the offer and has named its newest version: the next handshake offers it.
            self.offers = hello.version;
            return Ok(false);
        }
        if hello.version != self.offers {
            return Err(CallError::Version {
                ours: self.local.version,
                theirs: hello.version,
                about: hello.about,
            });
        }
        let restarted = self.peer.as_ref().is_some_and(|peer| peer.instance_id != hello.instance_id);
        // The party answered this process, and has since begun with another.
        if !restarted && self.answered && hello.serves != self.local.instance_id {
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
        // The session becomes the party's current one once a packet of it arrives there.
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

    /// Returns the state of the link.
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

    /// Returns the party as it described itself when it last joined.
    pub fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    /// Returns the run and the ends of the link.
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
