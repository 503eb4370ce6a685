//! `mlp`: encodes each neighbour independently, without attention, as the ablation of the transformer.
//!
//! If models see keys, a neighbour is embedded as in `transformer`, including positional encoding. Links are
//! not weighted against each other, so a mask is not needed.

use burn::module::Module;
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Embedding, Init, NumberEncoding, Perceptron, PeriodicEncoding};
use fet_core::encoder::{Encoder, EncoderContext, LocalModel, NeighbourBatch, Network};
use fet_core::model::MOST_WIDTH;
use fet_core::model::Pass;
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `mlp`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MlpSettings {
    /// Widths of the perceptron's hidden layers, in order; empty for an affine model.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub hidden: Vec<usize>,
    /// Encoding of the columns, next to their values.
    pub number_encoding: NumberEncoding,
}

impl Default for MlpSettings {
    fn default() -> Self {
        Self { hidden: vec![200], number_encoding: NumberEncoding::default() }
    }
}

impl Recipe<dyn Encoder> for MlpSettings {
    fn build(&self, context: &EncoderContext<'_>) -> Result<Box<dyn Encoder>, Violation> {
        Ok(Box::new(LocalModel::new(Mlp::new(self, context), context)))
    }
}

inventory::submit! {
    Plugin::<dyn Encoder>::new::<MlpSettings>("mlp", "a multi-layer perceptron on each neighbour separately")
}

#[derive(Module, Debug)]
struct Mlp {
    numbers: Option<PeriodicEncoding>,
    embedding: Option<Embedding>,
    network: Perceptron,
}

impl Mlp {
    fn new(settings: &MlpSettings, context: &EncoderContext<'_>) -> Self {
        let mut init = Init::new(context.weights.clone(), context.device);
        let (keys, features) = (context.key_columns, context.feature_columns);
        let (width, dropout) = (context.shape.hidden, context.shape.dropout);
        let numbers = settings.number_encoding.layer(&mut init, features);
        let features = features + settings.number_encoding.outputs(features);
        let embedding = (keys > 0).then(|| Embedding::new(&mut init, keys, features, context.shape));
        let inputs = if embedding.is_some() { width } else { features };
        Self {
            numbers,
            embedding,
            network: Perceptron::new(&mut init, inputs, &settings.hidden, width, dropout),
        }
    }
}

impl Network for Mlp {
    fn forward(&self, batch: &NeighbourBatch, pass: &mut Pass) -> Tensor<3> {
        let features = match &self.numbers {
            Some(numbers) => {
                Tensor::cat(vec![batch.features.clone(), numbers.forward(batch.features.clone())], 1)
            }
            None => batch.features.clone(),
        };
        let inputs = match &self.embedding {
            Some(embedding) => embedding.forward(batch.keys.clone(), features),
            None => features,
        };
        let encoded = self.network.forward(inputs, pass);
        let width = encoded.dims()[1];
        encoded.select(0, batch.slots.clone()).reshape([batch.rows, batch.neighbours, width])
    }
}
