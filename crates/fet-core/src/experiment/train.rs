//! The settings of training: the length of a run, batch sizes, and computation options.

use fet_eval::class_weights::ClassWeights;
use fet_eval::records::Randomness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::encoder::Computation;
use crate::learning_rate::Decay;
use crate::objective::TargetTransformation;
use crate::privacy::PrivacyMechanism;
use crate::registry::Violation;

/// Length of a run and batch sizes.
// Each field is a setting that users write, so nesting the fields would change their files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainSettings {
    /// Number of passes over the training rows.
    #[schemars(range(min = 1, max = 65535))]
    pub epochs: usize,
    /// Number of rows per training step.
    #[schemars(range(min = 1))]
    pub batch_size: usize,
    /// Number of rows per evaluation step; affects speed and memory, not results.
    #[schemars(range(min = 1))]
    pub evaluation_batch_size: usize,
    /// Megabytes of representations that the secondaries of a process keep during an evaluation, so that
    /// neighbours shared by several rows are encoded once; affects speed and memory, not results. 0 for none.
    /// With a privacy mechanism the secondaries keep nothing.
    #[schemars(range(max = 1_000_000))]
    pub evaluation_cache: usize,
    /// Schedule of the learning rate.
    pub decay: Decay,
    /// Number of epochs without a better validation metric that count as a plateau.
    #[schemars(range(min = 1))]
    pub patience: usize,
    /// Factor that multiplies the learning rate at a plateau.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub factor: f64,
    /// True if secondaries drop their graphs and compute forward passes twice: the same results up to
    /// rounding, and less memory with many parties.
    pub recompute: bool,
    /// Implementation of the blocks that have fused kernels: the same results up to rounding.
    pub kernels: Kernels,
    /// Sampling of the rows of a training step.
    pub batches: Batches,
    /// Number of neighbours of a row that a training step sees; 0 for all. The time of a step falls roughly
    /// in proportion. Evaluations and predictions see all neighbours.
    pub neighbours_per_step: usize,
    /// Choice of the neighbours that a training step sees.
    pub neighbours_shown: NeighboursShown,
    /// Share of the epochs, from the first, in which a step sees only some neighbours; in later epochs it
    /// sees all.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub neighbours_until: f64,
    /// Weight of a row's loss, by its class: "none", "balanced" (all classes have the same total weight), or
    /// one weight for each class. It concerns only the primary.
    pub class_weights: Weighting,
    /// Transformation of a regression's labels before training: "none", "log" (ln(1 + label), for labels from 0 on with a
    /// long tail), or "quantile" (the rank among the training labels). Predictions, scores and intervals are in the
    /// label's own unit. With a transformation, a prediction is closer to the median of the label than to its mean, so
    /// that the mean absolute error often falls and the RMSE may rise. It concerns only the primary.
    pub target: TargetTransformation,
    /// True if a run with `[release]` also trains without its columns, and keeps the model with them only if they improve the
    /// metric on the validation rows by more than a standard error. The releases cost ε in either case. It concerns only the
    /// primary.
    pub gate: bool,
    /// True if the primary replaces its keys for linking by keys predicted from its own columns, with a
    /// linear regression on its training rows. This helps if the keys are imprecise and the columns say more.
    /// A party that learns keys from the linker then learns this information about the columns. It concerns
    /// only the primary.
    pub refine_keys: bool,
    /// True if models see the keys as inputs. With false, keys only link records: the models of all parties see
    /// zeros in their place, and a positional encoding is constant. Columns computed from keys
    /// (`data.key_features`) stay.
    pub key_inputs: bool,
    /// Number of epochs without a better validation metric after which the run ends; 0 for never. It does not
    /// apply to methods that take all training rows at once (`gbdt-*`, `linear-*`): their epochs are steps of a
    /// search that has a fixed length.
    pub early_stopping: usize,
    /// Form of the messages between parties in one process: with "bytes" they are serialised, which gives the
    /// same results more slowly.
    pub wire: Wire,
    /// Origin of each party's private randomness in a simulation: "experiment", so that a run repeats, or
    /// "own", a seed for each party from the operating system. A separate party always has its own seed.
    pub randomness: Randomness,
}

