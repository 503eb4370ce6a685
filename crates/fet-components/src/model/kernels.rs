//! Converts a model's parameters, found by name, for `fet-kernels`, and its gradients back.
//!
//! The names come from the modules of `embedding.rs`, `mask.rs`, `block.rs` and `decoder.rs`.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_kernels::{
    AttentionGradient, AttentionWeights, Buffer, EmbeddingGradient, EmbeddingWeights, FeedForwardGradient,
    FeedForwardWeights, PerceptronGradient, PerceptronWeights, PositionWeights, Records,
};

use fet_core::parameters::{Parameters, host};
use fet_core::trainable::Trainable;

/// Paths of attention, or of its following layer, in each block, and of the chain's norms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Name of the block's field.
    pub(crate) layer: &'static str,
    /// Name of the chain's field.
    pub(crate) norms: &'static str,
}

/// A batch's records on the host.
#[derive(Debug)]
pub(crate) struct HostRecords {
    keys: Vec<f32>,
    key_columns: usize,
    features: Vec<f32>,
    feature_columns: usize,
}

impl HostRecords {
    /// Copies keys [n, m] and features [n, d] to the host.
    pub(crate) fn from_tensors(keys: &Tensor<2>, features: &Tensor<2>) -> Self {
        Self {
            keys: host(keys.clone().without_autodiff()),
            key_columns: keys.dims()[1],
            features: host(features.clone().without_autodiff()),
            feature_columns: features.dims()[1],
        }
    }

    /// Returns the records in the form for embedding.
    pub(crate) fn view(&self) -> Records<'_> {
        let Self { keys, key_columns, features, feature_columns } = self;
        Records { keys, key_columns: *key_columns, features, feature_columns: *feature_columns }
    }
}

/// Returns the weights of a model's embedding.
pub(crate) fn embedding(parameters: &Parameters) -> EmbeddingWeights<'_> {
    let position = parameters.get(FREQUENCIES).map(|frequencies| PositionWeights {
        frequencies,
        perceptron: perceptron(parameters, "embedding.position"),
    });
    let [input, input_bias] = INPUT.map(|name| value(parameters, name));
    EmbeddingWeights { input, input_bias, position }
}

const INPUT: [&str; 2] = ["embedding.input.weight", "embedding.input.bias"];
const FREQUENCIES: &str = "embedding.position.frequencies";

/// Adds the gradient of [`embedding`] to a model's gradient.
pub(crate) fn add_embedding<M: Module>(trainable: &mut Trainable<M>, gradient: &EmbeddingGradient) {
    let [weight, bias] = INPUT;
    trainable.add_to_gradient(weight, &gradient.input);
    trainable.add_to_gradient(bias, &gradient.input_bias);
    if let Some((frequencies, perceptron)) = &gradient.position {
        trainable.add_to_gradient(FREQUENCIES, frequencies);
        add_perceptron(trainable, "embedding.position", perceptron);
    }
}

/// Returns the weight and the bias of the layer at `path`.
pub(crate) fn layer<'p>(parameters: &'p Parameters, path: &str) -> [&'p [f32]; 2] {
    ["weight", "bias"].map(|leaf| value(parameters, &format!("{path}.{leaf}")))
}

/// Returns the two layers at `path`: hidden and output.
pub(crate) fn perceptron<'p>(parameters: &'p Parameters, path: &str) -> PerceptronWeights<'p> {
    let [hidden, hidden_bias, output, output_bias] = layers(path).map(|name| value(parameters, &name));
    PerceptronWeights { hidden, hidden_bias, output, output_bias }
}

/// Adds the gradient of [`perceptron`] to a model's gradient.
pub(crate) fn add_perceptron<M: Module>(
    trainable: &mut Trainable<M>,
    path: &str,
    gradient: &PerceptronGradient,
) {
    let PerceptronGradient { hidden, hidden_bias, output, output_bias } = gradient;
    for (name, values) in layers(path).iter().zip([hidden, hidden_bias, output, output_bias]) {
        trainable.add_to_gradient(name, values);
    }
}

