//! The primary's model: its own embedded record attends to the memory and becomes a prediction.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::{Attention, Embedding, FeedForward, Init, Linear, Norms, apply, linear};
use fet_core::model::{ModelShape, Pass};

/// Self-attention, attention to the memory, feed-forward; the norms belong to the chain.
#[derive(Module, Debug)]
pub struct DecoderBlock {
    /// Attention of the primary's record to itself.
    pub self_attention: Attention,
    /// Attention of the primary's record to the memory.
    pub memory_attention: Attention,
    /// Feed-forward layer after the attentions.
    pub feed_forward: FeedForward,
}

/// x ← x + SelfAttn(LN₁ x); x ← x + CrossAttn(LN₂ x, memory); x ← x + FFN(LN₃ x), block after block.
#[derive(Module, Debug)]
pub struct DecoderChain {
    /// The blocks.
    pub blocks: Vec<DecoderBlock>,
    /// LN₁.
    pub self_norms: Norms,
    /// LN₂.
    pub memory_norms: Norms,
    /// LN₃.
    pub feed_forward_norms: Norms,
    dropout: f64,
}

/// Embedding, decoder chain and output layer of the primary.
#[derive(Module, Debug)]
pub struct Decoder {
    /// The primary's embedding.
    pub embedding: Embedding,
    /// W → H, if the memory is wider than the model.
    pub memory: Option<Linear>,
    /// The chain.
    pub chain: DecoderChain,
    /// H → outputs.
    pub output: Linear,
}

/// Sizes of a decoder that the method's models do not share.
#[derive(Debug, Clone, Copy)]
pub struct DecoderShape {
    /// Key and feature columns of the primary.
    pub columns: (usize, usize),
    /// Number of blocks of the chain.
    pub blocks: usize,
    /// Number of outputs.
    pub outputs: usize,
    /// W, the width of the memory.
    pub memory_width: usize,
}

impl DecoderChain {
    /// Makes a chain of `blocks` blocks.
    pub fn new(init: &mut Init<'_>, device: &Device, blocks: usize, shape: &ModelShape) -> Self {
        let block = |_| DecoderBlock {
            self_attention: Attention::new(init, shape.hidden, shape.heads, shape.dropout),
            memory_attention: Attention::new(init, shape.hidden, shape.heads, shape.dropout),
            feed_forward: FeedForward::new(init, shape.hidden, shape.dropout),
        };
        Self {
            blocks: (0..blocks).map(block).collect(),
            self_norms: Norms::new(device, blocks, shape),
            memory_norms: Norms::new(device, blocks, shape),
            feed_forward_norms: Norms::new(device, blocks, shape),
            dropout: shape.dropout,
        }
    }

    /// # Shapes
    /// - x and result: [B, 1, H], memory: [B, K, H]
    /// - mask: [B, K], added to the logits of each position of the memory
    pub fn forward(
        &self,
        mut x: Tensor<3>,
        memory: Tensor<3>,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        for (index, block) in self.blocks.iter().enumerate() {
            let normed = self.self_norms.forward(index, x.clone());
            let attended = block.self_attention.to_itself(normed, None, pass);
            x = x + pass.dropout(attended, self.dropout);
            let normed = self.memory_norms.forward(index, x.clone());
            let attended = block.memory_attention.to_memory(normed, memory.clone(), mask.clone(), pass);
            x = x + pass.dropout(attended, self.dropout);
            let normed = self.feed_forward_norms.forward(index, x.clone());
            x = x + block.feed_forward.forward(normed, pass);
        }
        x
    }
}

impl Decoder {
    /// # Shapes
    /// - keys: [B, m], features: [B, d], memory: [B, K, W], mask: [B, K]
    /// - result: [B, outputs], before the task's output activation
    pub fn decode(
        &self,
        keys: Tensor<2>,
        features: Tensor<2>,
        memory: Tensor<3>,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<2> {
        let embedded = self.embedding.forward(keys, features);
        let [batch, width] = embedded.dims();
        let memory = match &self.memory {
            Some(layer) => layer.forward(memory),
            None => memory,
        };
        let decoded = self.chain.forward(embedded.reshape([batch, 1, width]), memory, mask, pass);
        apply(&self.output, decoded.reshape([batch, width]))
    }

    /// Makes a decoder of these sizes.
    pub fn new(init: &mut Init<'_>, device: &Device, sizes: &DecoderShape, shape: &ModelShape) -> Self {
        let (key_columns, feature_columns) = sizes.columns;
        let wider = sizes.memory_width != shape.hidden;
        Self {
            embedding: Embedding::new(init, key_columns, feature_columns, shape),
            chain: DecoderChain::new(init, device, sizes.blocks, shape),
            output: linear(init, shape.hidden, sizes.outputs),
            memory: wider.then(|| linear(init, sizes.memory_width, shape.hidden)),
        }
    }
}
