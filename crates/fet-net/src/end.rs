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
    inbox: Inbox,
    outbox: Outbox,
    clocks: Clocks,
    report_due: bool,
    /// True if data waits while the other end is silent.
    pub(crate) parks: bool,
    /// True if this end computes; `other_computes` is the other end's report about itself.
    pub(crate) computing: bool,
    pub(crate) other_computes: bool,
    /// True if the other end has said that it ends.
    pub(crate) other_left: bool,
    unreadable: Unreadable,
    sent: u64,
    received: u64,
    plain: Vec<u8>,
    opened: Vec<u8>,
}

/// Messages that arrive.
struct Inbox {
    incoming: Option<Receiving>,
    /// Last message that arrived completely; `finished` holds it until it is fetched.
    taken: Option<Message>,
    finished: Option<CompleteMessage>,
    /// The end accepts message numbers above `floor` and up to `ceiling`.
    floor: u64,
    ceiling: u64,
    /// Serial number of the last data packet, and the time of its arrival.
    echo: Option<(u64, Instant)>,
}

/// Effect of a chunk on the messages at this end.
#[derive(Default)]
struct Arrival {
    /// True if the chunk is the first one of a newer message.
    begins: bool,
    /// True if the chunk had not arrived before.
    advances: bool,
}

impl Inbox {
    fn forget(&mut self) {
        (self.incoming, self.taken, self.finished, self.echo) = (None, None, None, None);
    }

    /// Takes a chunk of a message of at most `largest` bytes.
    fn take(&mut self, message: Message, index: u32, bytes: &[u8], largest: u64) -> Arrival {
        let accepted = message.number > self.floor && message.number <= self.ceiling;
        // The other end knows the largest message.
        if !accepted || message.total > largest {
            return Arrival::default();
        }
        let begins = self.incoming.as_ref().is_none_or(|incoming| incoming.message.number < message.number);
        if begins {
            self.incoming = Some(Receiving::new(message));
        }
        let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.message == message) else {
            return Arrival::default();
        };
        let advances = incoming.take(index, bytes);
        if let Some(whole) = self.incoming.take_if(|incoming| incoming.is_done()) {
            self.taken = Some(message);
            self.floor = message.number;
            self.finished = Some((message, whole.into_bytes()));
        }
        Arrival { begins, advances }
    }

    /// Returns a report of the chunks that arrived.
    fn report(&self, now: Instant) -> Report {
        let mut report = match (&self.incoming, &self.taken) {
            (Some(incoming), _) => incoming.report(),
            (None, Some(taken)) => Report { number: taken.number, base: taken.chunks(), ..Report::default() },
            (None, None) => Report::default(),
        };
        if let Some((serial, since)) = self.echo {
            report.echo = serial;
            report.held = now.duration_since(since).as_micros().try_into().unwrap_or(u32::MAX);
        }
        report
    }
}

/// Message that leaves, and the pace of its chunks.
#[derive(Default)]
struct Outbox {
    outgoing: Option<Sending>,
    pace: Pace,
    rtt: Rtt,
    /// Serial number of the last data packet.
    serial: u64,
}

impl Outbox {
    /// Sends the chunks of the message again, because a new session begins.
    fn start_again(&mut self) {
        self.pace = Pace::default();
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.start_again();
        }
    }

    /// Takes the other end's report. Returns true if it names chunks that had not been reported before.
    fn reported(&mut self, report: &Report, now: Instant) -> bool {
        let Self { outgoing, pace, rtt, .. } = self;
        outgoing.as_mut().is_some_and(|sending| sending.reported(report, now, pace, rtt))
    }

    /// Returns the index of a chunk that may leave now.
    fn next(&mut self, now: Instant) -> Option<(Message, u32)> {
        let outgoing = self.outgoing.as_mut()?;
        let index = outgoing.next(now, &mut self.pace, &self.rtt)?;
        self.serial += 1;
        Some((outgoing.message, index))
    }

    /// Notes that the chunk that [`Outbox::next`] returned has left.
    fn sent(&mut self, index: u32, now: Instant) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.sent(index, self.serial, now, &mut self.rtt);
        }
    }

    /// Returns the time at which the next chunk may leave.
    fn due(&self) -> Option<Instant> {
        self.outgoing.as_ref().and_then(|outgoing| outgoing.due(&self.pace, &self.rtt))
    }
}

/// Times of the last events at an end.
struct Clocks {
    reported: Instant,
    heard: Option<Instant>,
    progress: Instant,
    /// Time at which a chunk last arrived at either end, or at which a message was begun.
    advanced: Instant,
}

