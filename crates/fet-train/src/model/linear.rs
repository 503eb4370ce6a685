//! Burn's affine map, with host-drawn weights.

pub use burn::nn::Linear;

use super::Init;

/// A linear layer initialised as PyTorch's: weight and bias uniform in ±1/√inputs.
///
/// # Shapes
/// - input: [.., inputs], output: [.., outputs]
pub fn linear(init: &mut Init<'_>, inputs: usize, outputs: usize) -> Linear {
    let bound = 1.0 / (inputs as f64).sqrt();
    let weight = init.uniform([inputs, outputs], bound);
    Linear { weight, bias: Some(init.uniform([outputs], bound)) }
}
