//! What both ends of a link do: send the chunks of one message, take those of another, and report.
//!
//! Who begins a session, and what a whole message means, is the caller's or the service's concern.

mod unreadable;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::receiving::Receiving;
use crate::rtt::Rtt;
use crate::sending::{Pace, Sending};
use crate::session::{LARGEST_PLAIN, Opened, Session};
use crate::settings::Settings;
use crate::transport::Transport;
use crate::wire::{Body, Message, Report};
use unreadable::Unreadable;

/// A whole message.
pub(crate) type Whole = (Message, Vec<u8>);

/// One end of a link.
pub(crate) struct End {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) settings: Settings,
    session: Option<Session>,
    outgoing: Option<Sending>,
    incoming: Option<Receiving>,
    /// The last message that was taken whole, and it where nobody fetched it yet.
    taken: Option<Message>,
    finished: Option<Whole>,
    /// Numbers that are taken are above the first and no larger than the second.
    pub(crate) floor: u64,
    pub(crate) ceiling: u64,
    /// Whether data waits while the other end is silent.
    pub(crate) parks: bool,
    /// Whether this end computes, and whether the other said so of itself.
    pub(crate) computing: bool,
    pub(crate) other_computes: bool,
    pace: Pace,
    rtt: Rtt,
    serial: u64,
    echo: Option<(u64, Instant)>,
    report_due: bool,
    reported: Instant,
    heard: Option<Instant>,
    progress: Instant,
    /// When a chunk last arrived, here or there, or a message was begun.
    advanced: Instant,
    unreadable: Unreadable,
    sent: u64,
    received: u64,
    plain: Vec<u8>,
    opened: Vec<u8>,
}

impl End {
    pub(crate) fn new(transport: Arc<dyn Transport>, settings: Settings) -> Self {
        let now = Instant::now();
        Self {
            transport,
            settings,
            session: None,
            outgoing: None,
            incoming: None,
            taken: None,
            finished: None,
            floor: 0,
            ceiling: u64::MAX,
            parks: false,
            computing: false,
            other_computes: false,
            pace: Pace::default(),
            rtt: Rtt::default(),
            serial: 0,
            echo: None,
            report_due: false,
            reported: now,
            heard: None,
            progress: now,
            advanced: now,
            unreadable: Unreadable::default(),
            sent: 0,
            received: 0,
            plain: Vec::new(),
            opened: vec![0; LARGEST_PLAIN],
        }
    }

