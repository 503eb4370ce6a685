//! Encodings of keys as additional inputs of a model, for a method that would otherwise see raw keys or no
//! keys.
//!
//! Without such an encoding, a comparison with `fet` would mix two effects: the encoding of the primary's own
//! key, and the contribution of the other parties.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_core::model::MOST_WIDTH;
use fet_core::registry::Violation;

use super::grid::{Grid, GridEncoding};
use super::{FourierEncoding, Init};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Encoding of keys as inputs of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyEncoding {
    /// Width of learnable Fourier features of the key as additional inputs (as in `fet`; paper, section 4.2);
    /// 0 for none, as in the paper.
    #[schemars(range(min = 0, max = MOST_WIDTH), extend("x-rule" = "even"))]
    pub width: usize,
    /// Standard deviation of the initial frequencies of the Fourier features.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub frequency_std: f64,
    /// Learned grids over the key, only in the primary's model.
    pub grid: Grid,
}

impl Default for KeyEncoding {
    fn default() -> Self {
        Self { width: 0, frequency_std: 20.0, grid: Grid::default() }
    }
}

impl KeyEncoding {
    /// Checks rules that a schema cannot express.
    pub fn check(&self) -> Result<(), Violation> {
        match self.width.is_multiple_of(2) {
            true => Ok(()),
            false => Err(Violation::new("key_encoding.width", "must be even", self.width)),
        }
    }

    /// Returns the width of the encoded key.
    pub fn outputs(&self, key_columns: usize) -> usize {
        self.width + self.grid.outputs(key_columns)
    }

    fn layer(&self, init: &mut Init<'_>, key_columns: usize) -> Option<FourierEncoding> {
        (self.width > 0).then(|| FourierEncoding::new(init, key_columns, self.width, self.frequency_std))
    }
}

/// Inputs of a model: the encoded key, if keys are encoded, followed by the other inputs.
#[derive(Module, Debug)]
pub struct Inputs {
    position: Option<FourierEncoding>,
    grid: Option<GridEncoding>,
}

impl Inputs {
    /// Makes layers for keys of `key_columns` columns.
    pub fn new(init: &mut Init<'_>, encoding: &KeyEncoding, key_columns: usize) -> Self {
        let position = encoding.layer(init, key_columns);
        Self { position, grid: encoding.grid.layer(init, key_columns) }
    }

    /// # Shapes
    /// - keys: [n, m], others: [n, d], result: [n, [`KeyEncoding::outputs`] + d]
    pub fn join(&self, keys: Tensor<2>, others: Tensor<2>) -> Tensor<2> {
        let position = self.position.as_ref().map(|position| position.forward(keys.clone()));
        let grid = self.grid.as_ref().map(|grid| grid.forward(keys));
        let parts: Vec<Tensor<2>> = position.into_iter().chain(grid).chain([others]).collect();
        if parts.len() == 1 { parts.into_iter().next().expect("one part") } else { Tensor::cat(parts, 1) }
    }
}
