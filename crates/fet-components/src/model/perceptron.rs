//! A multi-layer perceptron: affine maps with ReLU between them, and no activation after the last.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use super::{Init, Linear, apply, linear};
use fet_core::model::Pass;

/// Layers of the given widths.
#[derive(Module, Debug)]
pub struct Perceptron {
    /// The affine maps.
    pub layers: Vec<Linear>,
    dropout: f64,
}

impl Perceptron {
    /// Makes layers from `inputs` through the `hidden` widths to `outputs`; `dropout` follows each hidden
    /// layer.
    pub fn new(init: &mut Init<'_>, inputs: usize, hidden: &[usize], outputs: usize, dropout: f64) -> Self {
        let widths: Vec<usize> = [&[inputs], hidden, &[outputs]].concat();
        Self { layers: widths.windows(2).map(|pair| linear(init, pair[0], pair[1])).collect(), dropout }
    }

    /// # Shapes
    /// - input: [.., inputs], result: [.., outputs]
    pub fn forward<const D: usize>(&self, mut x: Tensor<D>, pass: &mut Pass) -> Tensor<D> {
        for (index, layer) in self.layers.iter().enumerate() {
            if index > 0 {
                x = pass.dropout(activation::relu(x), self.dropout);
            }
            x = apply(layer, x);
        }
        x
    }
}
