//! Common part of both ends of a link: sends the chunks of one message, takes those of another, and reports.
//!
//! The caller and the service begin sessions and interpret complete messages.

mod unreadable;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::receiving::Receiving;
use crate::rtt::Rtt;
use crate::sending::{Pace, Sending};
use crate::session::{LARGEST_PLAIN, PacketOutcome, Session};
use crate::settings::Settings;
use crate::transport::Transport;
use crate::wire::{Body, Message, Report};
use unreadable::Unreadable;

/// Complete message.
pub(crate) type CompleteMessage = (Message, Vec<u8>);

/// One end of a link.
pub(crate) struct End {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) settings: Settings,
    session: Option<Session>,
    outgoing: Option<Sending>,
    incoming: Option<Receiving>,
    /// Last message that arrived completely; `finished` holds it until it is fetched.
    taken: Option<Message>,
    finished: Option<CompleteMessage>,
    /// The end accepts message numbers above `floor` and up to `ceiling`.
    pub(crate) floor: u64,
    pub(crate) ceiling: u64,
    /// True if data waits while the other end is silent.
    pub(crate) parks: bool,
    /// True if this end computes; `other_computes` is the other end's report about itself.
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
    /// Time at which a chunk last arrived at either end, or at which a message was begun.
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

    /// Continues in a new session; messages in transit stay.
    pub(crate) fn replace(&mut self, session: Session) {
        self.unreadable.session_ends();
        self.session = Some(session);
        self.pace = Pace::default();
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.start_again();
        }
        self.report_due = true;
    }

    /// Forgets all messages, because the other end has forgotten them or is another process.
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

    /// Opens a packet and takes its content. Returns true if the packet names this session.
    pub(crate) fn take(&mut self, packet: &[u8], now: Instant) -> bool {
        let Some(session) = &mut self.session else { return false };
        let mut opened = std::mem::take(&mut self.opened);
        let found = session.open(packet, &mut opened);
        self.unreadable.here = session.unreadable;
        if let PacketOutcome::Plain(length) = found {
            self.take_plain(&opened[..length], packet.len(), now);
        }
        self.opened = opened;
        found != PacketOutcome::Elsewhere
    }

    /// Takes the content of an authentic packet of `size` bytes.
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
            // The other program has the same version but another format: its content counts as missing, not
            // as wrong.
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
            return; // The other end knows the limit.
        }
        if self.incoming.as_ref().is_none_or(|incoming| incoming.message.number < message.number) {
            self.incoming = Some(Receiving::new(message));
            // A newer message means that the other end has our message, or no longer wants it.
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

    /// Returns the complete message that arrived, once.
    pub(crate) fn finished(&mut self) -> Option<CompleteMessage> {
        self.finished.take()
    }

    /// Sends the packets that may be sent now; `bytes` are the bytes of the outgoing message.
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

    /// Reports the chunks that arrived, and that this end is alive.
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

    /// Returns the time of the next heartbeat. If the other end has long been silent, there is none, unless
    /// it may wait for an answer.
    fn heartbeat_due(&self, now: Instant) -> Instant {
        let idle = self.is_parked(now) && !self.computing;
        let from = if idle { now } else { self.reported };
        from + self.settings.heartbeat
    }

    fn is_parked(&self, now: Instant) -> bool {
        self.parks && self.heard.is_none_or(|heard| now.duration_since(heard) > self.settings.silence)
    }

    /// Returns the time at which the end next has something to send.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let heartbeat = self.heartbeat_due(now);
        let data = self.outgoing.as_ref().filter(|_| !self.is_parked(now));
        data.and_then(|outgoing| outgoing.due(&self.pace, &self.rtt))
            .map_or(heartbeat, |due| due.min(heartbeat))
    }

    /// Returns true if a message is being sent.
    pub(crate) fn is_sending(&self) -> bool {
        self.outgoing.is_some()
    }

    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Returns the time of the last progress.
    pub(crate) fn progress(&self) -> Instant {
        self.progress
    }

    /// Returns the time at which the current message last advanced, regardless of the other end's reports
    /// about itself.
    pub(crate) fn advanced(&self) -> Instant {
        self.advanced
    }

    /// Returns the packets that could not be read.
    pub(crate) fn unreadable(&self) -> &Unreadable {
        &self.unreadable
    }

    pub(crate) fn latency(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Returns the number of bytes sent and received.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Starts the clock of progress again, because a call begins.
    pub(crate) fn start_clock(&mut self, now: Instant) {
        self.went_through(now);
        self.pace.revive();
    }
}
