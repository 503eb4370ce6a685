//! The party's end of a link: waits for requests, computes each once, and reports meanwhile that it is alive.
//!
//! The service listens forever: no forged packet and no primary of another version ends it.

mod post;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::heartbeat::Heartbeat;
use crate::identity::PublicIdentity;
use crate::names::Route;
use crate::settings::{Local, Peer, Settings};
use crate::state::State;
use crate::transport::{Connection, Transport};
use post::{Event, Post};

/// Longest sleep of a thread, and so the longest delay of a stop or a repetition.
const DOZE: Duration = Duration::from_millis(25);
/// Maximum number of packets taken before the end sends again.
const BATCH: usize = 32;

/// A party's handling of requests.
pub trait Answer {
    /// Called when a primary begins; its first request follows. The work that an earlier instance had
    /// begun is dropped.
    fn begins(&mut self, peer: &Peer);

    /// Returns the answer to a request; called once for each request.
    fn answer(&mut self, request: Vec<u8>) -> Vec<u8>;

    /// Called when a primary of another protocol version was refused; `ours` is this end's version.
    fn refused(&mut self, peer: &Peer, ours: u16) {
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

    /// Answers requests on this thread until `stop` is set, the transport has ended, or the relay denies this
    /// end its subjects. Another thread keeps the link alive meanwhile.
    ///
    /// A service may serve again later; requests that arrived and were not answered wait.
    pub fn serve(&mut self, answer: &mut dyn Answer, stop: &AtomicBool) {
        let ended = AtomicBool::new(false);
        let this = &*self;
        std::thread::scope(|scope| {
            // Needed if `answer` panics, too: the scope waits for the other thread.
            let _end = SetOnDrop(&ended);
            let carrier = scope.spawn(|| this.carry(&ended));
            let open = || !this.transport.has_ended() && !this.is_denied();
            while !stop.load(Ordering::Relaxed) && !carrier.is_finished() && open() {
                let Some(event) = this.next() else { continue };
                match event {
                    Event::Begins(peer) => answer.begins(&peer),
                    Event::Refused(peer, ours) => answer.refused(&peer, ours),
                    Event::Request { epoch, number, bytes } => {
                        let bytes = answer.answer(bytes);
                        this.post().answer(epoch, number, bytes, Instant::now());
                    }
                }
            }
        });
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
