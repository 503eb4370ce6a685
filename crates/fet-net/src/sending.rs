//! Chunks of one outgoing message: those in transit, arrived or lost, and the number that may be in transit.
//!
//! Every report increases the number in transit and a loss halves it, as in TCP, so that repetitions do not
//! fill a slow path. A connection to a server queues packets without loss. The number therefore also stops to
//! grow, and is halved, when packets wait in a queue: a heartbeat would wait behind them. The bytes themselves
//! are stored elsewhere.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::rtt::Rtt;
use crate::wire::{Message, Report, WINDOW};

/// Number of chunks that may be in transit at the start; `LEAST` is the minimum.
const START: f64 = 2.0;
const LEAST: f64 = 1.0;
/// Minimum time in a queue that stops the growth of the number in transit, and minimum time that halves it.
const FULL: Duration = Duration::from_millis(500);
const CROWDED: Duration = Duration::from_secs(2);
/// Maximum number of doublings of the timeout.
const DOUBLINGS: u32 = 6;
/// Longest timeout that doubling leads to.
const LONGEST: Duration = Duration::from_secs(2);

#[derive(Debug)]
struct Slot {
    serial: u64,
    sent: Instant,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    UnderWay,
    Arrived,
    Lost,
}

/// Number of chunks that may be in transit; it outlives a message.
#[derive(Debug)]
pub(crate) struct Pace {
    allowed: f64,
    growing: bool,
    halved: Option<Instant>,
    doublings: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { allowed: START, growing: true, halved: None, doublings: 0 }
    }
}

impl Pace {
    /// Resets the timeout to that of a first loss, because the other end was heard again.
    pub(crate) fn revive(&mut self) {
        self.doublings = 0;
    }

    fn timeout(&self, rtt: &Rtt) -> Duration {
        (rtt.timeout() * (1 << self.doublings)).min(LONGEST.max(rtt.timeout()))
    }

    fn arrived(&mut self, now: Instant, rtt: &Rtt) {
        self.doublings = 0;
        let queued = rtt.queued();
        if queued >= CROWDED {
            self.lost(now, rtt, false);
        } else if queued < FULL {
            self.allowed += if self.growing { 1.0 } else { 1.0 / self.allowed };
            self.allowed = self.allowed.min(f64::from(WINDOW));
        }
    }

    /// Halves the number once for all losses of one round trip.
    fn lost(&mut self, now: Instant, rtt: &Rtt, timed_out: bool) {
        let round = rtt.smoothed().unwrap_or_default();
        if self.halved.is_none_or(|halved| now.duration_since(halved) > round) {
            (self.allowed, self.growing) = ((self.allowed / 2.0).max(LEAST), false);
            self.halved = Some(now);
            self.doublings = (self.doublings + u32::from(timed_out)).min(DOUBLINGS);
        }
    }
}

/// Message that is being sent.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) message: Message,
    /// All chunks before this one have arrived.
    base: u32,
    /// Chunks from `base` on that were sent at least once.
    slots: VecDeque<Slot>,
    /// Latest serial number that a report confirmed.
    confirmed: u64,
    /// Latest serial number that was sent.
    last: u64,
}

impl Sending {
    pub(crate) fn new(message: Message) -> Self {
        Self { message, base: 0, slots: VecDeque::new(), confirmed: 0, last: 0 }
    }

    /// Returns true if the other end has the whole message.
    pub(crate) fn is_done(&self) -> bool {
        self.base == self.message.chunks()
    }

    /// Takes a report. Returns true if another chunk has arrived.
    pub(crate) fn reported(&mut self, report: &Report, now: Instant, pace: &mut Pace, rtt: &mut Rtt) -> bool {
        let sent = self.base + self.slots.len() as u32;
        if report.number != self.message.number || report.base > sent {
            return false;
        }
        rtt.echoed(report.echo, Duration::from_micros(report.held.into()), now);
        let mut progress = false;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let index = self.base + at as u32;
            let beyond = index.wrapping_sub(report.base);
            let arrived = index < report.base || (beyond < 128 && report.beyond >> beyond & 1 == 1);
            if arrived && slot.state != State::Arrived {
                slot.state = State::Arrived;
                pace.arrived(now, rtt);
                progress = true;
            }
        }
        if report.echo <= self.last {
            self.confirmed = self.confirmed.max(report.echo);
        }
        while self.slots.front().is_some_and(|slot| slot.state == State::Arrived) {
            self.slots.pop_front();
            self.base += 1;
        }
        progress
    }

    /// Returns the chunk to send now, if one may be sent.
    pub(crate) fn next(&mut self, now: Instant, pace: &mut Pace, rtt: &Rtt) -> Option<u32> {
        self.find_losses(now, pace, rtt);
        let under_way = self.slots.iter().filter(|slot| slot.state == State::UnderWay).count();
        if under_way as f64 >= pace.allowed {
            return None;
        }
        if let Some(at) = self.slots.iter().position(|slot| slot.state == State::Lost) {
            return Some(self.base + at as u32);
        }
        let next = self.base + self.slots.len() as u32;
        (next < self.message.chunks() && next - self.base < WINDOW).then_some(next)
    }

    /// Notes that the chunk returned by [`Sending::next`] was sent.
    pub(crate) fn sent(&mut self, index: u32, serial: u64, now: Instant, rtt: &mut Rtt) {
        rtt.sent(serial, now);
        self.last = serial;
        let slot = Slot { serial, sent: now, state: State::UnderWay };
        match self.slots.get_mut((index - self.base) as usize) {
            Some(place) => *place = slot,
            None => self.slots.push_back(slot),
        }
    }

    /// Returns the time at which the next chunk may count as lost.
    pub(crate) fn due(&self, pace: &Pace, rtt: &Rtt) -> Option<Instant> {
        let waits = |slot: &&Slot| slot.state == State::UnderWay;
        self.slots.iter().filter(waits).map(|slot| slot.sent + self.patience(slot, pace, rtt)).min()
    }

    /// Counts all chunks in transit as lost, because a new session began.
    pub(crate) fn start_again(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.state == State::UnderWay) {
            slot.state = State::Lost;
        }
    }

    fn patience(&self, slot: &Slot, pace: &Pace, rtt: &Rtt) -> Duration {
        if slot.serial < self.confirmed { rtt.overtaken() } else { pace.timeout(rtt) }
    }

    fn find_losses(&mut self, now: Instant, pace: &mut Pace, rtt: &Rtt) {
        for at in 0..self.slots.len() {
            let slot = &self.slots[at];
            let overdue = slot.state == State::UnderWay
                && now.duration_since(slot.sent) >= self.patience(slot, pace, rtt);
            if overdue {
                let timed_out = slot.serial >= self.confirmed;
                self.slots[at].state = State::Lost;
                pace.lost(now, rtt, timed_out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
