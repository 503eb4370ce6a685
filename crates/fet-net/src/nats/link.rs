//! One party's packets over the shared connection: one subject there, one back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Subject, Subscriber};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};

use super::{NatsError, Shared};
use crate::transport::{Connection, LARGEST_PACKET, Transport};

/// How long the server may take to hear of a subscription before packets are sent.
const SUBSCRIBE: Duration = Duration::from_secs(5);

/// The transport between the primary and one party.
pub struct NatsLink {
    publish: Subject,
    incoming: Mutex<Subscriber>,
    // Dropped after the subscription, which needs it.
    shared: Arc<Shared>,
    ended: AtomicBool,
}

impl NatsLink {
    pub(super) fn new(shared: Arc<Shared>, publish: String, subscribe: String) -> Result<Self, NatsError> {
        let subscribed = shared.runtime.block_on(async {
            let subscriber = shared.client.subscribe(subscribe).await.map_err(|_| NatsError::Ended)?;
            // A server that is away hears of it when it is back.
            let _ = tokio::time::timeout(SUBSCRIBE, shared.client.flush()).await;
            Ok(subscriber)
        })?;
        Ok(Self {
            publish: Subject::from(publish),
            incoming: Mutex::new(subscribed),
            shared,
            ended: AtomicBool::new(false),
        })
    }
}

impl Transport for NatsLink {
    fn send(&self, packet: Vec<u8>) {
        let client = &self.shared.client;
        if client.connection_state() != async_nats::connection::State::Connected {
            return; // What waits for a server that is away is late when it leaves.
        }
        // A queue that is full, or a packet larger than the server takes, is a packet lost.
        let _ = client.publish(self.publish.clone(), Bytes::from(packet)).now_or_never();
    }

    fn receive(&self, until: Instant) -> Option<Bytes> {
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = incoming.next().now_or_never() {
            if ready.is_none() {
                self.ended.store(true, Ordering::Relaxed);
                // The connection has ended for good: there is nothing to wait for but time.
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            return ready.map(|message| message.payload).filter(|packet| packet.len() <= LARGEST_PACKET);
        }
        if until <= Instant::now() {
            return None;
        }
        let next = async { tokio::time::timeout_at(until.into(), incoming.next()).await.ok().flatten() };
        self.shared.runtime.block_on(next).map(|message| message.payload)
    }

    fn connection(&self) -> Connection {
        self.shared.status.connection()
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
