//! The settings of training: the length of a run, batch sizes, and how things are computed.

use fet_records::Randomness;
use serde::{Deserialize, Serialize};

use crate::encoder::Computation;
use crate::learning_rate::Decay;
use crate::registry::Violation;

/// Length of a run and batch sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Passes over the training rows.
    pub epochs: usize,
    /// Rows per training step.
    pub batch_size: usize,
    /// Rows per evaluation step; affects speed and memory, not results.
    pub evaluation_batch_size: usize,
    /// The schedule of the learning rate.
    pub decay: Decay,
    /// Epochs without a better validation metric that count as a plateau.
    pub patience: usize,
    /// The factor on the learning rate at a plateau.
    pub factor: f64,
    /// Whether secondaries drop their graphs and compute forward passes twice: the same results up to rounding, and
    /// less memory with many parties.
    pub recompute: bool,
    /// What runs the blocks that have fused kernels: the same results up to rounding.
    pub kernels: Kernels,
    /// How the rows of a training step are sampled.
    pub batches: Batches,
    /// Whether messages between parties in one process are serialised: the same results, more slowly.
    pub wire: Wire,
    /// What each party's private randomness follows from, in a simulation: "experiment", so that a run repeats, or "own", a
    /// seed of each party from the operating system. A party of its own always has a seed of its own.
    pub randomness: Randomness,
}

/// How messages pass between parties in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Passed as values.
    #[default]
    Direct,
    /// Serialised to the bytes that would go between machines, and back.
    Bytes,
}

/// How the rows of a training step are sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// All rows, shuffled for each epoch, in batches.
    #[default]
    Shuffled,
    /// Each row with probability batch size / rows, independently for each step.
    Poisson,
}

/// What computes the blocks of a transformer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernels {
    /// The fused kernels if tensors are in the host's memory, else the device.
    #[default]
    Auto,
    /// The fused kernels, on the host.
    Fused,
    /// The device, with tensor operations.
    Tensor,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            epochs: 20,
            batch_size: 128,
            evaluation_batch_size: 256,
            decay: Decay::Plateau,
            patience: 5,
            factor: 0.5,
            recompute: false,
            kernels: Kernels::Auto,
            batches: Batches::Shuffled,
            wire: Wire::Direct,
            randomness: Randomness::Experiment,
        }
    }
}

impl TrainSettings {
    /// Whether secondaries use the kernels, given whether tensors are on the host.
    pub fn computation(&self, on_host: bool) -> Computation {
        let fused = match self.kernels {
            Kernels::Auto => on_host,
            Kernels::Fused => true,
            Kernels::Tensor => false,
        };
        Computation { recompute: self.recompute, fused }
    }

    /// Refuses numbers that no run can have.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let counts = [
            ("epochs", self.epochs),
            ("batch_size", self.batch_size),
            ("evaluation_batch_size", self.evaluation_batch_size),
            ("patience", self.patience),
        ];
        for (field, count) in counts {
            if count == 0 {
                return Err(Violation::new(field, "must be at least 1", 0).within("train"));
            }
        }
        if self.epochs >= 1 << 16 {
            return Err(Violation::new("epochs", "must be below 65536", self.epochs).within("train"));
        }
        if !(self.factor > 0.0 && self.factor <= 1.0) {
            return Err(
                Violation::new("factor", "must be above 0 and at most 1", self.factor).within("train")
            );
        }
        Ok(())
    }
}
