//! Packets of one party over the shared connection: one subject in each direction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, Subject, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::errors::NatsError;
use super::status::Status;
use crate::transport::{Connection, LARGEST_PACKET, Transport};
use crate::wire::LARGEST_SENT;

/// Maximum time for a subscription to reach the server before packets are sent.
const SUBSCRIBE: Duration = Duration::from_secs(5);

/// Time without a packet after which the link subscribes again. A path without TLS may have altered the
/// subscription, so that the server has none or a wrong one, and no error shows this.
const SILENCE: Duration = Duration::from_secs(10);

/// State that links share; the runtime ends with the last link.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) status: Arc<Status>,
    pub(super) runtime: tokio::runtime::Runtime,
}

/// Transport between the primary and one party.
pub struct NatsLink {
    publish: Subject,
    subscribe: Subject,
    incoming: Mutex<Incoming>,
    // Dropped after the subscription, which needs it.
    shared: Arc<Shared>,
    ended: AtomicBool,
}

struct Incoming {
    subscriber: Subscriber,
    /// Time at which a packet last arrived, or at which the link subscribed.
    heard: Instant,
}

impl NatsLink {
    pub(super) fn new(shared: Arc<Shared>, publish: String, subscribe: String) -> Result<Self, NatsError> {
        let subscribe = Subject::from(subscribe);
        let subscriber = shared.runtime.block_on(async {
            let subscriber =
                shared.client.subscribe(subscribe.clone()).await.map_err(|_| NatsError::Ended)?;
            // An absent server receives the subscription when it is back.
            let _ = tokio::time::timeout(SUBSCRIBE, shared.client.flush()).await;
            Ok(subscriber)
        })?;
        Ok(Self {
            publish: Subject::from(publish),
            subscribe,
            incoming: Mutex::new(Incoming { subscriber, heard: Instant::now() }),
            shared,
            ended: AtomicBool::new(false),
        })
    }

    /// Subscribes again after a long silence. Packets that arrive meanwhile arrive twice, or not at all.
    fn renew(&self, incoming: &mut Incoming) {
        let up = self.shared.client.connection_state() == async_nats::connection::State::Connected;
        if incoming.heard.elapsed() < SILENCE || !up {
            return;
        }
        incoming.heard = Instant::now();
        // If the queue is full, the link tries again after the next silence.
        if let Some(Ok(again)) = self.shared.client.subscribe(self.subscribe.clone()).now_or_never() {
            incoming.subscriber = again;
        }
    }
}

impl Transport for NatsLink {
    fn send(&self, packet: Vec<u8>) {
        let client = &self.shared.client;
        if client.connection_state() != async_nats::connection::State::Connected {
            return; // A packet that waits for an absent server would be late.
        }
        // A full queue, or a packet above the server's limit, means a lost packet.
        let _ = client.publish(self.publish.clone(), Bytes::from(packet)).now_or_never();
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = incoming.subscriber.next().now_or_never() {
            if ready.is_none() {
                self.ended.store(true, Ordering::Relaxed);
                // The connection has ended for good: only wait for the time to pass.
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            incoming.heard = Instant::now();
            return ready.map(|message| message.payload).filter(|packet| packet.len() <= LARGEST_PACKET);
        }
        self.renew(&mut incoming);
        if until <= Instant::now() {
            return None;
        }
        let subscriber = &mut incoming.subscriber;
        let next = async { tokio::time::timeout_at(until.into(), subscriber.next()).await.ok().flatten() };
        let found = self.shared.runtime.block_on(next).map(|message| message.payload)?;
        incoming.heard = Instant::now();
        Some(found)
    }

    fn connection(&self) -> Connection {
        let limit = self.shared.client.max_payload();
        match self.shared.status.of_link([self.publish.as_str(), self.subscribe.as_str()]) {
            // The server restarted with other settings.
            Connection::Up { .. } if limit < LARGEST_SENT => Connection::Up {
                warning: Some(format!(
                    "its `max_payload` is now {limit} bytes, but packets have up to {LARGEST_SENT}: have its operator set \
                     256KB or more"
                )),
            },
            found => found,
        }
    }

    fn flush(&self, limit: Duration) {
        let client = &self.shared.client;
        if client.connection_state() == async_nats::connection::State::Connected {
            let flushed = async { drop(tokio::time::timeout(limit, client.flush()).await) };
            self.shared.runtime.block_on(flushed);
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for NatsLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NatsLink to {}: {}", self.publish, self.connection())
    }
}
