//! The party's end of a link: waits for requests, computes each once, and reports meanwhile that it is alive.
//!
//! The service listens forever: no forged packet and no primary of another version ends it.

mod post;
mod slot;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::heartbeat::Heartbeat;
use crate::identity::PublicIdentity;
use crate::names::Route;
use crate::settings::{Local, Peer, Settings};
use crate::state::State;
use crate::transport::{Connection, Transport};
use post::{Event, Post};
use slot::Slot;

/// Longest sleep of a thread, and so the longest delay of a stop or a repetition.
const DOZE: Duration = Duration::from_millis(25);
/// Maximum number of packets taken before the end sends again.
const BATCH: usize = 32;

/// A party's handling of requests.
pub trait Answer {
    /// Called by [`Service::serve`] when a program of the primary begins; its first request follows. The work
    /// that an earlier program had begun is dropped.
    fn begins(&mut self, peer: &Peer) {
        let _ = peer;
    }

    /// Returns the answer to a request; called once for each request.
    fn answer(&mut self, request: Vec<u8>) -> Vec<u8>;

    /// Called when a primary offered a protocol version that this end does not speak; `ours` is this end's newest
    /// version. A newer primary that also speaks `ours` then begins again with it.
    fn refused(&mut self, peer: &Peer, ours: u16) {
        let _ = (peer, ours);
    }
}

/// A party's handling of several programs of the primary at once.
pub trait Programs: Sync {
    /// Returns the handling of a program's requests. Called on the program's thread when the program begins;
    /// its first request follows. If `is_above` is true, the program is one too many, and its requests should
    /// be refused.
    fn begins(&self, peer: &Peer, is_above: bool) -> impl Answer;

    /// Called when a primary offered a protocol version that this end does not speak; `ours` is this end's newest
    /// version. A newer primary that also speaks `ours` then begins again with it.
    fn refused(&self, peer: &Peer, ours: u16) {
        let _ = (peer, ours);
    }
}

/// The party's end of a link to the primary.
pub struct Service {
    transport: Arc<dyn Transport>,
    post: Arc<Mutex<Post>>,
    arrived: Condvar,
    heartbeat: Heartbeat,
}

impl Service {
    /// Creates the party's end, which accepts only `primary` as the other end.
    pub fn new(
        transport: impl Transport + 'static,
        local: Local,
        route: Route,
        primary: PublicIdentity,
        settings: Settings,
    ) -> Self {
        let transport: Arc<dyn Transport> = Arc::new(transport);
        let post = Post::new(Arc::clone(&transport), local, route, primary, settings);
        Self {
            transport,
            post: Arc::new(Mutex::new(post)),
            arrived: Condvar::new(),
            heartbeat: Heartbeat::default(),
        }
    }

    /// Answers the requests of one program of the primary at a time on this thread, until `stop` is set, the
    /// transport has ended, or the relay denies this end its subjects. A program that begins takes the place
    /// of the former one. Another thread keeps the link alive meanwhile.
    ///
    /// A service may serve again later; requests that arrived and were not answered wait.
    pub fn serve(&mut self, answer: &mut dyn Answer, stop: &AtomicBool) {
        self.post().takes_turns = true;
        let this = &*self;
        this.carrying(|is_open| {
            while !stop.load(Ordering::Relaxed) && is_open() {
                match this.next() {
                    Some(Event::Begins { peer, .. }) => answer.begins(&peer),
                    Some(Event::Refused(peer, ours)) => answer.refused(&peer, ours),
                    Some(Event::Request { lane, number, bytes }) => {
                        let bytes = answer.answer(bytes);
                        this.post().answer(lane, number, bytes, Instant::now());
                    }
                    Some(Event::Ends(_)) | None => {}
                }
            }
        });
    }

