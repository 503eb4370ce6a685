//! The Federated Transformer's encoding of keys, for a baseline that would otherwise see them raw, or not at all.
//!
//! Without it a comparison shows what the encoding of the primary's own key is worth, as much as what others add.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_core::memory::MOST_WIDTH;
use fet_core::registry::Violation;
use fet_train::model::{FourierEncoding, Init};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether and how a baseline encodes keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyEncoding {
    /// The width of learnable Fourier features of the key beside the other inputs (as in `fet`; paper, section 4.2); 0 for
    /// none, as in the paper.
    #[schemars(range(min = 0, max = MOST_WIDTH), extend("x-rule" = "even"))]
    pub width: usize,
    /// The standard deviation of their initial frequencies.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub frequency_std: f64,
}

impl Default for KeyEncoding {
    fn default() -> Self {
        Self { width: 0, frequency_std: 20.0 }
    }
}

impl KeyEncoding {
    pub(crate) fn check(&self) -> Result<(), Violation> {
        match self.width.is_multiple_of(2) {
            true => Ok(()),
            false => Err(Violation::new("key_encoding.width", "must be even", self.width)),
        }
    }

    pub(crate) fn layer(&self, init: &mut Init<'_>, key_columns: usize) -> Option<FourierEncoding> {
        (self.width > 0).then(|| FourierEncoding::new(init, key_columns, self.width, self.frequency_std))
    }
}

/// The inputs of a model: the encoded key, if it is encoded, before the others.
#[derive(Module, Debug)]
pub(crate) struct Inputs {
    position: Option<FourierEncoding>,
}

impl Inputs {
    pub(crate) fn new(init: &mut Init<'_>, encoding: &KeyEncoding, key_columns: usize) -> Self {
        Self { position: encoding.layer(init, key_columns) }
    }

    /// # Shapes
    /// - keys: [n, m], others: [n, d], result: [n, `width` + d]
    pub(crate) fn join(&self, keys: Tensor<2>, others: Tensor<2>) -> Tensor<2> {
        match &self.position {
            Some(position) => Tensor::cat(vec![position.forward(keys), others], 1),
            None => others,
        }
    }
}
