//! A party's embedding of its records: features and key through one linear map, plus the positional encoding
//! of the key.

use burn::module::Module;
use burn::tensor::Tensor;

use super::{FourierEncoding, Init, Linear, linear};
use fet_core::model::ModelShape;

/// e = W [key, features] + PE(key).
#[derive(Module, Debug)]
pub struct Embedding {
    /// W, m + d → H.
    pub input: Linear,
    /// PE, if used.
    pub position: Option<FourierEncoding>,
}

impl Embedding {
    /// Prefix of the positional encoding's parameter names, in every model with an embedding.
    pub const POSITION: &'static str = "embedding.position.";

    /// Makes an embedding of `key_columns` + `feature_columns` inputs.
    pub fn new(init: &mut Init<'_>, key_columns: usize, feature_columns: usize, shape: &ModelShape) -> Self {
        let input = linear(init, key_columns + feature_columns, shape.hidden);
        let position = shape
            .positional_encoding
            .then(|| FourierEncoding::new(init, key_columns, shape.hidden, shape.frequency_std));
        Self { input, position }
    }

    /// # Shapes
    /// - keys: [n, m], features: [n, d], result: [n, H]
    pub fn forward(&self, keys: Tensor<2>, features: Tensor<2>) -> Tensor<2> {
        let embedded = self.input.forward(Tensor::cat(vec![keys.clone(), features], 1));
        match &self.position {
            Some(position) => embedded + position.forward(keys),
            None => embedded,
        }
    }
}
