//! Settings of `fedsim`.

use fet_core::model::MOST_WIDTH;
use fet_core::optimizer::OptimizerSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::split::Local;

/// Settings of `fedsim` (Wu, Li, He 2022).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FedSimSettings {
    /// The parties' local models.
    pub local: Local,
    /// The widths of the hidden layers of the model that each pair of a record and a neighbour goes through, in order; empty
    /// for an affine model.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub pair_hidden: Vec<usize>,
    /// The output width of that model for each pair.
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub pair_outputs: usize,
    /// If true, a learned gate turns a pair's similarity into its weight; otherwise the similarity itself is the weight.
    pub weight_gate: bool,
    /// The width of the hidden layer of that gate.
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub gate_hidden: usize,
    /// If true, the pairs of a record are sorted by ascending similarity before the merge.
    pub sort_gate: bool,
    /// The merge of a record's pairs into one prediction.
    pub merge: Merge,
    /// The number of channels of the convolution over the pairs, if `merge` is "conv".
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub conv_channels: usize,
    /// The kernel size of that convolution, in pairs.
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub conv_kernel: usize,
    /// The widths of the hidden layers after the convolution, in order; empty for none.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub conv_hidden: Vec<usize>,
    /// The widths of the hidden layers if `merge` is "mlp", in order; empty for none.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub mlp_hidden: Vec<usize>,
    /// The dropout rate before each layer of the merge; 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f64,
    /// The number of the secondary with K soft links; the first is 1. The others join by their nearest record.
    #[schemars(range(min = 1))]
    pub soft_party: usize,
    /// The optimiser of the primary's model and of every secondary's.
    pub optimizer: OptimizerSettings,
}

/// Merge of the K pairs of a record into one prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// A convolution over neighbouring pairs, then a perceptron.
    Conv,
    /// A perceptron on all pairs at once.
    Mlp,
}

impl Default for FedSimSettings {
    fn default() -> Self {
        Self {
            local: Local::default(),
            pair_hidden: vec![100],
            pair_outputs: 10,
            weight_gate: true,
            gate_hidden: 10,
            sort_gate: true,
            merge: Merge::Conv,
            conv_channels: 8,
            conv_kernel: 7,
            conv_hidden: vec![400],
            mlp_hidden: vec![1600, 1000, 400],
            dropout: 0.3,
            soft_party: 1,
            optimizer: OptimizerSettings::lamb(),
        }
    }
}
