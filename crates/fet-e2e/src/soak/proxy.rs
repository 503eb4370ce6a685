//! Proxy between a member and the server. It delays, cuts or throttles the connection, flips bits, and
//! repeats, reorders, loses or records bytes. The proxy does not interpret the bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Interval between two checks for the end of the proxy.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum number of bytes that the proxy forwards at once.
const PIECE: usize = 16 << 10;

/// Single disturbance of the bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trick {
    /// Both directions of the connection end.
    Cut,
    /// One bit is flipped.
    Flip(u8),
    /// The piece is sent twice.
    Repeat,
    /// The piece is sent after the next piece.
    Swap,
    /// A piece is lost.
    Lose,
    /// The direction pauses for the given number of milliseconds.
    Stall(u64),
}

/// Behaviour of a proxy.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProxyPlan {
    /// Delay of each byte.
    pub(crate) delay: Duration,
    /// Bytes per second in each direction; 0 for no limit.
    pub(crate) rate: u64,
    /// Disturbances of the direction to the server, each after a number of bytes.
    pub(crate) up: Vec<(u64, Trick)>,
    /// Disturbances of the direction from the server.
    pub(crate) down: Vec<(u64, Trick)>,
    /// True if the proxy records all bytes.
    pub(crate) record: bool,
}

impl ProxyPlan {
    /// Draws `count` disturbances from `tricks` at random positions, with a mean distance of `mean` bytes.
    pub(crate) fn drawn(rng: &mut ChaCha8Rng, tricks: &[Trick], count: usize, mean: u64) -> Self {
        let mut plan = Self::default();
        let (mut up, mut down) = (0, 0);
        for _ in 0..count {
            let trick = match tricks[rng.random_range(0..tricks.len())] {
                Trick::Flip(_) => Trick::Flip(rng.random_range(0..8)),
                trick => trick,
            };
            let distance = rng.random_range(0..2 * mean);
            if rng.random_range(0..2) == 0 {
                up += distance;
                plan.up.push((up, trick));
            } else {
                down += distance;
                plan.down.push((down, trick));
            }
        }
        plan
    }
}

/// Shared state of the threads of a proxy.
#[derive(Debug)]
struct Shared {
    plan: ProxyPlan,
    server: u16,
    /// Number of bytes of each direction, over all connections.
    passed: [AtomicU64; 2],
    /// Number of completed disturbances of each direction.
    done: [Mutex<usize>; 2],
    /// True if the proxy no longer disturbs the bytes.
    healed: AtomicBool,
    /// True if the proxy forwards no connection.
    closed: AtomicBool,
    ended: AtomicBool,
    /// Recorded bytes by connection and direction.
    records: Mutex<Vec<Arc<Mutex<Vec<u8>>>>>,
    connections: Mutex<Vec<TcpStream>>,
}

