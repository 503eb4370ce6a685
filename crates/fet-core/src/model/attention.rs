//! Multi-head attention with an additive mask over the positions that are attended to.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use super::{Init, Linear, Pass, linear};

/// softmax(QKᵀ/√(H/heads) + mask) V, heads side by side, as PyTorch's `MultiheadAttention`.
///
/// Q, K and V are one parameter, as there: the trust ratio of LAMB is per parameter.
#[derive(Module, Debug)]
pub struct Attention {
    /// H → 3H: queries, keys and values, in this order.
    pub projection: Linear,
    /// H → H.
    pub output: Linear,
    heads: usize,
    dropout: f64,
}

impl Attention {
    /// `heads` must divide `width` (H).
    pub fn new(init: &mut Init<'_>, width: usize, heads: usize, dropout: f64) -> Self {
        // Xavier uniform over the stacked matrix and zero biases, as PyTorch has them.
        let bound = (6.0 / (4 * width) as f64).sqrt();
        let weight = init.uniform([width, 3 * width], bound);
        let projection = Linear { weight, bias: Some(init.constant([3 * width], 0.0)) };
        let mut output = linear(init, width, width);
        output.bias = Some(init.constant([width], 0.0));
        Self { projection, output, heads, dropout }
    }

    /// Attention of a sequence to itself.
    ///
    /// # Shapes
    /// - input and result: [B, L, H]
    /// - mask: [B, L], added to the logits of each position attended to
    pub fn to_itself(&self, input: Tensor<3>, mask: Option<Tensor<2>>, pass: &mut Pass) -> Tensor<3> {
        let width = input.dims()[2];
        let projected = self.projection.forward(input);
        let part = |index: usize| projected.clone().narrow(2, index * width, width);
        self.attend(part(0), part(1), part(2), mask, pass)
    }

    /// Attention of a sequence to a memory.
    ///
    /// # Shapes
    /// - input and result: [B, L, H], memory: [B, S, H]
    /// - mask: [B, S], added to the logits of each position of the memory
    pub fn to_memory(
        &self,
        input: Tensor<3>,
        memory: Tensor<3>,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let width = input.dims()[2];
        let projected = self.projected(memory, width, 2 * width);
        let keys = projected.clone().narrow(2, 0, width);
        let values = projected.narrow(2, width, width);
        let queries = self.projected(input, 0, width);
        self.attend(queries, keys, values, mask, pass)
    }

    /// The columns `start..start + length` of the stacked projection of `input`.
    fn projected(&self, input: Tensor<3>, start: usize, length: usize) -> Tensor<3> {
        let weight = self.projection.weight.val().narrow(1, start, length);
        let bias = self.projection.bias.as_ref().map(|bias| bias.val().narrow(0, start, length));
        burn::tensor::module::linear(input, weight, bias)
    }

    fn attend(
        &self,
        queries: Tensor<3>,
        keys: Tensor<3>,
        values: Tensor<3>,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [batch, length, width] = queries.dims();
        let head = width / self.heads;
        let split = |x: Tensor<3>| {
            let positions = x.dims()[1];
            x.reshape([batch, positions, self.heads, head]).swap_dims(1, 2)
        };
        let queries = split(queries).div_scalar((head as f64).sqrt());
        let mut logits = queries.matmul(split(keys).transpose());
        if let Some(mask) = mask {
            let positions = mask.dims()[1];
            logits = logits + mask.reshape([batch, 1, 1, positions]);
        }
        let weights = pass.dropout(activation::softmax(logits, 3), self.dropout);
        let attended = weights.matmul(split(values)).swap_dims(1, 2).reshape([batch, length, width]);
        self.output.forward(attended)
    }
}
