//! The step of a run that a message belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step of a run in which something is released. Every release has a unique round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Round {
    /// A training step, counted over the whole run from 0.
    Train {
        /// From 0.
        step: u64,
    },
    /// A batch of validation rows after an epoch.
    Validation {
        /// From 0.
        epoch: u32,
        /// From 0.
        batch: u32,
    },
    /// A batch of test rows after an epoch.
    Test {
        /// From 0.
        epoch: u32,
        /// From 0.
        batch: u32,
    },
    /// A portion of the only release of a run whose secondaries are frozen.
    Once {
        /// From 0.
        batch: u32,
    },
    /// The averaging of parameters after an epoch.
    Average {
        /// From 0.
        epoch: u32,
    },
    /// An extra batch of rows, such as an attack requests to measure what is visible.
    Probe {
        /// From 0.
        batch: u32,
    },
    /// A batch of new records, for predictions.
    Predict {
        /// From 0.
        batch: u32,
    },
}

impl Round {
    /// A number of its own, which keys random streams; a training step is its own number. Bits 40 to 60 are free for
    /// the attempts of a secret sum, of which there are fewer than 2^20. Two rounds that are [`Round::is_sound`] never
    /// have the same.
    pub fn key(self) -> u64 {
        let tagged =
            |tag: u64, epoch: u32, batch: u32| (tag << 60) | (u64::from(epoch) << 24) ^ u64::from(batch);
        match self {
            Self::Train { step } => step,
            Self::Validation { epoch, batch } => tagged(1, epoch, batch),
            Self::Test { epoch, batch } => tagged(2, epoch, batch),
            Self::Once { batch } => tagged(3, 0, batch),
            Self::Average { epoch } => tagged(4, epoch, 0),
            Self::Probe { batch } => tagged(5, 0, batch),
            Self::Predict { batch } => tagged(6, 0, batch),
        }
    }

    /// Whether its numbers are in the range of [`Round::key`]: steps below 2^40, epochs below 2^16, batches below 2^24.
    pub fn is_sound(self) -> bool {
        let (step, epoch, batch) = match self {
            Self::Train { step } => (step, 0, 0),
            Self::Validation { epoch, batch } | Self::Test { epoch, batch } => (0, epoch, batch),
            Self::Once { batch } | Self::Probe { batch } | Self::Predict { batch } => (0, 0, batch),
            Self::Average { epoch } => (0, epoch, 0),
        };
        step < 1 << 40 && epoch < 1 << 16 && batch < 1 << 24
    }

    /// Whether dropout is on, and a gradient will follow.
    pub fn is_training(self) -> bool {
        matches!(self, Self::Train { .. })
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // People count from 1; what a peer sends may be the largest number there is.
        let one = |number: u32| u64::from(number) + 1;
        match *self {
            Self::Train { step } => write!(f, "training step {}", step.saturating_add(1)),
            Self::Validation { epoch, batch } => {
                write!(f, "batch {} of validating epoch {}", one(batch), one(epoch))
            }
            Self::Test { epoch, batch } => write!(f, "batch {} of testing epoch {}", one(batch), one(epoch)),
            Self::Once { batch } => write!(f, "portion {} of the only release", one(batch)),
            Self::Average { epoch } => write!(f, "averaging after epoch {}", one(epoch)),
            Self::Probe { batch } => write!(f, "probe {}", one(batch)),
            Self::Predict { batch } => write!(f, "batch {} of a prediction", one(batch)),
        }
    }
}
