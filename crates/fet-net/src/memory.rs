//! Transport within one process, for tests. It does to packets what a network or a hostile relay may do.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::transport::{Connection, Transport};

/// Faults that happen to packets. Probabilities are from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub repetition: f64,
    /// Probability that one bit of a packet is flipped.
    pub alteration: f64,
    /// Range of the delay of each packet; packets overtake each other if the range is wide.
    pub delay: Range<Duration>,
    /// Bytes per second in each direction; packets that are sent faster wait, in order.
    pub rate: Option<u64>,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Faults {
    /// Returns no faults.
    fn default() -> Self {
        Self {
            loss: 0.0,
            repetition: 0.0,
            alteration: 0.0,
            delay: Duration::ZERO..Duration::ZERO,
            rate: None,
            seed: 0,
        }
    }
}

/// One of two ends; see [`pair`].
#[derive(Debug, Clone)]
pub struct Memory {
    out: Arc<Channel>,
    back: Arc<Channel>,
}

/// Creates two ends: each receives the packets that the other sends.
pub fn pair(faults: &Faults) -> (Memory, Memory) {
    let channel = |salt: u64| Arc::new(Channel::new(faults.clone(), faults.seed ^ salt));
    let (there, back) = (channel(0x5851_F42D_4C95_7F2D), channel(0x1405_7B7E_F767_814F));
    let one = Memory { out: Arc::clone(&there), back: Arc::clone(&back) };
    (one, Memory { out: back, back: there })
}

impl Memory {
    /// Cuts both directions, or restores them. Packets in transit arrive.
    pub fn cut(&self, cut: bool) {
        self.out.cut.store(cut, Ordering::Relaxed);
        self.back.cut.store(cut, Ordering::Relaxed);
    }
}

impl Transport for Memory {
    fn send(&self, packet: Vec<u8>) {
        self.out.send(packet);
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        self.back.receive(until)
    }

    fn connection(&self) -> Connection {
        Connection::Up { warning: None }
    }
}

#[derive(Debug)]
struct Channel {
    faults: Faults,
    cut: AtomicBool,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Queue {
    packets: BTreeMap<(Instant, u64), Bytes>,
    count: u64,
    random: u64,
    /// Time at which all packets sent so far have left.
    left: Instant,
}

impl Channel {
    fn new(faults: Faults, random: u64) -> Self {
        let queue = Mutex::new(Queue { packets: BTreeMap::new(), count: 0, random, left: Instant::now() });
        Self { faults, cut: AtomicBool::new(false), queue, arrived: Condvar::new() }
    }

    fn send(&self, mut packet: Vec<u8>) {
        let mut queue = self.queue();
        if self.cut.load(Ordering::Relaxed) || queue.chance(self.faults.loss) {
            return;
        }
        if queue.chance(self.faults.alteration) && !packet.is_empty() {
            let at = queue.below(packet.len() as u64 * 8);
            packet[at as usize / 8] ^= 1 << (at % 8);
        }
        let packet = Bytes::from(packet);
        if queue.chance(self.faults.repetition) {
            queue.push(&self.faults, packet.clone());
        }
        queue.push(&self.faults, packet);
        self.arrived.notify_one();
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        let mut queue = self.queue();
        loop {
            let now = Instant::now();
            let first = queue.packets.first_key_value().map(|((when, _), _)| *when);
            if first.is_some_and(|when| when <= now) {
                return queue.packets.pop_first().map(|(_, packet)| packet);
            }
            if now >= until {
                return None;
            }
            let wait = first.map_or(until, |when| when.min(until)).saturating_duration_since(now);
            queue = self.arrived.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, faults: &Faults, packet: Bytes) {
        let spread = faults.delay.end.saturating_sub(faults.delay.start).as_micros() as u64;
        let late = faults.delay.start + Duration::from_micros(self.below(spread.max(1)));
        self.left = self.left.max(Instant::now());
        if let Some(rate) = faults.rate {
            self.left += Duration::from_secs_f64(packet.len() as f64 / rate as f64);
        }
        self.count += 1;
        self.packets.insert((self.left + late, self.count), packet);
    }

    fn chance(&mut self, probability: f64) -> bool {
        (self.below(1 << 53) as f64) < probability * (1_u64 << 53) as f64
    }

    /// Returns a number below `bound` by SplitMix64, which is not cryptographic.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }
}