    /// Answers the requests of several programs of the primary at once, each on a thread of its own, until
    /// `stop` is set, the transport has ended, or the relay denies this end its subjects.
    ///
    /// A program leaves when its [`crate::Caller`] is dropped. From `most` programs on, a program that begins
    /// takes the place of one that was silent for [`Settings::silence`], such as a killed one. If none was
    /// silent, up to `most` further programs begin, which are too many: `programs` should refuse their
    /// requests. A program that was silent for an hour is no longer answered.
    pub fn serve_each<P: Programs>(&mut self, most: usize, programs: &P, stop: &AtomicBool) {
        self.post().serve_at_once(most.max(1));
        let this = &*self;
        this.carrying(|is_open| {
            std::thread::scope(|scope| {
                let mut lanes = BTreeMap::new();
                let panicked = |lanes: &BTreeMap<_, LaneThread<'_>>| {
                    lanes.values().any(|lane| lane.thread.is_finished())
                };
                while !stop.load(Ordering::Relaxed) && is_open() && !panicked(&lanes) {
                    match this.next() {
                        Some(Event::Begins { lane, peer, is_above }) => {
                            let slot = Arc::new(Slot::default());
                            let requests = Arc::clone(&slot);
                            let serve = move || {
                                this.serve_lane(lane, &mut programs.begins(&peer, is_above), &requests)
                            };
                            lanes.insert(lane, LaneThread { slot, thread: scope.spawn(serve) });
                        }
                        Some(Event::Refused(peer, ours)) => programs.refused(&peer, ours),
                        Some(Event::Request { lane, number, bytes }) => {
                            if let Some(lane) = lanes.get(&lane) {
                                lane.slot.put(number, bytes);
                            }
                        }
                        Some(Event::Ends(lane)) => drop(lanes.remove(&lane)),
                        None => {}
                    }
                }
            });
        });
    }

    /// Answers the requests of one program until its lane is closed.
    fn serve_lane(&self, lane: u64, answer: &mut impl Answer, requests: &Slot) {
        while let Some((number, bytes)) = requests.take() {
            let bytes = answer.answer(bytes);
            self.post().answer(lane, number, bytes, Instant::now());
        }
    }

    /// Keeps the link alive on another thread while `run` runs. `run` gets a function that tells if the link
    /// is open.
    fn carrying(&self, run: impl FnOnce(&dyn Fn() -> bool)) {
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Needed if `run` panics, too: the scope waits for the other thread.
            let _end = SetOnDrop(&ended);
            let carrier = scope.spawn(|| self.carry(&ended));
            run(&|| !carrier.is_finished() && !self.transport.has_ended() && !self.is_denied());
        });
    }

    /// Returns the programs of the primary that the service answers, also while it serves.
    pub fn lanes(&self) -> Lanes {
        Lanes { post: Arc::clone(&self.post) }
    }

    /// Returns the state of the link.
    pub fn state(&self) -> State {
        self.post().state()
    }

    /// Returns a function that gives the state of the link at any time, also while the service serves.
    pub fn watch(&self) -> impl Fn() -> State + Send + 'static {
        let post = Arc::clone(&self.post);
        move || post.lock().unwrap_or_else(PoisonError::into_inner).state()
    }

    /// Returns the sign of life of the thread that carries packets while the service serves.
    pub fn heartbeat(&self) -> Heartbeat {
        self.heartbeat.clone()
    }

    /// Moves packets between the transport and the lanes until `ended` is set.
    fn carry(&self, ended: &AtomicBool) {
        let mut due = Instant::now();
        while !ended.load(Ordering::Relaxed) {
            let mut packet = self.transport.receive(due.min(Instant::now() + DOZE));
            let mut post = self.post();
            for _ in 0..BATCH {
                let Some(found) = packet else { break };
                let now = Instant::now();
                post.take(&found, now);
                packet = self.transport.receive(now);
            }
            if let Some(left) = packet {
                post.take(&left, Instant::now());
            }
            let now = Instant::now();
            post.pump(now);
            due = post.due(now);
            self.heartbeat.beat();
            if post.has_events() {
                self.arrived.notify_one();
            }
        }
    }

    fn is_denied(&self) -> bool {
        matches!(self.transport.connection(), Connection::Denied { .. })
    }

    fn next(&self) -> Option<Event> {
        let post = self.post();
        let waited = self.arrived.wait_timeout_while(post, DOZE, |post| !post.has_events());
        waited.unwrap_or_else(PoisonError::into_inner).0.event()
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Programs of the primary that a service answers, by their instance ids.
#[derive(Clone)]
pub struct Lanes {
    post: Arc<Mutex<Post>>,
}

impl Lanes {
    /// Ends the answers to a program. It learns this from its next request.
    pub fn close(&self, instance: u64) {
        self.post.lock().unwrap_or_else(PoisonError::into_inner).close(instance);
    }

    /// Returns the time since a program was last heard; `None` if the party computes for it, or does not
    /// answer it.
    pub fn silence(&self, instance: u64) -> Option<Duration> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner).silence(instance, Instant::now())
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lanes")
    }
}

/// Thread that answers one program, and the place for its next request.
struct LaneThread<'scope> {
    slot: Arc<Slot>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl Drop for LaneThread<'_> {
    /// Ends the thread after its current answer.
    fn drop(&mut self) {
        self.slot.close();
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Service: {}", self.state())
    }
}
