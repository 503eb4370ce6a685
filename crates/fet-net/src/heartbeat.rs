//! Sign of life of the thread that carries a party's packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time of the last turn of a thread, such as a service's carrier of packets, which a supervisor can ask for at any time.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    began: Instant,
    /// Milliseconds after `began`, plus 1; 0 before the first turn.
    last: Arc<AtomicU64>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { began: Instant::now(), last: Arc::default() }
    }
}

impl Heartbeat {
    /// Records a turn of the thread.
    pub fn beat(&self) {
        self.last.store(self.milliseconds() + 1, Ordering::Relaxed);
    }

    /// Returns the time since the last turn; `None` before the first one.
    pub fn age(&self) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Duration::from_millis(self.milliseconds().saturating_sub(last)))
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }
}
