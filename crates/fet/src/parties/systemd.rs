//! Tells the service manager systemd that a party is ready, what it does, and that it is alive.
//!
//! Without the variable `NOTIFY_SOCKET`, which systemd sets for `Type=notify`, this module does nothing. The watchdog follows
//! the thread that carries the link's packets: if that thread hangs, systemd hears nothing and starts the party again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fet_net::{Connection, Heartbeat, State};
use sd_notify::NotifyState;

/// Longest time between two looks at the link.
const LOOK: Duration = Duration::from_millis(500);
/// Time between two checks for the end of the process.
const DOZE: Duration = Duration::from_millis(50);

/// Thread that reports to systemd until it is dropped.
pub(super) struct Notifier {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Starts reporting. `look` returns the state of the worst link and the current activity; `stop` is set when the party must end.
    pub(super) fn start(
        heartbeats: Vec<Heartbeat>,
        stop: Arc<AtomicBool>,
        look: impl Fn() -> (State, String) + Send + 'static,
    ) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Self { ended, thread: None };
        }
        let done = Arc::clone(&ended);
        let report = move || {
            let mut report = Report::new(sd_notify::watchdog_enabled());
            while !done.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                report.turn(&heartbeats, &look, Instant::now());
                std::thread::sleep(DOZE);
            }
            send(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
            // The last answer may take longer than the watchdog allows.
            while !done.load(Ordering::Relaxed) {
                report.watchdog(&heartbeats, Instant::now());
                std::thread::sleep(DOZE);
            }
        };
        let thread = std::thread::Builder::new().name("fet-systemd".into()).spawn(report).ok();
        Self { ended, thread }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Messages so far.
struct Report {
    /// Time between two signs of life; `None` without a watchdog.
    period: Option<Duration>,
    alive: Option<Instant>,
    looked: Option<Instant>,
    is_ready: bool,
    status: String,
}

impl Report {
    fn new(watchdog: Option<Duration>) -> Self {
        let period = watchdog.map(|limit| limit / 3);
        Self { period, alive: None, looked: None, is_ready: false, status: String::new() }
    }

    fn turn(&mut self, heartbeats: &[Heartbeat], look: &impl Fn() -> (State, String), now: Instant) {
        // A thread that hangs may hold the lock of the link, so the look comes after the sign of life.
        if !self.watchdog(heartbeats, now) || self.looked.is_some_and(|looked| now - looked < LOOK) {
            return;
        }
        self.looked = Some(now);
        let (link, doing) = look();
        if !self.is_ready && matches!(link.connection, Connection::Up { .. }) {
            self.is_ready = true;
            send(&[NotifyState::Ready]);
        }
        let status = status(&link, &doing);
        if status != self.status {
            send(&[NotifyState::Status(&status)]);
            self.status = status;
        }
    }

    /// Sends a sign of life if one is due; returns true if the threads of all links are alive.
    fn watchdog(&mut self, heartbeats: &[Heartbeat], now: Instant) -> bool {
        let limit = self.period.unwrap_or(Duration::MAX);
        let is_alive = heartbeats.iter().all(|heartbeat| heartbeat.age().is_some_and(|age| age < limit));
        if let Some(period) = self.period
            && is_alive
            && self.alive.is_none_or(|alive| now - alive >= period)
        {
            self.alive = Some(now);
            send(&[NotifyState::Watchdog]);
        }
        is_alive
    }
}

/// Returns one line for `systemctl status`, without times that change at every look.
fn status(link: &State, doing: &str) -> String {
    let line = match (&link.connection, &link.objection) {
        (Connection::Up { warning: None }, None) => doing.to_string(),
        (Connection::Up { .. }, Some(objection)) => format!("{doing}; {objection}"),
        (Connection::Down { why, .. }, _) => format!("{doing}; the server does not answer ({why})"),
        (connection, _) => format!("{doing}; {connection}"),
    };
    // A message to systemd has one line for each variable.
    line.replace(['\n', '\r'], " ")
}

fn send(messages: &[NotifyState<'_>]) {
    // The party serves also without its supervisor.
    let _ = sd_notify::notify(messages);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_net::Activity;

    /// A thread that has not begun, or that hangs, gives no sign of life.
    #[test]
    fn the_watchdog_follows_the_thread_of_the_link() {
        let period = Duration::from_millis(40);
        let mut report = Report::new(Some(3 * period));
        let heartbeats = [Heartbeat::default()];
        let [heartbeat] = &heartbeats;
        assert!(!report.watchdog(&heartbeats, Instant::now()) && report.alive.is_none());
        heartbeat.beat();
        let now = Instant::now();
        assert!(report.watchdog(&heartbeats, now) && report.alive == Some(now));
        // The thread hangs from here on.
        while heartbeat.age().is_some_and(|age| age <= period) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!report.watchdog(&heartbeats, now + period) && report.alive == Some(now));
        heartbeat.beat();
        assert!(report.watchdog(&heartbeats, now + period) && report.alive == Some(now + period));
    }

    #[test]
    fn a_status_is_one_line() {
        let link = State {
            connection: Connection::Down { since: Instant::now(), why: "refused\nREADY=1".into() },
            doing: Activity::Idle,
            heard: None,
            latency: None,
            sent: 0,
            received: 0,
            unreadable: 0,
            objection: None,
        };
        assert_eq!(status(&link, "Forward"), "Forward; the server does not answer (refused READY=1)");
        let up = State { connection: Connection::Up { warning: None }, ..link };
        assert_eq!(status(&up, "Forward"), "Forward");
    }
}
