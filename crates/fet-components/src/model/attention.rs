//! Multi-head attention with an additive mask over the attended positions.

use burn::module::Module;
use burn::tensor::{Tensor, activation};

use super::{Init, Linear, linear};
use fet_core::model::Pass;

/// softmax(QKᵀ/√(H/heads) + mask) V, with concatenated heads, as PyTorch's `MultiheadAttention`.
///
/// Q, K and V are one parameter, as in PyTorch: the trust ratio of LAMB is per parameter.
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
    /// Makes an attention layer; `heads` must divide `width` (H).
    pub fn new(init: &mut Init<'_>, width: usize, heads: usize, dropout: f64) -> Self {
        // Xavier uniform over the stacked matrix and zero biases, as in PyTorch.
        let bound = (6.0 / (4 * width) as f64).sqrt();
        let weight = init.uniform([width, 3 * width], bound);
        let projection = Linear { weight, bias: Some(init.constant([3 * width], 0.0)) };
        let mut output = linear(init, width, width);
        output.bias = Some(init.constant([width], 0.0));
        Self { projection, output, heads, dropout }
    }

    /// Computes attention of a sequence to itself.
    ///
    /// # Shapes
    /// - input and result: [B, L, H]
    /// - mask: [B, L], added to the logits of each attended position
    pub fn to_itself(&self, input: Tensor<3>, mask: Option<Tensor<2>>, pass: &mut Pass) -> Tensor<3> {
        self.among(self.projection.forward(input), mask, pass)
    }

    /// Computes attention of a sequence to itself from given queries, keys and values.
    ///
    /// # Shapes
    /// - projected: [B, L, 3H], mask: [B, L], result: [B, L, H]
    pub fn among(&self, projected: Tensor<3>, mask: Option<Tensor<2>>, pass: &mut Pass) -> Tensor<3> {
        let width = projected.dims()[2] / 3;
        let part = |index: usize| projected.clone().narrow(2, index * width, width);
        self.attend(part(0), part(1), part(2), mask, pass)
    }

    /// Computes attention of one position to a memory without projecting the memory.
    ///
    /// For head h with query q, the logit of position m is q·(W_K m + b_K) = (q W_K)·m + a constant, which
    /// cancels in the softmax; and Σ w (W_V m + b_V) = W_V Σ w m + b_V Σ w. So W_K is folded into the query
    /// and W_V follows the weighted sum: about 4·heads·K·H operations a row instead of 4·K·H². The sum of the
    /// weights is not 1 under dropout, and is kept.
    ///
    /// # Shapes
    /// - input and result: [B, 1, H], memory: [B, S, H]
    /// - mask: [B, S], added to the logits of each position of the memory
    pub fn to_memory(
        &self,
        input: Tensor<3>,
        memory: Tensor<3>,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [batch, length, width] = input.dims();
        assert_eq!(length, 1, "one position attends to the memory");
        let (heads, head) = (self.heads, width / self.heads);
        // [heads, H, head]: the columns of a stacked projection, head by head.
        let weight = |start: usize| {
            let columns = self.projection.weight.val().narrow(1, start, width);
            columns.reshape([width, heads, head]).swap_dims(0, 1)
        };
        let by_head = |x: Tensor<3>| x.reshape([batch, heads, head]).swap_dims(0, 1);
        let queries = by_head(self.projected(input, 0, width)).div_scalar((head as f64).sqrt());
        let absorbed = queries.matmul(weight(width).transpose()).swap_dims(0, 1);
        let mut logits = absorbed.matmul(memory.clone().transpose());
        if let Some(mask) = mask {
            let positions = mask.dims()[1];
            logits = logits + mask.reshape([batch, 1, positions]);
        }
        let weights = pass.dropout(activation::softmax(logits, 2), self.dropout);
        let total = weights.clone().sum_dim(2).swap_dims(0, 1);
        let context = weights.matmul(memory).swap_dims(0, 1);
        let mut attended = context.matmul(weight(2 * width));
        if let Some(bias) = &self.projection.bias {
            attended = attended + total * bias.val().narrow(0, 2 * width, width).reshape([heads, 1, head]);
        }
        self.output.forward(attended.swap_dims(0, 1).reshape([batch, 1, width]))
    }

    /// Computes [`Attention::to_memory`] by its definition, with projected keys and values, for any number of
    /// positions.
    ///
    /// # Shapes
    /// - input and result: [B, L, H], memory: [B, S, H]
    /// - mask: [B, S], added to the logits of each position of the memory
    pub fn to_memory_by_definition(
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

    /// Returns the columns `start..start + length` of the stacked projection of `input`.
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
