//! Monitor of the primary's run with parties elsewhere: its epochs and its links, for Prometheus.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fet_net::{Connection, State};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::encoder::{self, Encoder};
use super::remote::PartyLink;
use crate::http_server::{HttpServer, METRICS, local_only};
use fet_io::input::input;

/// Monitor of a run, which stops when it is dropped.
pub(super) struct RunMonitor {
    progress: Arc<RunProgress>,
    server: Option<HttpServer>,
}

/// Progress of a run.
#[derive(Default)]
pub(super) struct RunProgress(Mutex<Seen>);

/// State of the run at this moment.
#[derive(Default)]
struct Seen {
    /// Links to the parties, once they have joined.
    links: Vec<PartyLink>,
    /// Finished epochs, and all epochs.
    epochs: Option<(usize, usize)>,
}

impl RunProgress {
    /// Adds the links of parties that have joined.
    pub(super) fn joined(&self, links: &[PartyLink]) {
        self.seen().links = links.to_vec();
    }

    /// Sets the number of finished epochs.
    pub(super) fn finished(&self, epoch: usize, of: usize) {
        self.seen().epochs = Some((epoch, of));
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunMonitor {
    /// Starts the monitor of a run.
    ///
    /// # Errors
    /// Fails if other machines reach the address, or if it is taken.
    pub(super) fn start(address: SocketAddr) -> anyhow::Result<Self> {
        let refuse = |problem: &dyn fmt::Display| input(format!("--monitor {address}: {problem}"));
        if !address.ip().is_loopback() {
            return Err(refuse(&"other machines reach this address; use 127.0.0.1"));
        }
        let listener = TcpListener::bind(address).map_err(|error| refuse(&error))?;
        let progress = Arc::<RunProgress>::default();
        let server = HttpServer::start(listener, routes(&progress, address))?;
        Ok(Self { progress, server: Some(server) })
    }

    pub(super) fn progress(&self) -> &RunProgress {
        &self.progress
    }
}

impl Drop for RunMonitor {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(std::future::ready(()));
        }
    }
}

fn routes(progress: &Arc<RunProgress>, address: SocketAddr) -> Router {
    let mut registry = Registry::with_prefix("fet_run");
    encoder::register_build(&mut registry);
    registry.register_collector(Box::new(Export(Arc::clone(progress))));
    let registry = Arc::new(registry);
    let routes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(async move || metrics(&registry)));
    local_only(routes, address.ip())
}

fn metrics(registry: &Registry) -> Response {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => ([(CONTENT_TYPE, METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Metrics that follow from the run at the time of a request. Their label is the name of a party in the roster.
struct Export(Arc<RunProgress>);

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Export of a run")
    }
}

impl Collector for Export {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let seen = self.0.seen();
        let mut out = Encoder::new(encoder);
        let (done, all) = seen.epochs.unzip();
        out.known_gauge("epochs", "Finished epochs of the run", done.map(|done| done as f64))?;
        out.known_gauge("epochs_planned", "Epochs of the whole run", all.map(|all| all as f64))?;
        let links: Vec<(&str, State)> =
            seen.links.iter().map(|link| (link.name.as_str(), link.state())).collect();
        let known = |value: fn(&State) -> Option<f64>| {
            links.iter().filter_map(move |(name, state)| Some((name.to_string(), value(state)?)))
        };
        let count = |value: fn(&State) -> u64| {
            links.iter().map(move |(name, state)| (name.to_string(), value(state)))
        };
        let help = "1 if the link to the party works, otherwise 0";
        out.gauges("link_up", help, "party", known(|state| Some(f64::from(u8::from(is_up(state))))))?;
        let heard = known(|state| state.heard.map(|heard| heard.as_secs_f64()));
        out.gauges("link_heard_seconds", "Time since the party was last heard", "party", heard)?;
        let latency = known(|state| state.latency.map(|latency| latency.as_secs_f64()));
        out.gauges("link_latency_seconds", "Round-trip time of a packet to the party", "party", latency)?;
        let help = "Bytes sent to the party, with repetitions and overhead";
        out.counters("link_sent_bytes", help, "party", count(|state| state.sent))?;
        let help = "Authentic bytes received from the party";
        out.counters("link_received_bytes", help, "party", count(|state| state.received))
    }
}

fn is_up(state: &State) -> bool {
    state.connection == (Connection::Up { warning: None }) && state.objection.is_none()
}
