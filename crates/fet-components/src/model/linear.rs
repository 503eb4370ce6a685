//! Burn's affine map, with host-drawn weights.

pub use burn::nn::Linear;
use burn::tensor::Tensor;

use super::Init;

/// Makes a linear layer with PyTorch's initialisation: weight and bias uniform in ±1/√inputs.
///
/// # Shapes
/// - input: [.., inputs], output: [.., outputs]
pub fn linear(init: &mut Init<'_>, inputs: usize, outputs: usize) -> Linear {
    let bound = 1.0 / (inputs as f64).sqrt();
    let weight = init.uniform([inputs, outputs], bound);
    Linear { weight, bias: Some(init.uniform([outputs], bound)) }
}

/// Applies a layer so that a row's result does not depend on the other rows. A product with one column is
/// computed as one with two: numeric libraries compute a single column by another path, whose rounding
/// depends on the row's place in the batch.
///
/// # Shapes
/// - input: [.., inputs], result: [.., outputs]
pub fn apply<const D: usize>(layer: &Linear, input: Tensor<D>) -> Tensor<D> {
    let weight = layer.weight.val();
    let [inputs, outputs] = weight.dims();
    if outputs != 1 {
        return layer.forward(input);
    }
    let padding = Tensor::zeros([inputs, 1], &weight.device());
    let mut output = burn::tensor::module::linear(input, Tensor::cat(vec![weight, padding], 1), None);
    output = output.narrow(D - 1, 0, 1);
    match &layer.bias {
        Some(bias) => output + bias.val().unsqueeze(),
        None => output,
    }
}