    /// Goes on in a new session; messages under way stay.
    pub(crate) fn replace(&mut self, session: Session) {
        self.unreadable.session_ends();
        self.session = Some(session);
        self.pace = Pace::default();
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.start_again();
        }
        self.report_due = true;
    }

    /// Forgets all messages: the other end has forgotten them, or is another.
    pub(crate) fn forget(&mut self) {
        (self.outgoing, self.incoming, self.taken, self.finished) = (None, None, None, None);
        (self.computing, self.other_computes) = (false, false);
        self.echo = None;
    }

    /// Begins to send a message, in place of an earlier one.
    pub(crate) fn begin(&mut self, message: Message) {
        self.outgoing = Some(Sending::new(message));
        self.progress = Instant::now();
        self.advanced = self.progress;
    }

    /// Opens a packet and takes it in; returns whether it is of this session.
    pub(crate) fn take(&mut self, packet: &[u8], now: Instant) -> bool {
        let Some(session) = &mut self.session else { return false };
        let mut opened = std::mem::take(&mut self.opened);
        let found = session.open(packet, &mut opened);
        self.unreadable.here = session.unreadable;
        if let Opened::Plain(length) = found {
            self.take_plain(&opened[..length], packet.len(), now);
        }
        self.opened = opened;
        found != Opened::Elsewhere
    }

    /// Takes in what an authentic packet of `size` bytes contains.
    pub(crate) fn take_plain(&mut self, plain: &[u8], size: usize, now: Instant) {
        let pause = self.settings.heartbeat * 2;
        if self.heard.is_none_or(|heard| now.duration_since(heard) > pause) {
            self.pace.revive();
        }
        self.heard = Some(now);
        self.received += size as u64;
        match Body::decode(plain) {
            Some(Body::Data { message, serial, index, bytes }) => {
                self.take_chunk(message, serial, index, bytes, now);
            }
            Some(Body::Report(report)) => self.take_report(&report, now),
            // Of a program that keeps the version but not the format: what it does not say is missing, not wrong.
            None => {}
        }
    }

    fn take_report(&mut self, report: &Report, now: Instant) {
        self.unreadable.there = report.unreadable;
        self.other_computes = report.computing;
        let arrived = self
            .outgoing
            .as_mut()
            .is_some_and(|sending| sending.reported(report, now, &mut self.pace, &mut self.rtt));
        if arrived {
            self.advanced = now;
        }
        if arrived || report.computing {
            self.went_through(now);
        }
    }

    fn take_chunk(&mut self, message: Message, serial: u64, index: u32, bytes: &[u8], now: Instant) {
        self.report_due = true;
        self.echo = Some((serial, now));
        if message.number <= self.floor || message.number > self.ceiling {
            return;
        }
        if message.total > self.settings.largest {
            return; // The other end was told the limit.
        }
        if self.incoming.as_ref().is_none_or(|incoming| incoming.message.number < message.number) {
            self.incoming = Some(Receiving::new(message));
            // A newer message means that the other end has ours, or wants it no more.
            self.outgoing = None;
        }
        let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.message == message) else {
            return;
        };
        if incoming.take(index, bytes) {
            self.advanced = now;
            self.went_through(now);
        }
        if let Some(whole) = self.incoming.take_if(|incoming| incoming.is_done()) {
            self.taken = Some(message);
            self.floor = message.number;
            self.finished = Some((message, whole.into_bytes()));
        }
    }

    fn went_through(&mut self, now: Instant) {
        self.progress = now;
        self.unreadable.progress();
    }

    /// The whole message that arrived, once.
    pub(crate) fn finished(&mut self) -> Option<Whole> {
        self.finished.take()
    }

    /// Sends what may be sent now; `bytes` are those of the message that leaves.
    pub(crate) fn pump(&mut self, now: Instant, bytes: &[u8]) {
        if self.report_due || now >= self.heartbeat_due(now) {
            self.report(now);
        }
        if self.session.is_none() || self.is_parked(now) {
            return;
        }
        let Some(mut outgoing) = self.outgoing.take() else { return };
        while let Some(index) = outgoing.next(now, &mut self.pace, &self.rtt) {
            self.serial += 1;
            let bytes = &bytes[outgoing.message.range(index)];
            self.send(&Body::Data { message: outgoing.message, serial: self.serial, index, bytes });
            outgoing.sent(index, self.serial, now, &mut self.rtt);
        }
        self.outgoing = (!outgoing.is_done()).then_some(outgoing);
    }

    /// Says what arrived, and that this end is there.
    pub(crate) fn report(&mut self, now: Instant) {
        let mut report = match (&self.incoming, &self.taken) {
            (Some(incoming), _) => incoming.report(),
            (None, Some(taken)) => Report { number: taken.number, base: taken.chunks(), ..Report::default() },
            (None, None) => Report::default(),
        };
        if let Some((serial, since)) = self.echo {
            report.echo = serial;
            report.held = now.duration_since(since).as_micros().try_into().unwrap_or(u32::MAX);
        }
        report.unreadable = self.unreadable.here;
        report.computing = self.computing;
        self.send(&Body::Report(report));
        (self.reported, self.report_due) = (now, false);
    }

    fn send(&mut self, body: &Body<'_>) {
        let Some(session) = &mut self.session else { return };
        body.encode(&mut self.plain);
        let packet = session.seal(&self.plain);
        self.sent += packet.len() as u64;
        self.transport.send(packet);
    }

    /// Who is silent for long is not told that this end is there, unless it may wait for an answer.
    fn heartbeat_due(&self, now: Instant) -> Instant {
        let idle = self.is_parked(now) && !self.computing;
        let from = if idle { now } else { self.reported };
        from + self.settings.heartbeat
    }

    fn is_parked(&self, now: Instant) -> bool {
        self.parks && self.heard.is_none_or(|heard| now.duration_since(heard) > self.settings.silence)
    }

    /// When there is next something to send.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let heartbeat = self.heartbeat_due(now);
        let data = self.outgoing.as_ref().filter(|_| !self.is_parked(now));
        data.and_then(|outgoing| outgoing.due(&self.pace, &self.rtt))
            .map_or(heartbeat, |due| due.min(heartbeat))
    }

    /// Whether a message is on its way out.
    pub(crate) fn is_sending(&self) -> bool {
        self.outgoing.is_some()
    }

    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// When something last went through.
    pub(crate) fn progress(&self) -> Instant {
        self.progress
    }

    /// When the message under way last advanced, whatever the other end says of itself.
    pub(crate) fn advanced(&self) -> Instant {
        self.advanced
    }

    /// Packets that could not be read.
    pub(crate) fn unreadable(&self) -> &Unreadable {
        &self.unreadable
    }

    pub(crate) fn latency(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Bytes that left and that arrived.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Counts from now on: a call begins.
    pub(crate) fn start_clock(&mut self, now: Instant) {
        self.went_through(now);
        self.pace.revive();
    }
}
