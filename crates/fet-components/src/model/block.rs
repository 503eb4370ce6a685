//! Pre-norm transformer blocks, and the chain of them that a secondary runs.

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::{Device, Int, Tensor};

use super::{Attention, Gelu, Init, Linear, linear};
use fet_core::model::{ModelShape, Pass};

/// Layer norms of one place in a chain: one for each block, or one shared by all blocks.
#[derive(Module, Debug)]
pub struct Norms {
    /// One norm, or one for each block.
    pub each: Vec<LayerNorm>,
}

impl Norms {
    /// Makes norms for `blocks` blocks.
    pub fn new(device: &Device, blocks: usize, shape: &ModelShape) -> Self {
        let count = if shape.shared_norm { 1 } else { blocks };
        Self { each: (0..count).map(|_| LayerNormConfig::new(shape.hidden).init(device)).collect() }
    }

    /// Applies the norm of block `index`.
    pub fn forward(&self, index: usize, input: Tensor<3>) -> Tensor<3> {
        self.each[index % self.each.len()].forward(input)
    }
}

/// H → 2H → H with GELU and dropout between.
#[derive(Module, Debug)]
pub struct FeedForward {
    /// H → 2H.
    pub hidden: Linear,
    /// 2H → H.
    pub output: Linear,
    gelu: Gelu,
    dropout: f64,
}

impl FeedForward {
    /// Makes a feed-forward layer of width H.
    pub fn new(init: &mut Init<'_>, width: usize, dropout: f64) -> Self {
        let hidden = linear(init, width, 2 * width);
        Self { hidden, output: linear(init, 2 * width, width), gelu: Gelu::new(init.device()), dropout }
    }

    /// # Shapes
    /// - input and result: [B, L, H]
    pub fn forward(&self, input: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        let hidden = self.gelu.forward(self.hidden.forward(input));
        self.output.forward(pass.dropout(hidden, self.dropout))
    }
}

/// Self-attention and feed-forward; the norms belong to the chain.
#[derive(Module, Debug)]
pub struct AttentionBlock {
    /// Attention between the neighbours.
    pub attention: Attention,
    /// Feed-forward layer after the attention.
    pub feed_forward: FeedForward,
}

/// x ← x + Drop(MHA(LN₁ x, +M)); x ← x + FFN(LN₂ x), block after block, without a final norm.
#[derive(Module, Debug)]
pub struct BlockChain {
    /// The blocks.
    pub blocks: Vec<AttentionBlock>,
    /// LN₁.
    pub attention_norms: Norms,
    /// LN₂.
    pub feed_forward_norms: Norms,
    dropout: f64,
}

impl BlockChain {
    /// Makes a chain of `blocks` blocks.
    pub fn new(init: &mut Init<'_>, device: &Device, blocks: usize, shape: &ModelShape) -> Self {
        let block = |_| AttentionBlock {
            attention: Attention::new(init, shape.hidden, shape.heads, shape.dropout),
            feed_forward: FeedForward::new(init, shape.hidden, shape.dropout),
        };
        Self {
            blocks: (0..blocks).map(block).collect(),
            attention_norms: Norms::new(device, blocks, shape),
            feed_forward_norms: Norms::new(device, blocks, shape),
            dropout: shape.dropout,
        }
    }

    /// Encodes sequences of records that may share records. The first block computes the parts that depend on
    /// a single record once per distinct record.
    ///
    /// # Shapes
    /// - records: [U, H], slots: [B·K], the record of each slot
    /// - mask: [B, K], result: [B, K, H]
    pub fn forward(
        &self,
        records: Tensor<2>,
        slots: Tensor<1, Int>,
        rows: usize,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [distinct, width] = records.dims();
        let positions = slots.dims()[0] / rows;
        let mut x = records.clone().select(0, slots.clone()).reshape([rows, positions, width]);
        for (index, block) in self.blocks.iter().enumerate() {
            let attended = if index == 0 {
                let normed =
                    self.attention_norms.forward(index, records.clone().reshape([1, distinct, width]));
                let projected = block.attention.projection.forward(normed).reshape([distinct, 3 * width]);
                let projected = projected.select(0, slots.clone()).reshape([rows, positions, 3 * width]);
                block.attention.among(projected, mask.clone(), pass)
            } else {
                let normed = self.attention_norms.forward(index, x.clone());
                block.attention.to_itself(normed, mask.clone(), pass)
            };
            x = x + pass.dropout(attended, self.dropout);
            let normed = self.feed_forward_norms.forward(index, x.clone());
            x = x + block.feed_forward.forward(normed, pass);
        }
        x
    }
}
