//! The primary's layers of FedSim: pairs, the two gates, and the merge.

use burn::module::{Module, Param};
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Int, Tensor, TensorData, activation, module};
use fet_components::model::{Init, Perceptron};
use fet_core::data::Task;
use fet_core::method::{Memory, PrimaryBatch, PrimaryNetwork};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::host;

use super::settings::{FedSimSettings, Merge};

/// A small constant that keeps weights above zero, as in the authors' program.
const LEAST_WEIGHT: f64 = 1e-7;

/// Sizes that follow from the data.
pub(super) struct PairsShape {
    /// Feature columns of the primary.
    pub(super) features: usize,
    /// K.
    pub(super) positions: usize,
    /// W, the width of the memory.
    pub(super) memory_width: usize,
    /// Loss and outputs.
    pub(super) objective: Objective,
}

#[derive(Module, Debug)]
pub(super) struct Pairs {
    local: Perceptron,
    pair: Perceptron,
    gate: Option<Perceptron>,
    convolution: Option<Convolution>,
    merge: Perceptron,
    sort_gate: bool,
    bounded: bool,
    dropout: f64,
    soft_party: usize,
}

/// A convolution over the K axis: C channels from one, kernel k × 1, padding k − 1.
#[derive(Module, Debug)]
struct Convolution {
    weight: Param<Tensor<3>>,
    bias: Param<Tensor<1>>,
}

impl Pairs {
    pub(super) fn new(init: &mut Init<'_>, settings: &FedSimSettings, shape: &PairsShape) -> Self {
        let width = settings.pair_outputs;
        let joined = settings.local.width + shape.memory_width;
        let local = settings.local.model(init, shape.features, 0.0);
        let pair = Perceptron::new(init, joined, &settings.pair_hidden, width, 0.0);
        let gate = settings.weight_gate.then(|| Perceptron::new(init, 1, &[settings.gate_hidden], 1, 0.0));
        let (channels, kernel) = (settings.conv_channels, settings.conv_kernel);
        let (convolution, inputs, hidden) = match settings.merge {
            Merge::Conv => {
                let bound = 1.0 / (kernel as f64).sqrt();
                let convolution = Convolution {
                    weight: init.uniform([channels, 1, kernel], bound),
                    bias: init.uniform([channels], bound),
                };
                let inputs = channels * (shape.positions + kernel - 1) * width;
                (Some(convolution), inputs, &settings.conv_hidden)
            }
            Merge::Mlp => (None, shape.positions * width, &settings.mlp_hidden),
        };
        let outputs = shape.objective.outputs;
        Self {
            local,
            pair,
            gate,
            convolution,
            merge: Perceptron::new(init, inputs, hidden, outputs, settings.dropout),
            sort_gate: settings.sort_gate,
            bounded: shape.objective.task != Task::Multiclass,
            dropout: settings.dropout,
            soft_party: settings.soft_party - 1,
        }
    }

    /// The weight of each pair, [B, K, 1]; 0 where a neighbour only repeats another.
    fn weights(&self, similarities: Tensor<2>, available: usize, pass: &mut Pass) -> Tensor<3> {
        let [rows, positions] = similarities.dims();
        let mut weights = similarities.reshape([rows, positions, 1]);
        if let Some(gate) = &self.gate {
            weights = activation::sigmoid(gate.forward(weights, pass)).add_scalar(LEAST_WEIGHT);
        }
        if available < positions {
            weights = weights.slice_fill([0..rows, available..positions, 0..1], 0.0);
        }
        weights
    }
}

impl PrimaryNetwork for Pairs {
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let memory = memory.expect("the trainer gives a memory to a method with secondaries");
        // All parties are active, so a party's index among the active ones is its number.
        let similarities = memory.similarities.get(self.soft_party);
        let similarities = similarities.expect("the trainer gives similarities to a method that uses them");
        let [rows, positions, _] = memory.tensor.dims();
        let own = self.local.forward(batch.features.clone(), pass);
        let width = own.dims()[1];
        let own = own.reshape([rows, 1, width]).repeat_dim(1, positions);
        let mut pairs = self.pair.forward(Tensor::cat(vec![own, memory.tensor.clone()], 2), pass);
        if self.bounded {
            pairs = activation::sigmoid(pairs);
        }
        let outputs = pairs.dims()[2];
        pairs = pairs * self.weights(similarities.clone(), memory.available, pass);
        if self.sort_gate {
            let flat = pairs.reshape([rows * positions, outputs]);
            pairs = flat.select(0, ascending(similarities)).reshape([rows, positions, outputs]);
        }
        let merged = match &self.convolution {
            Some(convolution) => convolution.forward(pairs),
            None => pairs.reshape([rows, positions * outputs]),
        };
        self.merge.forward(pass.dropout(merged, self.dropout), pass)
    }
}

impl Convolution {
    /// # Shapes
    /// - pairs: [B, K, w], result: [B, C·(K + k − 1)·w], channel by channel, rank by rank
    fn forward(&self, pairs: Tensor<3>) -> Tensor<2> {
        let [rows, positions, width] = pairs.dims();
        let [channels, _, kernel] = self.weight.dims();
        let columns = pairs.swap_dims(1, 2).reshape([rows * width, 1, positions]);
        let options = ConvOptions::new([1], [kernel - 1], [1], 1);
        let convolved = module::conv1d(columns, self.weight.val(), Some(self.bias.val()), options);
        let ranks = positions + kernel - 1;
        let convolved = activation::relu(convolved).reshape([rows, width, channels, ranks]);
        convolved.permute([0, 2, 3, 1]).reshape([rows, channels * ranks * width])
    }
}

/// Indices of the pairs in ascending order of similarity, row by row.
fn ascending(similarities: &Tensor<2>) -> Tensor<1, Int> {
    let positions = similarities.dims()[1];
    let values = host(similarities.clone());
    let mut order: Vec<i32> = (0..values.len() as i32).collect();
    for row in order.chunks_exact_mut(positions) {
        row.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
    }
    Tensor::from_data(TensorData::from(order.as_slice()), &similarities.device())
}
