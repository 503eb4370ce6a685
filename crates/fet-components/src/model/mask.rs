//! The dynamic mask, which holds learned soft weights of links (paper, section 4.3), and the hard mask of
//! absent positions.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

use super::{Gelu, Init, Linear, linear};

/// M = W₂ GELU(W₁ vec(keys of the K neighbours)), added to attention logits per neighbour.
///
/// It sees only the secondary's own keys, so that no similarity crosses a party boundary.
#[derive(Module, Debug)]
pub struct DynamicMask {
    /// W₁, mK → 2mK.
    pub hidden: Linear,
    /// W₂, 2mK → K.
    pub output: Linear,
    gelu: Gelu,
}

impl DynamicMask {
    /// Makes a mask over `neighbours` (K) keys of `key_columns` (m) dimensions.
    pub fn new(init: &mut Init<'_>, key_columns: usize, neighbours: usize) -> Self {
        let inputs = key_columns * neighbours;
        let hidden = linear(init, inputs, 2 * inputs);
        Self { hidden, output: linear(init, 2 * inputs, neighbours), gelu: Gelu::new(init.device()) }
    }

    /// # Shapes
    /// - keys: [B, K·m], result: [B, K]
    pub fn forward(&self, keys: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.gelu.forward(self.hidden.forward(keys)))
    }
}

/// Far below any logit, but finite: an infinity would give NaN if a whole row is masked.
const PADDED: f32 = -1e9;

/// Returns the mask that excludes positions from `available` on, [rows, positions]; `None` if all positions
/// are real.
pub fn padding_mask(rows: usize, positions: usize, available: usize, device: &Device) -> Option<Tensor<2>> {
    let row = padding(positions, available)?;
    let mask = Tensor::<2>::from_data(TensorData::new(row, [1, positions]), device);
    Some(mask.repeat_dim(0, rows))
}

/// Returns one row of the mask of [`padding_mask`].
pub fn padding(positions: usize, available: usize) -> Option<Vec<f32>> {
    (available < positions)
        .then(|| (0..positions).map(|k| if k < available { 0.0 } else { PADDED }).collect())
}
