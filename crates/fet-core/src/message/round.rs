//! The step of a run that a message belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step of a run that releases representations. Every release has a unique round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Round {
    /// A training step, counted over the whole run from 0.
    Train {
        /// Number of the step, from 0.
        step: u64,
    },
    /// A batch of validation rows after an epoch.
    Validation {
        /// Number of the epoch, from 0.
        epoch: u32,
        /// Number of the batch, from 0.
        batch: u32,
    },
    /// A batch of test rows after an epoch.
    Test {
        /// Number of the epoch, from 0.
        epoch: u32,
        /// Number of the batch, from 0.
        batch: u32,
    },
    /// A batch of the only release in a run whose secondaries are frozen.
    Once {
        /// Number of the batch, from 0.
        batch: u32,
    },
    /// The averaging of parameters after an epoch.
    Average {
        /// Number of the epoch, from 0.
        epoch: u32,
    },
    /// An extra batch of rows, which an attack requests to measure what the primary sees.
    Probe {
        /// Number of the batch, from 0.
        batch: u32,
    },
    /// A batch of new records, for predictions.
    Predict {
        /// Number of the batch, from 0.
        batch: u32,
    },
}

impl Round {
    /// Returns the round's unique number, which keys random streams; a training step has its step as number.
    /// Bits 40 to 60 are free for the attempts at secure aggregation, fewer than 2^20. Two different rounds
    /// that are [`Round::is_sound`] never have the same number.
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

    /// Returns true if the round's numbers are in the range of [`Round::key`]: steps below 2^40, epochs below
    /// 2^16, batches below 2^24. A batch of new records may have any number: a service of predictions answers many.
    pub fn is_sound(self) -> bool {
        let (step, epoch, batch) = match self {
            Self::Train { step } => (step, 0, 0),
            Self::Validation { epoch, batch } | Self::Test { epoch, batch } => (0, epoch, batch),
            Self::Once { batch } | Self::Probe { batch } => (0, 0, batch),
            Self::Predict { .. } => (0, 0, 0),
            Self::Average { epoch } => (0, epoch, 0),
        };
        step < 1 << 40 && epoch < 1 << 16 && batch < 1 << 24
    }

    /// Returns true if dropout is on and a gradient follows.
    pub fn is_training(self) -> bool {
        matches!(self, Self::Train { .. })
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Users count from 1. A peer may send the largest integer, so the addition must be in 64 bits.
        let one = |number: u32| u64::from(number) + 1;
        match *self {
            Self::Train { step } => write!(f, "training step {}", step.saturating_add(1)),
            Self::Validation { epoch, batch } => {
                write!(f, "validation batch {} of epoch {}", one(batch), one(epoch))
            }
            Self::Test { epoch, batch } => write!(f, "test batch {} of epoch {}", one(batch), one(epoch)),
            Self::Once { batch } => write!(f, "batch {} of the only release", one(batch)),
            Self::Average { epoch } => write!(f, "averaging after epoch {}", one(epoch)),
            Self::Probe { batch } => write!(f, "probe {}", one(batch)),
            Self::Predict { batch } => write!(f, "batch {} of a prediction", one(batch)),
        }
    }
}
