//! Metrics in Prometheus' text format.

use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the classes of durations, in seconds.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Metrics of the service.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Vec<(&'static str, String)>, Counter>,
    rows: Counter,
    known_rows: Counter,
    seconds: Histogram,
    waiting: Gauge<i64, AtomicI64>,
    ready: Gauge<i64, AtomicI64>,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("fet_serve");
        let requests = Family::default();
        let (rows, known_rows) = (Counter::default(), Counter::default());
        let seconds = Histogram::new(SECONDS);
        let (waiting, ready) = (Gauge::default(), Gauge::default());
        registry.register("requests", "Requests for predictions, by their status", Family::clone(&requests));
        registry.register("rows", "Rows that were predicted", rows.clone());
        let help = "Rows that were predicted from the cache, without the parties";
        registry.register("cached_rows", help, known_rows.clone());
        let help = "Time from the end of a request to its answer, for requests that were predicted";
        registry.register("request_seconds", help, seconds.clone());
        registry.register("waiting", "Requests in the queue", waiting.clone());
        registry.register("ready", "1 if all needed parties have joined, otherwise 0", ready.clone());
        Self { registry, requests, rows, known_rows, seconds, waiting, ready }
    }

    /// Counts an answer with this status.
    pub(super) fn answered(&self, status: u16) {
        self.requests.get_or_create(&vec![("status", status.to_string())]).inc();
    }

    /// Counts predictions.
    pub(super) fn predicted(&self, rows: usize, time: Duration) {
        self.rows.inc_by(rows as u64);
        self.seconds.observe(time.as_secs_f64());
    }

    /// Counts predictions without the parties.
    pub(super) fn predicted_from_cache(&self, rows: u64) {
        self.known_rows.inc_by(rows);
    }

    pub(super) fn joined_queue(&self) {
        self.waiting.inc();
    }

    pub(super) fn left_queue(&self) {
        self.waiting.dec();
    }

    pub(super) fn set_ready(&self, ready: bool) {
        self.ready.set(i64::from(ready));
    }

    /// Returns the text for a scraper.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a string takes any text");
        text
    }
}
