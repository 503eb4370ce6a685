//! Learnable Fourier features as a positional encoding of multi-dimensional keys (Li et al. 2021, one group;
//! paper, section 4.2).

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{Gelu, Init, Linear, linear};

/// PE(x) = W₂ GELU(W₁ f), f = [cos r, sin r]/√H, r = x·Wr.
#[derive(Module, Debug)]
pub struct FourierEncoding {
    /// Wr, [m, H/2].
    pub frequencies: Param<Tensor<2>>,
    /// W₁, H → 2H.
    pub hidden: Linear,
    /// W₂, 2H → H.
    pub output: Linear,
    gelu: Gelu,
}

impl FourierEncoding {
    /// Draws frequencies ~ N(0, `frequency_std`²). `width` (H) must be even.
    pub fn new(init: &mut Init<'_>, key_columns: usize, width: usize, frequency_std: f64) -> Self {
        Self {
            frequencies: init.normal([key_columns, width / 2], frequency_std),
            hidden: linear(init, width, 2 * width),
            output: linear(init, 2 * width, width),
            gelu: Gelu::new(init.device()),
        }
    }

    /// # Shapes
    /// - keys: [n, m], result: [n, H]
    pub fn forward(&self, keys: Tensor<2>) -> Tensor<2> {
        let projected = keys.matmul(self.frequencies.val());
        let width = 2 * projected.dims()[1];
        let features = Tensor::cat(vec![projected.clone().cos(), projected.sin()], 1);
        let features = features.div_scalar((width as f64).sqrt());
        self.output.forward(self.gelu.forward(self.hidden.forward(features)))
    }
}
