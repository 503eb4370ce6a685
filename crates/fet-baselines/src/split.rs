//! The shared part of the SplitNN methods: local models that see features and no keys.

use fet_core::encoder::{Encoder, EncoderContext};
use fet_core::method::SecondaryContext;
use fet_core::model::ModelShape;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Slot, Violation};
use fet_train::model::{Init, Perceptron};
use serde::{Deserialize, Serialize};

/// The primary's local model, and the width of all representations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Local {
    /// Widths of the hidden layers of the primary's local model; the secondaries' are the encoder's.
    pub hidden: Vec<usize>,
    /// Width of every party's representation.
    pub width: usize,
}

impl Default for Local {
    fn default() -> Self {
        Self { hidden: vec![200], width: 100 }
    }
}

impl Local {
    pub(crate) fn check(&self) -> Result<(), Violation> {
        check_widths("hidden", &self.hidden).map_err(|violation| violation.within("local"))?;
        if self.width == 0 {
            return Err(Violation::new("local.width", "must be at least 1", 0));
        }
        Ok(())
    }

    pub(crate) fn model(&self, init: &mut Init<'_>, inputs: usize, dropout: f64) -> Perceptron {
        Perceptron::new(init, inputs, &self.hidden, self.width, dropout)
    }
}

/// Refuses layers of width 0.
pub(crate) fn check_widths(field: &str, widths: &[usize]) -> Result<(), Violation> {
    if widths.contains(&0) {
        return Err(Violation::new(field, "must name widths of at least 1", format!("{widths:?}")));
    }
    Ok(())
}

/// A secondary's local model, without keys.
pub(crate) fn secondary(
    encoder: &Slot<dyn Encoder>,
    context: &SecondaryContext<'_>,
    local: &Local,
    dropout: f64,
    optimizer: &OptimizerSettings,
) -> Result<Box<dyn Encoder>, Violation> {
    let shape = ModelShape {
        hidden: local.width,
        heads: 1,
        dropout,
        positional_encoding: false,
        frequency_std: 1.0,
        shared_norm: false,
    };
    encoder.build(&EncoderContext {
        device: context.device,
        weights: context.weights.clone(),
        neighbours: context.neighbours,
        key_columns: 0,
        feature_columns: context.feature_columns,
        computation: context.computation,
        shape: &shape,
        optimizer,
    })
}
