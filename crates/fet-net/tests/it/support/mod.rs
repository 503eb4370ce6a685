//! Shared parts of the link tests: two parties that know each other, and the party's answers.

#![expect(clippy::unwrap_used, reason = "a test helper panics where a test would")]
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod server;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fet_net::{Answer, Caller, Connection, Keys, Local, Peer, Route, Service, Settings, Transport};

/// Two parties: the bank, which is the primary, and the shop.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) bank: Local,
    pub(crate) shop: Local,
    pub(crate) route: Route,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let name = |text: &str| text.parse().unwrap();
        Self {
            bank: Local::new(Keys::generate(), "bank 1"),
            shop: Local::new(Keys::generate(), "shop 1"),
            route: Route { run: name("run"), primary: name("bank"), party: name("shop") },
        }
    }

    pub(crate) fn caller(&self, transport: impl Transport + 'static, settings: Settings) -> Caller {
        let party = self.shop.keys.public();
        Caller::new(transport, self.bank.clone(), self.route.clone(), party, settings)
    }

    pub(crate) fn service(&self, transport: impl Transport + 'static, settings: Settings) -> Service {
        let primary = self.bank.keys.public();
        Service::new(transport, self.shop.clone(), self.route.clone(), primary, settings)
    }
}

/// Returns the restarted program: the same keys, another instance_id.
pub(crate) fn again(local: &Local) -> Local {
    let mut again = local.clone();
    again.instance_id = !local.instance_id;
    again.keys = Arc::clone(&local.keys);
    again
}

/// Returns times that suit a test.
pub(crate) fn quick() -> Settings {
    Settings {
        heartbeat: Duration::from_millis(100),
        silence: Duration::from_millis(1500),
        ..Settings::default()
    }
}

/// Answers with the request's bytes in reverse order, after a delay.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) requests: usize,
    pub(crate) begun: Vec<Peer>,
    pub(crate) refused: usize,
    pub(crate) takes: Duration,
}

impl Answer for Mirror {
    fn begins(&mut self, peer: &Peer) {
        self.begun.push(peer.clone());
    }

    fn answer(&mut self, mut request: Vec<u8>) -> Vec<u8> {
        self.requests += 1;
        std::thread::sleep(self.takes);
        request.reverse();
        request
    }

    fn refused(&mut self, _: &Peer, _: u16) {
        self.refused += 1;
    }
}

/// Serves on a separate thread while `run` runs.
pub(crate) fn running<A: Answer + Send>(mut service: Service, mut mirror: A, run: impl FnOnce()) -> A {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            service.serve(&mut mirror, &stop);
        });
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        if let Err(panic) = ran {
            std::panic::resume_unwind(panic);
        }
    });
    mirror
}

/// Transport that keeps a copy of everything that crosses it.
pub(crate) struct Tap<T> {
    inner: T,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl<T: Transport> Tap<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, seen: Arc::default() }
    }

    pub(crate) fn seen(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.seen)
    }
}

impl<T: Transport> Transport for Tap<T> {
    fn send(&self, packet: Vec<u8>) {
        self.seen.lock().unwrap().extend(&packet);
        self.inner.send(packet);
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        let packet = self.inner.receive(until)?;
        self.seen.lock().unwrap().extend(&packet);
        Some(packet)
    }

    fn connection(&self) -> Connection {
        self.inner.connection()
    }
}

/// Transport that keeps each packet that it sends.
pub(crate) struct Log<T> {
    inner: T,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl<T: Transport> Log<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, sent: Arc::default() }
    }

    pub(crate) fn sent(&self) -> Arc<Mutex<Vec<Vec<u8>>>> {
        Arc::clone(&self.sent)
    }
}

impl<T: Transport> Transport for Log<T> {
    fn send(&self, packet: Vec<u8>) {
        self.sent.lock().unwrap().push(packet.clone());
        self.inner.send(packet);
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        self.inner.receive(until)
    }

    fn connection(&self) -> Connection {
        self.inner.connection()
    }
}

/// Transport that flips a bit of each packet of more than 150 bytes while `alters` is set; heartbeats pass.
pub(crate) struct Forger<T> {
    inner: T,
    alters: Arc<AtomicBool>,
}

impl<T: Transport> Forger<T> {
    pub(crate) fn new(inner: T) -> (Self, Arc<AtomicBool>) {
        let alters = Arc::new(AtomicBool::new(false));
        (Self { inner, alters: Arc::clone(&alters) }, alters)
    }
}

impl<T: Transport> Transport for Forger<T> {
    fn send(&self, mut packet: Vec<u8>) {
        if packet.len() > 150 && self.alters.load(Ordering::Relaxed) {
            packet[100] ^= 1;
        }
        self.inner.send(packet);
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        self.inner.receive(until)
    }

    fn connection(&self) -> Connection {
        self.inner.connection()
    }
}

/// End that reaches several others, as a server reaches all subscribers of a subject.
pub(crate) struct Many<T>(pub(crate) Vec<T>);

impl<T: Transport> Transport for Many<T> {
    fn send(&self, packet: Vec<u8>) {
        for end in &self.0 {
            end.send(packet.clone());
        }
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        loop {
            let now = Instant::now();
            let found = self.0.iter().find_map(|end| end.receive(now));
            if found.is_some() || now >= until {
                return found;
            }
            std::thread::sleep(Duration::from_millis(1).min(until - now));
        }
    }

    fn connection(&self) -> Connection {
        self.0[0].connection()
    }
}

/// Returns a range of times, in milliseconds.
pub(crate) fn millis(from: u64, to: u64) -> std::ops::Range<Duration> {
    Duration::from_millis(from)..Duration::from_millis(to)
}
