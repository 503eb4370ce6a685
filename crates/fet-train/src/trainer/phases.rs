//! Where the time of a run goes, phase by phase. It changes no result and is not part of a checkpoint.

use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Seconds spent in each phase since the trainer was made.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Phases {
    /// Training: the secondaries encode.
    pub encode: f64,
    /// Training: representations become a memory, and its gradient becomes theirs.
    pub aggregate: f64,
    /// Training: the primary decodes, forward and backward.
    pub decode: f64,
    /// Training: the secondaries go back through their encoders and step.
    pub learn: f64,
    /// Training: the primary steps.
    pub step: f64,
    /// Validation and test, all phases together.
    pub evaluate: f64,
}

/// Measures laps.
pub(super) struct Watch(Instant);

impl Watch {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Adds the time since the start or the last lap.
    pub(super) fn lap(&mut self, phase: &mut f64) {
        let now = Instant::now();
        *phase += (now - self.0).as_secs_f64();
        self.0 = now;
    }
}
