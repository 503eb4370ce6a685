//! The time that a run spends in each phase. It changes no result and is not part of a checkpoint.

use std::time::Instant;

pub use fet_eval::records::Phases;

/// A stopwatch for phases.
pub(super) struct Watch(Instant);

impl Watch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Adds the time since the start or the last call.
    pub(super) fn lap(&mut self, phase: &mut f64) {
        let now = Instant::now();
        *phase += (now - self.0).as_secs_f64();
        self.0 = now;
    }
}
