//! The chains of `block.rs` and `decoder.rs`, each computed by `fet-kernels` as one operation of the graph.
//!
//! The modules remain the definition: parameters and random numbers are theirs, and a test compares the two.

use burn::nn::LayerNorm;
use burn::tensor::{Int, Tensor};
use fet_backends::{HostGradient, on_host};
use fet_kernels::{
    BlockGradient, BlockWeights, ChainInput, DecoderBlockGradient, DecoderBlockWeights, DecoderInput,
    DecoderTape, Dropout, Shape, Tape,
};

use super::{Attention, BlockChain, DecoderChain, FeedForward, Linear};
use fet_core::model::Pass;
use fet_core::parameters::host;

impl BlockChain {
    /// [`BlockChain::forward`] on the host.
    pub(super) fn fused(
        &self,
        records: Tensor<2>,
        slots: Tensor<1, Int>,
        rows: usize,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let width = records.dims()[1];
        let positions = slots.dims()[0] / rows;
        let mask = mask.unwrap_or_else(|| Tensor::zeros([rows, positions], &records.device()));
        let inputs = [records.flatten(0, 1), mask.flatten(0, 1), self.parameters()];
        let shape = Shape { width, heads: self.blocks[0].attention.heads, positions };
        let slots = slots.into_data().iter::<u32>().collect();
        on_host(inputs, [rows, positions, width], |inputs, tracked| {
            let mut passed = PassedChain { shape, inputs, slots, tape: None };
            let dropout = dropout(pass, self.dropout);
            let forward =
                fet_kernels::forward(&passed.shape, &passed.blocks(), passed.input(), dropout, tracked);
            forward.rng.into_iter().for_each(|rng| pass.resume(rng));
            passed.tape = forward.tape;
            (forward.values, passed)
        })
    }

    /// In the order of [`BlockWeights::all`].
    fn parameters(&self) -> Tensor<1> {
        let mut parts = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            parts.extend(attention(self.attention_norms.of(index), &block.attention));
            parts.extend(feed_forward(self.feed_forward_norms.of(index), &block.feed_forward));
        }
        Tensor::cat(parts, 0)
    }
}

impl DecoderChain {
    /// [`DecoderChain::forward`] on the host; the mask is not trained.
    pub(super) fn fused(
        &self,
        x: Tensor<3>,
        memory: Tensor<3>,
        mask: Option<Tensor<2>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [rows, positions, width] = memory.dims();
        let inputs = [x.flatten(0, 2), memory.flatten(0, 2), self.parameters()];
        let shape = Shape { width, heads: self.blocks[0].memory_attention.heads, positions };
        let mask = mask.map(|mask| host(mask.without_autodiff()));
        on_host(inputs, [rows, 1, width], |inputs, tracked| {
            let mut passed = PassedDecoder { shape, inputs, mask, tape: None };
            let dropout = dropout(pass, self.dropout);
            let forward =
                fet_kernels::decode(&passed.shape, &passed.blocks(), passed.input(), dropout, tracked);
            forward.rng.into_iter().for_each(|rng| pass.resume(rng));
            passed.tape = forward.tape;
            (forward.values, passed)
        })
    }

    /// In the order of [`DecoderBlockWeights::all`].
    fn parameters(&self) -> Tensor<1> {
        let mut parts = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            parts.extend(attention(self.self_norms.of(index), &block.self_attention));
            parts.extend(attention(self.memory_norms.of(index), &block.memory_attention));
            parts.extend(feed_forward(self.feed_forward_norms.of(index), &block.feed_forward));
        }
        Tensor::cat(parts, 0)
    }
}

/// A chain's way, kept for the way back.
#[derive(Debug, Clone)]
struct PassedChain {
    shape: Shape,
    /// Records, mask and parameters.
    inputs: [Vec<f32>; 3],
    slots: Vec<u32>,
    tape: Option<Tape>,
}

impl PassedChain {
    fn blocks(&self) -> Vec<BlockWeights<'_>> {
        BlockWeights::all(&self.inputs[2], self.shape.width)
    }

    fn input(&self) -> ChainInput<'_> {
        let [records, mask, _] = &self.inputs;
        ChainInput { records, slots: &self.slots, mask: Some(mask) }
    }
}

impl HostGradient for PassedChain {
    fn back(mut self, result: Vec<f32>) -> [Vec<f32>; 3] {
        let tape = self.tape.take().expect("a tracked pass leaves a tape");
        let found = fet_kernels::backward(&self.shape, &self.blocks(), self.input(), tape, result);
        [found.records, found.mask.expect("there is a mask"), BlockGradient::flat(found.blocks)]
    }
}

/// A decoder's way, kept for the way back.
#[derive(Debug, Clone)]
struct PassedDecoder {
    shape: Shape,
    /// The samples' positions, memory and parameters.
    inputs: [Vec<f32>; 3],
    mask: Option<Vec<f32>>,
    tape: Option<DecoderTape>,
}

impl PassedDecoder {
    fn blocks(&self) -> Vec<DecoderBlockWeights<'_>> {
        DecoderBlockWeights::all(&self.inputs[2], self.shape.width)
    }

    fn input(&self) -> DecoderInput<'_> {
        let [x, memory, _] = &self.inputs;
        DecoderInput { x, memory, mask: self.mask.as_deref() }
    }
}

impl HostGradient for PassedDecoder {
    fn back(mut self, result: Vec<f32>) -> [Vec<f32>; 3] {
        let tape = self.tape.take().expect("a tracked pass leaves a tape");
        let found = fet_kernels::decode_back(&self.shape, &self.blocks(), self.input(), tape, result);
        [found.x, found.memory, DecoderBlockGradient::flat(found.blocks)]
    }
}

fn attention(norm: &LayerNorm, layer: &Attention) -> [Tensor<1>; 6] {
    six(norm, &layer.projection, &layer.output)
}

fn feed_forward(norm: &LayerNorm, layer: &FeedForward) -> [Tensor<1>; 6] {
    six(norm, &layer.hidden, &layer.output)
}

fn six(norm: &LayerNorm, first: &Linear, second: &Linear) -> [Tensor<1>; 6] {
    let shift = norm.beta.as_ref().expect("norms are shifted").val();
    let bias = |layer: &Linear| layer.bias.as_ref().expect("layers are biased").val();
    let weight = |layer: &Linear| layer.weight.val().flatten(0, 1);
    [norm.gamma.val(), shift, weight(first), bias(first), weight(second), bias(second)]
}

fn dropout(pass: &Pass, rate: f64) -> Option<Dropout> {
    let rng = pass.stream().filter(|_| rate > 0.0);
    rng.map(|rng| Dropout::new(rng.clone(), rate))
}
