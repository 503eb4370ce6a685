//! Encodings of keys beside a model's other inputs, for a method that would otherwise see them raw, or not at all.
//!
//! Without it a comparison shows what the encoding of the primary's own key is worth, as much as what others add.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_core::model::MOST_WIDTH;
use fet_core::registry::Violation;

use super::{FourierEncoding, GridEncoding, Init};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether and how a model encodes keys.
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
    /// Learned grids over the key, of the primary's model alone.
    pub grid: Grid,
}

/// Learned grids of several cell sizes over keys that are numbers (Müller et al. 2022): each pair of key columns gets a vector from each
/// of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// The width of the vectors of a grid; 0 for no grids.
    #[schemars(range(min = 0, max = 256))]
    pub width: usize,
    /// The number of grids; each has cells of half the size of those before.
    #[schemars(range(min = 1, max = 24))]
    pub levels: usize,
    /// The side of the first grid's cells, in the unit in which models see keys: standard deviations where they are standardised.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub coarsest: f64,
    /// How many vectors a grid has, rounded up to a power of two: corners of fine grids share them by a hash.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub places: usize,
}

impl Default for KeyEncoding {
    fn default() -> Self {
        Self { width: 0, frequency_std: 20.0, grid: Grid::default() }
    }
}

impl Default for Grid {
    fn default() -> Self {
        Self { width: 0, levels: 7, coarsest: 1.0, places: 8192 }
    }
}

impl Grid {
    fn layer(&self, init: &mut Init<'_>, key_columns: usize) -> Option<GridEncoding> {
        let Self { width, levels, coarsest, places } = *self;
        (width > 0 && key_columns > 0)
            .then(|| GridEncoding::new(init, key_columns, levels, places, width, coarsest))
    }

    fn outputs(&self, key_columns: usize) -> usize {
        if self.width > 0 && key_columns > 0 {
            GridEncoding::outputs(key_columns, self.levels, self.width)
        } else {
            0
        }
    }
}

impl KeyEncoding {
    /// What a schema cannot say.
    pub fn check(&self) -> Result<(), Violation> {
        match self.width.is_multiple_of(2) {
            true => Ok(()),
            false => Err(Violation::new("key_encoding.width", "must be even", self.width)),
        }
    }

    /// The width of the encoded key.
    pub fn outputs(&self, key_columns: usize) -> usize {
        self.width + self.grid.outputs(key_columns)
    }

    fn layer(&self, init: &mut Init<'_>, key_columns: usize) -> Option<FourierEncoding> {
        (self.width > 0).then(|| FourierEncoding::new(init, key_columns, self.width, self.frequency_std))
    }
}

/// The inputs of a model: the encoded key, if it is encoded, before the others.
#[derive(Module, Debug)]
pub struct Inputs {
    position: Option<FourierEncoding>,
    grid: Option<GridEncoding>,
}

impl Inputs {
    /// Layers for keys of `key_columns` columns.
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
