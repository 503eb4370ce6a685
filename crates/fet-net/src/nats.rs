//! Transport over a NATS server that all parties dial.
//!
//! The transport uses only publish and subscribe: a packet without a subscriber is lost. The server sees
//! the communicating parties, sizes and times; it needs no other trust. It authenticates the same
//! identity that begins sessions.

mod errors;
mod link;
mod server;
mod status;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Auth, ConnectOptions};

pub use errors::NatsError;
pub use link::NatsLink;
pub use server::{Server, innermost_reason, tls_error};

use crate::identity::Keys;
use crate::names::Route;
use crate::transport::Connection;
use crate::wire::LARGEST_SENT;
use link::Shared;
use status::Status;

/// Maximum number of packets that wait for a slow link; further packets are dropped.
const WAITING: usize = 1024;
/// Maximum time of one attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Number of refusals after which a certificate counts as wrong; until then, it may have been altered in
/// transit.
const REFUSALS: u32 = 3;
/// Pause between two attempts to reach an absent server.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause before another attempt to restore a broken connection.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Connection to a server, shared by the links of a process. It reconnects forever.
#[derive(Clone)]
pub struct Hub(Arc<Shared>);

impl Hub {
    /// Connects to the server as the identity of `keys`. If the server cannot be reached, tries again for
    /// `wait`.
    ///
    /// # Errors
    /// If a file cannot be used, the authority does not vouch for the server, the server does not know the
    /// identity, its packet limit is too low, or it cannot be reached.
    pub fn connect(server: &Server, keys: &Arc<Keys>, wait: Duration) -> Result<Self, NatsError> {
        Self::connect_while(server, keys, wait, &mut |_| true)
    }

    /// Like [`Hub::connect`], and calls `goes_on` with the error of each attempt that may be repeated. The wait ends with this
    /// error if `goes_on` returns false.
    ///
    /// # Errors
    /// As [`Hub::connect`].
    pub fn connect_while(
        server: &Server,
        keys: &Arc<Keys>,
        wait: Duration,
        goes_on: &mut dyn FnMut(&NatsError) -> bool,
    ) -> Result<Self, NatsError> {
        server.check_files()?;
        let addresses = server.addresses()?;
        // An error means that the program has already chosen another provider, which suffices.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fet-net")
            .enable_all()
            .build()
            .map_err(NatsError::Thread)?;
        let status = Arc::new(Status::default());
        let began = Instant::now();
        let mut refusals = 0;
        loop {
            let options = options(server, keys, &status);
            match runtime.block_on(options.connect(addresses.as_slice())) {
                Ok(client) => {
                    let limit = client.max_payload();
                    if limit < LARGEST_SENT {
                        let url = server.url.clone();
                        return Err(NatsError::SmallPayload { url, limit, needed: LARGEST_SENT });
                    }
                    return Ok(Self(Arc::new(Shared { client, status, runtime })));
                }
                Err(error) => {
                    let error = server.refused(keys, &error);
                    refusals += u32::from(matches!(error, NatsError::Certificate { .. }));
                    let passes = match error {
                        NatsError::Unreachable { .. } => began.elapsed() + PAUSE < wait,
                        NatsError::Certificate { .. } => refusals < REFUSALS,
                        _ => false,
                    };
                    if !passes || !goes_on(&error) {
                        return Err(error);
                    }
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Returns the primary's transport to the party of a route.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn to_party(&self, route: &Route) -> Result<NatsLink, NatsError> {
        self.link(route.to_party(), route.from_party())
    }

    /// Returns the party's transport to the primary of a route.
    ///
    /// # Errors
    /// If the connection has ended.
    pub fn to_primary(&self, route: &Route) -> Result<NatsLink, NatsError> {
        self.link(route.from_party(), route.to_party())
    }

    /// Returns the state of the connection.
    pub fn connection(&self) -> Connection {
        self.0.status.connection()
    }

    fn link(&self, publish: String, subscribe: String) -> Result<NatsLink, NatsError> {
        NatsLink::new(Arc::clone(&self.0), publish, subscribe)
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hub: {}", self.connection())
    }
}

fn options(server: &Server, keys: &Arc<Keys>, status: &Arc<Status>) -> ConnectOptions {
    let keys = Arc::clone(keys);
    let signed = move |nonce: Vec<u8>| {
        let keys = Arc::clone(&keys);
        async move {
            let mut auth = Auth::new();
            auth.nkey = Some(keys.public().to_string());
            auth.signature = Some(keys.sign(&nonce).to_vec());
            Ok(auth)
        }
    };
    let status = Arc::clone(status);
    let mut options = ConnectOptions::with_auth_callback(signed)
        .require_tls(server.requires_tls())
        .connection_timeout(ATTEMPT)
        .subscription_capacity(WAITING)
        .ignore_discovered_servers()
        .no_echo()
        .ping_interval(Duration::from_secs(10))
        .reconnect_delay_callback(|attempts| {
            // The first attempt is immediate.
            let doubled = 100 << attempts.saturating_sub(2).min(10);
            if attempts <= 1 { Duration::ZERO } else { Duration::from_millis(doubled).min(LONGEST_PAUSE) }
        })
        .event_callback(move |event| {
            status.note(&event);
            std::future::ready(())
        });
    if let Some(ca) = &server.ca {
        options = options.add_root_certificates(ca.clone());
    }
    if let Some((certificate, key)) = &server.certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    options
}