/// Proxy that ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy for the server at a port of this machine.
    pub(crate) fn start(server: u16, plan: ProxyPlan) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            plan,
            server,
            passed: Default::default(),
            done: Default::default(),
            healed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            records: Mutex::default(),
            connections: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            while !own.ended.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) if !own.closed.load(Ordering::Relaxed) => connect(&own, stream),
                    Ok(_) => {}
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        Ok(Self { shared, port, acceptor: Some(acceptor) })
    }

    pub(crate) fn plan(&self) -> &ProxyPlan {
        &self.shared.plan
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Stops all disturbances.
    pub(crate) fn heal(&self) {
        self.shared.healed.store(true, Ordering::Relaxed);
        self.shared.closed.store(false, Ordering::Relaxed);
    }

    /// Ends all connections, and accepts none until [`heal`](Self::heal).
    pub(crate) fn close(&self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.shared.cut();
    }

    /// Returns the number of bytes to the server and from the server.
    pub(crate) fn passed(&self) -> [u64; 2] {
        [0, 1].map(|at: usize| self.shared.passed[at].load(Ordering::Relaxed))
    }

    /// Returns the number of completed disturbances.
    pub(crate) fn tricks(&self) -> usize {
        self.shared.done.iter().map(|done| *locked(done)).sum()
    }

    /// Returns the recorded bytes by connection and direction.
    pub(crate) fn records(&self) -> Vec<Vec<u8>> {
        locked(&self.shared.records).iter().map(|record| locked(record).clone()).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.shared.cut();
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn cut(&self) {
        for stream in locked(&self.connections).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Counts the next `count` bytes. Returns the number of bytes before them, and the disturbance that is
    /// due within them with its offset.
    fn due(&self, direction: usize, count: u64) -> (u64, Option<(usize, Trick)>) {
        let mut done = locked(&self.done[direction]);
        let before = self.passed[direction].fetch_add(count, Ordering::Relaxed);
        if self.healed.load(Ordering::Relaxed) {
            return (before, None);
        }
        let tricks = if direction == 0 { &self.plan.up } else { &self.plan.down };
        let Some(&(at, trick)) = tricks.get(*done).filter(|(at, _)| *at < before + count) else {
            return (before, None);
        };
        *done += 1;
        (before, Some((usize::try_from(at.saturating_sub(before)).unwrap_or(0), trick)))
    }
}

fn connect(shared: &Arc<Shared>, client: TcpStream) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.server)) else { return };
    for stream in [&client, &server] {
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(LOOK));
        if let Ok(stream) = stream.try_clone() {
            locked(&shared.connections).push(stream);
        }
    }
    let (Ok(client_again), Ok(server_again)) = (client.try_clone(), server.try_clone()) else { return };
    for (direction, from, to) in [(0, client, server), (1, server_again, client_again)] {
        let (sender, receiver) = channel();
        let record = Arc::default();
        locked(&shared.records).push(Arc::clone(&record));
        let (reading, writing) = (Arc::clone(shared), Arc::clone(shared));
        std::thread::spawn(move || read(&reading, direction, from, &sender));
        std::thread::spawn(move || write(&writing, to, &receiver, &record));
    }
}

/// Reads one direction of a connection, and sends each piece with its time to the writer.
fn read(shared: &Shared, direction: usize, mut from: TcpStream, to: &Sender<(Instant, Vec<u8>)>) {
    let mut held: Option<Vec<u8>> = None;
    let mut buffer = vec![0; PIECE];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if shared.ended.load(Ordering::Relaxed) {
                    break;
                }
                // No piece follows, so the proxy sends the held piece without a swap.
                if held.take().is_some_and(|bytes| to.send((Instant::now(), bytes)).is_err()) {
                    break;
                }
                continue;
            }
            Err(_) => break,
        };
        let mut bytes = buffer[..count].to_vec();
        let (_, due) = shared.due(direction, count as u64);
        let mut pieces = Vec::new();
        match due {
            Some((_, Trick::Cut)) => {
                let _ = from.shutdown(Shutdown::Both);
                break;
            }
            Some((at, Trick::Flip(bit))) => {
                let at = at.min(count - 1);
                bytes[at] ^= 1 << bit;
            }
            Some((_, Trick::Repeat)) => pieces.push(bytes.clone()),
            Some((_, Trick::Swap)) => {
                held = Some(bytes);
                continue;
            }
            Some((at, Trick::Lose)) => drop(bytes.drain(at.min(count - 1)..)),
            Some((_, Trick::Stall(milliseconds))) => {
                std::thread::sleep(Duration::from_millis(milliseconds));
            }
            None => {}
        }
        pieces.push(bytes);
        pieces.extend(held.take());
        let delay = if shared.healed.load(Ordering::Relaxed) { Duration::ZERO } else { shared.plan.delay };
        let when = Instant::now() + delay;
        if pieces.into_iter().any(|piece| to.send((when, piece)).is_err()) {
            break;
        }
    }
}

/// Writes each piece from the reader at its time.
fn write(shared: &Shared, mut to: TcpStream, from: &Receiver<(Instant, Vec<u8>)>, record: &Mutex<Vec<u8>>) {
    while let Ok((when, bytes)) = from.recv() {
        std::thread::sleep(when.saturating_duration_since(Instant::now()));
        if shared.plan.record {
            locked(record).extend(&bytes);
        }
        if to.write_all(&bytes).is_err() {
            break;
        }
        if shared.plan.rate > 0 && !shared.healed.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_secs_f64(bytes.len() as f64 / shared.plan.rate as f64));
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