/// Form of the messages between parties in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Passed as values, without serialisation.
    #[default]
    Direct,
    /// Serialised to the bytes that machines would exchange, and back.
    Bytes,
}

/// Weights of the rows' losses, by class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be \"none\", \"balanced\" or a list of weights, one for each class")]
pub enum Weighting {
    /// Weights by a rule.
    Rule(WeightingRule),
    /// These weights, one for each class.
    Given(#[schemars(inner(range(min = 0, max = 1_000_000)))] Vec<f64>),
}

/// A rule for the weights of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WeightingRule {
    /// All rows have the same weight.
    None,
    /// All classes have the same total weight: n / (k · rows of the class), as scikit-learn's "balanced".
    Balanced,
}

/// Formats the weights as in an experiment file.
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
    /// Returns the weights of the classes, given the classes of the training rows; `None` if all rows have
    /// the same weight.
    pub fn class_weights(&self, labels: &[usize], classes: usize) -> Result<Option<ClassWeights>, Violation> {
        let refuse = |rule: String| Violation::new("train.class_weights", rule, self);
        match self {
            Self::Rule(WeightingRule::None) => Ok(None),
            Self::Rule(WeightingRule::Balanced) => ClassWeights::balanced(labels, classes)
                .map(Some)
                .map_err(|error| refuse(format!("must suit the training rows ({error})"))),
            Self::Given(weights) if weights.len() != classes => {
                Err(refuse(format!("must have one weight for each of the {classes} classes")))
            }
            Self::Given(weights) => ClassWeights::given(weights.clone())
                .map(Some)
                .map_err(|error| refuse(format!("must be one number above 0 for each class ({error})"))),
        }
    }
}

/// Sampling of the rows of a training step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Batches {
    /// All rows, shuffled for each epoch, in batches.
    #[default]
    Shuffled,
    /// Each row with probability batch size / rows, independently in each step.
    Poisson,
}

/// Choice of the neighbours of a row that a training step sees, if it sees only some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NeighboursShown {
    /// The nearest, and others at random, drawn for each step: the same positions of every row's list, at
    /// every party.
    #[default]
    Random,
    /// The nearest.
    Nearest,
}

/// Implementation of the blocks of a transformer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kernels {
    /// The fused kernels if tensors are in the host's memory, otherwise the device.
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
            target: TargetTransformation::None,
            gate: true,
            refine_keys: false,
            key_inputs: true,
            early_stopping: 0,
            wire: Wire::Direct,
            randomness: Randomness::Experiment,
        }
    }
}

impl TrainSettings {
    /// Returns the secondaries' computation options, given whether tensors are on the host.
    pub fn computation(&self, on_host: bool) -> Computation {
        let fused = match self.kernels {
            Kernels::Auto => on_host,
            Kernels::Fused => true,
            Kernels::Tensor => false,
        };
        Computation { recompute: self.recompute, fused }
    }

    /// Returns the maximum number of bytes of representations that one of `parties` in a process may keep
    /// during an evaluation.
    pub fn evaluation_cache_of(&self, parties: usize) -> usize {
        (self.evaluation_cache << 20) / parties.max(1)
    }

    /// Returns true if the epochs of a run do not depend on their number, so that a longer run can continue a
    /// shorter one. They do depend on it with a privacy mechanism, which may divide a budget of releases, if
    /// the learning rate decays by epoch, or if `neighbours_until` is below 1.
    pub fn can_go_on(&self, privacy: &dyn PrivacyMechanism) -> bool {
        let all_epochs = self.neighbours_per_step == 0 || self.neighbours_until >= 1.0;
        self.decay == Decay::Plateau && privacy.is_identity() && all_epochs
    }
}
