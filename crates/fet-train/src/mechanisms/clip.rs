//! Clipping: each primary row's K × H block to a bounded L2 norm.

use burn::tensor::Tensor;

/// Each row's block times min(1, bound / its L2 norm); differentiable, through the norm too.
///
/// # Shapes
/// - `representation` and the result: [B, K, H]
pub fn clip_blocks(representation: Tensor<3>, bound: f64) -> Tensor<3> {
    let [rows, _, _] = representation.dims();
    let flat = representation.clone().reshape([rows as i32, -1]);
    // The square root has no derivative at 0; what is added is far below any bound that is allowed.
    let norms = flat.powi_scalar(2).sum_dim(1).add_scalar(1e-12).sqrt();
    let factors = norms.clamp_min(bound).recip().mul_scalar(bound);
    representation * factors.reshape([rows, 1, 1])
}
