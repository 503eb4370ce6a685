//! Shared part of the SplitNN methods: local models that see features, and keys only in encoded form.

use fet_components::model::{Init, KeyEncoding, Perceptron};
use fet_core::encoder::{Encoder, EncoderContext};
use fet_core::method::SecondaryContext;
use fet_core::model::MOST_WIDTH;
use fet_core::model::ModelShape;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Slot, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The primary's local model, and the width of all representations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Local {
    /// The widths of the hidden layers of the primary's local model, in order; empty for none. The encoder slot defines the secondaries'
    /// local models.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub hidden: Vec<usize>,
    /// The width of every party's representation.
    #[schemars(range(min = 1, max = MOST_WIDTH))]
    pub width: usize,
}

impl Default for Local {
    fn default() -> Self {
        Self { hidden: vec![200], width: 100 }
    }
}

impl Local {
    pub(crate) fn model(&self, init: &mut Init<'_>, inputs: usize, dropout: f64) -> Perceptron {
        Perceptron::new(init, inputs, &self.hidden, self.width, dropout)
    }
}

/// Settings of the secondaries' local models.
pub(crate) struct SecondaryModel<'a> {
    /// Width of the representations.
    pub(crate) width: usize,
    pub(crate) dropout: f64,
    /// Encoding of the keys; without an encoding, the models see no keys.
    pub(crate) key_encoding: &'a KeyEncoding,
    pub(crate) optimizer: &'a OptimizerSettings,
}

impl SecondaryModel<'_> {
    /// Builds the local model of one secondary.
    pub(crate) fn build(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        let encodes_keys = self.key_encoding.width > 0;
        let shape = ModelShape {
            hidden: self.width,
            heads: 1,
            dropout: self.dropout,
            positional_encoding: encodes_keys,
            frequency_std: self.key_encoding.frequency_std,
            shared_norm: false,
        };
        encoder.build(&EncoderContext {
            device: context.device,
            weights: context.weights.clone(),
            neighbours: context.neighbours,
            key_columns: if encodes_keys { context.key_columns } else { 0 },
            feature_columns: context.feature_columns,
            computation: context.computation,
            shape: &shape,
            optimizer: self.optimizer,
        })
    }
}