impl End {
    pub(crate) fn new(transport: Arc<dyn Transport>, settings: Settings) -> Self {
        let now = Instant::now();
        Self {
            transport,
            settings,
            session: None,
            inbox: Inbox {
                incoming: None,
                taken: None,
                finished: None,
                floor: 0,
                ceiling: u64::MAX,
                echo: None,
            },
            outbox: Outbox::default(),
            clocks: Clocks { reported: now, heard: None, progress: now, advanced: now },
            report_due: false,
            parks: false,
            computing: false,
            other_computes: false,
            other_left: false,
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
        self.outbox.start_again();
        self.report_due = true;
    }

    /// Forgets all messages, because the other end has forgotten them or is another process.
    pub(crate) fn forget(&mut self) {
        self.outbox.outgoing = None;
        self.inbox.forget();
        (self.computing, self.other_computes) = (false, false);
    }

    /// Accepts only the message with this number.
    pub(crate) fn accept_only(&mut self, number: u64) {
        (self.inbox.floor, self.inbox.ceiling) = (number - 1, number);
    }

    /// Returns the number of the last message that arrived completely, or 0.
    pub(crate) fn last_number(&self) -> u64 {
        self.inbox.floor
    }

    /// Begins to send a message, in place of an earlier one.
    pub(crate) fn begin(&mut self, message: Message) {
        self.outbox.outgoing = Some(Sending::new(message));
        self.clocks.progress = Instant::now();
        self.clocks.advanced = self.clocks.progress;
    }

    /// Opens a packet and takes its content. Returns true if the packet names this session.
    pub(crate) fn take(&mut self, packet: &[u8], now: Instant) -> bool {
        let Some(session) = &mut self.session else { return false };
        let mut opened = std::mem::take(&mut self.opened);
        let found = session.open(packet, &mut opened);
        self.unreadable.at_this_end = session.unreadable;
        if let PacketOutcome::Plain(length) = found {
            self.take_plain(&opened[..length], packet.len(), now);
        }
        self.opened = opened;
        found != PacketOutcome::Elsewhere
    }

    /// Takes the content of an authentic packet of `size` bytes.
    pub(crate) fn take_plain(&mut self, plain: &[u8], size: usize, now: Instant) {
        let pause = self.settings.heartbeat * 2;
        if self.clocks.heard.is_none_or(|heard| now.duration_since(heard) > pause) {
            self.outbox.pace.revive();
        }
        self.clocks.heard = Some(now);
        self.received += size as u64;
        match Body::decode(plain) {
            Some(Body::Data { message, serial, index, bytes }) => {
                self.take_chunk(message, serial, index, bytes, now);
            }
            Some(Body::Report(report)) => self.take_report(&report, now),
            Some(Body::Farewell) => self.other_left = true,
            // The other program has the same version but another format: its content counts as missing, not
            // as wrong.
            None => {}
        }
    }

    fn take_report(&mut self, report: &Report, now: Instant) {
        self.unreadable.at_other_end = report.unreadable;
        self.other_computes = report.computing;
        let arrived = self.outbox.reported(report, now);
        if arrived {
            self.clocks.advanced = now;
        }
        if arrived || report.computing {
            self.went_through(now);
        }
    }

    fn take_chunk(&mut self, message: Message, serial: u64, index: u32, bytes: &[u8], now: Instant) {
        self.report_due = true;
        self.inbox.echo = Some((serial, now));
        let Arrival { begins, advances } = self.inbox.take(message, index, bytes, self.settings.largest);
        if begins {
            // A newer message means that the other end has our message, or no longer wants it.
            self.outbox.outgoing = None;
        }
        if advances {
            self.clocks.advanced = now;
            self.went_through(now);
        }
    }

    fn went_through(&mut self, now: Instant) {
        self.clocks.progress = now;
        self.unreadable.progress();
    }

    /// Returns the complete message that arrived, once.
    pub(crate) fn finished(&mut self) -> Option<CompleteMessage> {
        self.inbox.finished.take()
    }

    /// Sends the packets that may be sent now; `bytes` are the bytes of the outgoing message.
    pub(crate) fn pump(&mut self, now: Instant, bytes: &[u8]) {
        if self.report_due || now >= self.heartbeat_due(now) {
            self.report(now);
        }
        if self.session.is_none() || self.is_parked(now) {
            return;
        }
        while let Some((message, index)) = self.outbox.next(now) {
            let bytes = &bytes[message.range(index)];
            self.send(&Body::Data { message, serial: self.outbox.serial, index, bytes });
            self.outbox.sent(index, now);
        }
        self.outbox.outgoing.take_if(|outgoing| outgoing.is_done());
    }

    /// Reports the chunks that arrived, and that this end is alive.
    pub(crate) fn report(&mut self, now: Instant) {
        let mut report = self.inbox.report(now);
        report.unreadable = self.unreadable.at_this_end;
        report.computing = self.computing;
        self.send(&Body::Report(report));
        (self.clocks.reported, self.report_due) = (now, false);
    }

    /// Tells the other end that this one ends, and waits for the packet to leave, for `limit` at most.
    pub(crate) fn leave(&mut self, limit: Duration) {
        if self.session.is_some() {
            self.send(&Body::Farewell);
            self.transport.flush(limit);
        }
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
        let from = if idle { now } else { self.clocks.reported };
        from + self.settings.heartbeat
    }

    fn is_parked(&self, now: Instant) -> bool {
        self.parks && self.clocks.heard.is_none_or(|heard| now.duration_since(heard) > self.settings.silence)
    }

    /// Returns the time at which the end next has something to send.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let heartbeat = self.heartbeat_due(now);
        let data = if self.is_parked(now) { None } else { self.outbox.due() };
        data.map_or(heartbeat, |due| due.min(heartbeat))
    }

    /// Returns true if a message is being sent.
    pub(crate) fn is_sending(&self) -> bool {
        self.outbox.outgoing.is_some()
    }

    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) fn heard(&self) -> Option<Instant> {
        self.clocks.heard
    }

    /// Returns the time of the last progress.
    pub(crate) fn progress(&self) -> Instant {
        self.clocks.progress
    }

    /// Returns the time at which the current message last advanced, regardless of the other end's reports
    /// about itself.
    pub(crate) fn advanced(&self) -> Instant {
        self.clocks.advanced
    }

    /// Returns the packets that could not be read.
    pub(crate) fn unreadable(&self) -> &Unreadable {
        &self.unreadable
    }

    pub(crate) fn latency(&self) -> Option<Duration> {
        self.outbox.rtt.smoothed()
    }

    /// Returns the number of bytes sent and received.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    /// Starts the clock of progress again, because a call begins.
    pub(crate) fn start_clock(&mut self, now: Instant) {
        self.went_through(now);
        self.outbox.pace.revive();
    }
}
