//! The settings of training: the length of a run, batch sizes, and how things are computed.

use fet_eval::class_weights::ClassWeights;
use fet_eval::records::Randomness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoder::Computation;
use crate::learning_rate::Decay;
use crate::privacy::PrivacyMechanism;
use crate::registry::Violation;

/// Length of a run and batch sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Passes over the training rows.
    #[schemars(range(min = 1, max = 65535))]
    pub epochs: usize,
    /// Rows per training step.
    #[schemars(range(min = 1))]
    pub batch_size: usize,
    /// Rows per evaluation step; affects speed and memory, not results.
    #[schemars(range(min = 1))]
    pub evaluation_batch_size: usize,
    /// Megabytes of representations that the secondaries of a process keep in an evaluation, so that neighbours that several rows have
    /// in common are encoded once; affects speed and memory, not results. 0 for none. Nothing is kept beside a privacy mechanism.
    #[schemars(range(max = 1_000_000))]
    pub evaluation_cache: usize,
    /// The schedule of the learning rate.
    pub decay: Decay,
    /// Epochs without a better validation metric that count as a plateau.
    #[schemars(range(min = 1))]
    pub patience: usize,
    /// The factor on the learning rate at a plateau.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub factor: f64,
    /// Whether secondaries drop their graphs and compute forward passes twice: the same results up to rounding, and
    /// less memory with many parties.
    pub recompute: bool,
    /// What runs the blocks that have fused kernels: the same results up to rounding.
    pub kernels: Kernels,
    /// How the rows of a training step are sampled.
    pub batches: Batches,
    /// How many neighbours of a row a training step sees; 0 for all. A step takes about as much less time; evaluations and predictions see
    /// all.
    pub neighbours_per_step: usize,
    /// Which those are.
    pub neighbours_shown: NeighboursShown,
    /// The share of the epochs, from the first, in which a step sees only some; in the others it sees all.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub neighbours_until: f64,
    /// How much the loss of a row counts, by its class: "none", "balanced" (every class the same in all), or a weight for each
    /// class. The primary's affair.
    pub class_weights: Weighting,
    /// Whether the primary links by what its own columns say of its keys, a linear regression on its training rows, in the place of
    /// its keys: where these are imprecise and its columns tell more. Whoever learns keys from the linker learns this of the columns. The
    /// primary's affair.
    pub refine_keys: bool,
    /// The run ends after so many epochs without a better validation metric; 0 for never.
    pub early_stopping: usize,
    /// Whether messages between parties in one process are serialised: the same results, more slowly.
    pub wire: Wire,
    /// What each party's private randomness follows from, in a simulation: "experiment", so that a run repeats, or "own", a
    /// seed of each party from the operating system. A party of its own always has a seed of its own.
    pub randomness: Randomness,
}

/// How messages pass between parties in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Passed as values.
    #[default]
    Direct,
    /// Serialised to the bytes that would go between machines, and back.
    Bytes,
}

/// How much the loss of a row counts, by its class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be \"none\", \"balanced\" or a list of weights, one for each class")]
pub enum Weighting {
    /// By a rule.
    Rule(WeightingRule),
    /// By these weights, one for each class.
    Given(#[schemars(inner(range(min = 0, max = 1_000_000)))] Vec<f64>),
}

/// A rule for the weights of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WeightingRule {
    /// All rows count the same.
    None,
    /// All classes count the same: n / (k · rows of the class), as scikit-learn's "balanced".
    Balanced,
}

/// As in a file.
impl std::fmt::Display for Weighting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(WeightingRule::None) => f.write_str("\"none\""),
            Self::Rule(WeightingRule::Balanced) => f.write_str("\"balanced\""),
            Self::Given(weights) => write!(f, "{weights:?}"),
        }
    }
}

impl Weighting {
    /// The weights of classes, given the classes of the training rows; nothing where all rows count the same.
    pub fn of(&self, labels: &[usize], classes: usize) -> Result<Option<ClassWeights>, Violation> {
        let refuse = |rule: String| Violation::new("train.class_weights", rule, self);
        match self {
            Self::Rule(WeightingRule::None) => Ok(None),
            Self::Rule(WeightingRule::Balanced) => ClassWeights::balanced(labels, classes)
                .map(Some)
                .map_err(|error| refuse(format!("must be possible ({error})"))),
            Self::Given(weights) if weights.len() != classes => {
                Err(refuse(format!("must have one weight for each of the {classes} classes")))
            }
            Self::Given(weights) => ClassWeights::given(weights.clone())
                .map(Some)
                .map_err(|error| refuse(format!("must be weights ({error})"))),
        }
    }
}

/// How the rows of a training step are sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// All rows, shuffled for each epoch, in batches.
    #[default]
    Shuffled,
    /// Each row with probability batch size / rows, independently for each step.
    Poisson,
}

/// Which neighbours of a row a training step sees, where it sees only some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NeighboursShown {
    /// The nearest, and others by chance, drawn for each step: the same places of every row's list, at every party.
    #[default]
    Random,
    /// The nearest.
    Nearest,
}

/// What computes the blocks of a transformer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
            evaluation_cache: 96,
            decay: Decay::Plateau,
            patience: 5,
            factor: 0.5,
            recompute: false,
            kernels: Kernels::Auto,
            batches: Batches::Shuffled,
            neighbours_per_step: 0,
            neighbours_shown: NeighboursShown::Random,
            neighbours_until: 1.0,
            class_weights: Weighting::Rule(WeightingRule::None),
            refine_keys: false,
            early_stopping: 0,
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

    /// How many bytes of representations one of `parties` in a process may keep in an evaluation.
    pub fn evaluation_cache_of(&self, parties: usize) -> usize {
        (self.evaluation_cache << 20) / parties.max(1)
    }

    /// Whether a run with more epochs begins as one with fewer does, so that it can go on where that one ended. It does not
    /// where a mechanism shares out what it may release, or where the learning rate decays by epoch.
    pub fn can_go_on(&self, privacy: &dyn PrivacyMechanism) -> bool {
        let all_epochs = self.neighbours_per_step == 0 || self.neighbours_until >= 1.0;
        self.decay == Decay::Plateau && privacy.is_identity() && all_epochs
    }
}
