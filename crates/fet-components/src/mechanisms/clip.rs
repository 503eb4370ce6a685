//! Clipping of each primary row's K × H block to a bounded L2 norm. A block with NaN or infinity becomes
//! zeros.

use burn::tensor::Tensor;
use fet_core::privacy::unbounded_blocks;

/// Multiplies each row's block by min(1, bound / its L2 norm); a block whose norm is not finite becomes
/// zeros. The gradient also passes through the norm.
///
/// # Shapes
/// - `representation` and the result: [B, K, H]
pub fn clip_blocks(representation: Tensor<3>, bound: f64) -> Tensor<3> {
    let shape @ [rows, _, _] = representation.dims();
    let unbounded = unbounded_blocks(&representation).reshape([rows, 1, 1]).expand(shape);
    // Filled before the norm is computed: the derivative of a norm that is not finite would be NaN.
    let representation = representation.mask_fill(unbounded, 0.0);
    let flat = representation.clone().reshape([rows as i32, -1]);
    // The square root has no derivative at 0; the added term is far below any valid bound.
    let norms = flat.powi_scalar(2).sum_dim(1).add_scalar(1e-12).sqrt();
    let factors = norms.clamp_min(bound).recip().mul_scalar(bound);
    representation * factors.reshape([rows, 1, 1])
}

/// Sets each block of `block` values that holds NaN or infinity to zero.
pub(super) fn blank_unbounded(values: &mut [f32], block: usize) {
    for block in values.chunks_mut(block.max(1)) {
        if !block.iter().all(|value| value.is_finite()) {
            block.fill(0.0);
        }
    }
}
