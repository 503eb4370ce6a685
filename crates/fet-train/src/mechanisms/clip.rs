//! Clipping of each primary row's K × H block to a bounded L2 norm. A block with NaN or infinity becomes
//! zeros.

use burn::tensor::{Bool, Tensor};
use fet_core::parameters::host;

/// Multiplies each row's block by min(1, bound / its L2 norm); a block whose norm is not finite becomes
/// zeros. Differentiable, also through the norm.
///
/// # Shapes
/// - `representation` and the result: [B, K, H]
pub fn clip_blocks(representation: Tensor<3>, bound: f64) -> Tensor<3> {
    let shape @ [rows, _, _] = representation.dims();
    let unbounded = unbounded(&representation).reshape([rows, 1, 1]).expand(shape);
    // Filled before the norm is computed: the derivative of a norm that is not finite would be NaN.
    let representation = representation.mask_fill(unbounded, 0.0);
    let flat = representation.clone().reshape([rows as i32, -1]);
    // The square root has no derivative at 0; the added term is far below any valid bound.
    let norms = flat.powi_scalar(2).sum_dim(1).add_scalar(1e-12).sqrt();
    let factors = norms.clamp_min(bound).recip().mul_scalar(bound);
    representation * factors.reshape([rows, 1, 1])
}

/// Returns the number of blocks without a finite norm, which clipping sets to zero.
pub(crate) fn unbounded_blocks(representation: &Tensor<3>) -> usize {
    host(unbounded(representation).float()).iter().filter(|&&one| one > 0.0).count()
}

/// Returns true for each row whose block's norm is not finite, [B, 1].
fn unbounded(representation: &Tensor<3>) -> Tensor<2, Bool> {
    let [rows, _, _] = representation.dims();
    let flat = representation.clone().reshape([rows as i32, -1]);
    flat.powi_scalar(2).sum_dim(1).is_finite().bool_not()
}

/// Sets each block of `block` values that holds NaN or infinity to zero.
pub(super) fn blank_unbounded(values: &mut [f32], block: usize) {
    for block in values.chunks_mut(block.max(1)) {
        if !block.iter().all(|value| value.is_finite()) {
            block.fill(0.0);
        }
    }
}
