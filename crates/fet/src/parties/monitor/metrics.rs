//! Counts of this process: requests, refusals and sessions, for Prometheus and for the operator's page.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds of the classes of durations, in seconds.
const SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];
/// Number of refusals that the page shows.
const RECENT: usize = 30;
/// Longest shown reason of a refusal, in characters.
const LONGEST_REASON: usize = 400;

/// Name of a kind of request. The program has a fixed number of them, so that Prometheus stores a fixed number of series.
type ByRequest = [(&'static str, &'static str); 1];

/// Counts of this process. Threads share one value.
#[derive(Debug, Default)]
pub(crate) struct PartyMetrics {
    requests: Family<ByRequest, Counter>,
    refusals: Family<ByRequest, Counter>,
    seconds: Durations,
    linked: Counter,
    sessions: Mutex<Sessions>,
    recent: Mutex<VecDeque<RecentRefusal>>,
}

/// Durations by the kind of request.
#[derive(Debug)]
struct Durations(Family<ByRequest, Histogram, fn() -> Histogram>);

impl Default for Durations {
    fn default() -> Self {
        Self(Family::new_with_constructor(|| Histogram::new(SECONDS)))
    }
}

/// Open sessions by their number.
#[derive(Debug, Default)]
struct Sessions {
    last: u64,
    open: BTreeMap<u64, OpenSession>,
}

/// Session of a program of the primary.
#[derive(Debug, Clone)]
pub(super) struct OpenSession {
    /// Name and version of the program, as it states them.
    pub(super) program: String,
    /// Purpose: "a run" or "predictions".
    pub(super) purpose: &'static str,
    /// Id of the run.
    pub(super) run: String,
    pub(super) since: SystemTime,
    /// Current activity.
    pub(super) doing: String,
}

/// Refusal with its reason.
#[derive(Debug, Clone)]
pub(super) struct RecentRefusal {
    pub(super) time: SystemTime,
    pub(super) request: &'static str,
    pub(super) reason: String,
}

/// Open session, which closes when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    metrics: Arc<PartyMetrics>,
    number: u64,
}

impl SessionGuard {
    /// Sets the current activity of the session.
    pub(crate) fn does(&self, what: &str) {
        if let Some(session) = lock(&self.metrics.sessions).open.get_mut(&self.number) {
            session.doing = what.to_string();
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        lock(&self.metrics.sessions).open.remove(&self.number);
    }
}

impl PartyMetrics {
    /// Counts an answered request, by its kind.
    pub(crate) fn answered(&self, request: &'static str, time: Duration) {
        let labels = [("request", request)];
        self.requests.get_or_create(&labels).inc();
        self.seconds.0.get_or_create(&labels).observe(time.as_secs_f64());
    }

    /// Counts a refusal, by the kind of its request: the name of a request, `unreadable`, or `version` for a program of another
    /// version.
    pub(crate) fn refused(&self, request: &'static str, reason: impl Display) {
        self.refusals.get_or_create(&[("request", request)]).inc();
        let reason = reason.to_string().chars().take(LONGEST_REASON).collect();
        let mut recent = lock(&self.recent);
        recent.truncate(RECENT - 1);
        recent.push_front(RecentRefusal { time: SystemTime::now(), request, reason });
    }

    /// Counts new records that were linked for predictions.
    pub(crate) fn linked(&self, rows: usize) {
        self.linked.inc_by(rows as u64);
    }

    /// Adds a session of the primary. It is open until the returned value is dropped.
    pub(crate) fn open(self: &Arc<Self>, program: &str, purpose: &'static str, run: &str) -> SessionGuard {
        let mut sessions = lock(&self.sessions);
        sessions.last += 1;
        let number = sessions.last;
        let session = OpenSession {
            program: program.to_string(),
            purpose,
            run: run.to_string(),
            since: SystemTime::now(),
            doing: "joins".to_string(),
        };
        sessions.open.insert(number, session);
        SessionGuard { metrics: Arc::clone(self), number }
    }

    /// Returns the open sessions, the oldest first.
    pub(super) fn sessions(&self) -> Vec<OpenSession> {
        lock(&self.sessions).open.values().cloned().collect()
    }

    /// Returns the last refusals, the latest first.
    pub(super) fn refusals(&self) -> Vec<RecentRefusal> {
        lock(&self.recent).iter().cloned().collect()
    }

    /// Adds the counts to a registry.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("requests", "Requests that the party answered", Family::clone(&self.requests));
        registry.register("refusals", "Requests that the party refused", Family::clone(&self.refusals));
        registry.register("request_seconds", "Time to answer a request", Family::clone(&self.seconds.0));
        registry.register("linked_rows", "New records that were linked for predictions", self.linked.clone());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_close_when_dropped() {
        let metrics = Arc::new(PartyMetrics::default());
        let (first, second) =
            (metrics.open("fet 1", "a run", "a"), metrics.open("fet 2", "predictions", "b"));
        second.does("Predict");
        let doing = |metrics: &PartyMetrics| {
            metrics.sessions().into_iter().map(|session| session.doing).collect::<Vec<_>>()
        };
        assert_eq!(doing(&metrics), ["joins", "Predict"]);
        drop(first);
        assert_eq!(doing(&metrics), ["Predict"]);
        drop(second);
        assert!(metrics.sessions().is_empty());
    }

    #[test]
    fn keeps_the_latest_refusals_with_short_reasons() {
        let metrics = PartyMetrics::default();
        for number in 0..RECENT + 5 {
            metrics.refused("Join", format!("{number} {}", "é".repeat(1000)));
        }
        let recent = metrics.refusals();
        assert_eq!(recent.len(), RECENT);
        assert!(recent[0].reason.starts_with(&format!("{} é", RECENT + 4)));
        assert!(recent.iter().all(|refusal| refusal.reason.chars().count() == LONGEST_REASON));
        assert_eq!(metrics.refusals.get_or_create(&[("request", "Join")]).get(), RECENT as u64 + 5);
    }
}