fn layers(path: &str) -> [String; 4] {
    ["hidden.weight", "hidden.bias", "output.weight", "output.bias"].map(|leaf| format!("{path}.{leaf}"))
}

fn value<'p>(parameters: &'p Parameters, name: &str) -> &'p [f32] {
    parameters.get(name).unwrap_or_else(|| panic!("the model has the parameter `{name}`"))
}

/// Returns the number of blocks of the chain.
pub(crate) fn blocks(parameters: &Parameters) -> usize {
    let first = |index: usize| format!("chain.blocks.{index}.feed_forward.hidden.weight");
    (0..).take_while(|&index| parameters.get(&first(index)).is_some()).count()
}

/// Returns the names of a place's parameters in block `index`: both of the norm, then those of its two
/// layers.
fn names(parameters: &Parameters, place: Place, layers: [&str; 2], index: usize) -> [String; 6] {
    let Place { layer, norms } = place;
    // There is one norm for each block, or one for all.
    let own = parameters.get(&format!("chain.{norms}.each.{index}.gamma")).is_some();
    let norm = if own { index } else { 0 };
    let of_norm = |leaf: &str| format!("chain.{norms}.each.{norm}.{leaf}");
    let of_layer = |part: usize, leaf: &str| format!("chain.blocks.{index}.{layer}.{}.{leaf}", layers[part]);
    [
        of_norm("gamma"),
        of_norm("beta"),
        of_layer(0, "weight"),
        of_layer(0, "bias"),
        of_layer(1, "weight"),
        of_layer(1, "bias"),
    ]
}

fn values<'p>(parameters: &'p Parameters, names: &[String; 6]) -> [&'p [f32]; 6] {
    names.each_ref().map(|name| value(parameters, name))
}

const ATTENTION: [&str; 2] = ["projection", "output"];
const FEED_FORWARD: [&str; 2] = ["hidden", "output"];

/// Returns the attention at a place of block `index`.
pub(crate) fn attention(parameters: &Parameters, place: Place, index: usize) -> AttentionWeights<'_> {
    let [gain, bias, projection, projection_bias, output, output_bias] =
        values(parameters, &names(parameters, place, ATTENTION, index));
    AttentionWeights { gain, bias, projection, projection_bias, output, output_bias }
}

/// Returns the feed-forward layer at a place of block `index`.
pub(crate) fn feed_forward(parameters: &Parameters, place: Place, index: usize) -> FeedForwardWeights<'_> {
    let [gain, bias, hidden, hidden_bias, contraction, contraction_bias] =
        values(parameters, &names(parameters, place, FEED_FORWARD, index));
    FeedForwardWeights { gain, bias, hidden, hidden_bias, contraction, contraction_bias }
}

/// Adds the gradient of [`attention`] to a model's gradient.
pub(crate) fn add_attention<M: Module>(
    trainable: &mut Trainable<M>,
    place: Place,
    index: usize,
    gradient: &AttentionGradient,
) {
    let AttentionGradient { gain, bias, projection, projection_bias, output, output_bias } = gradient;
    let parts = [gain, bias, projection, projection_bias, output, output_bias];
    add(trainable, names(trainable.flat(), place, ATTENTION, index), parts);
}

/// Adds the gradient of [`feed_forward`] to a model's gradient.
pub(crate) fn add_feed_forward<M: Module>(
    trainable: &mut Trainable<M>,
    place: Place,
    index: usize,
    gradient: &FeedForwardGradient,
) {
    let FeedForwardGradient { gain, bias, hidden, hidden_bias, contraction, contraction_bias } = gradient;
    let parts = [gain, bias, hidden, hidden_bias, contraction, contraction_bias];
    add(trainable, names(trainable.flat(), place, FEED_FORWARD, index), parts);
}

fn add<M: Module>(trainable: &mut Trainable<M>, names: [String; 6], parts: [&Buffer; 6]) {
    for (name, values) in names.iter().zip(parts) {
        trainable.add_to_gradient(name, values);
    }
}
