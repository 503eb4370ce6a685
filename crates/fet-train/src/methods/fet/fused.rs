//! The primary's half with its decoder's blocks computed by `fet-kernels`, on the host.
//!
//! Embedding, output layer and loss remain Burn modules; the graph is cut before and after the blocks, as at a party's
//! boundary. Parameters, names and random numbers are those of [`Decoder`], which remains the definition: a test
//! compares the two.

use burn::tensor::{Tensor, TensorData};
use fet_kernels::{DecoderBlockWeights, DecoderInput, DecoderTape, Dropout, Shape};

use crate::model::kernels::{self, Place};
use crate::model::{Decoder, apply, padding_mask};
use fet_core::method::{Memory, Primary, PrimaryBatch, PrimaryContext, TrainOutcome};
use fet_core::model::{ModelShape, Pass};
use fet_core::objective::Objective;
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::trainable::{Learner, Trainable};

const ITSELF: Place = Place { layer: "self_attention", norms: "self_norms" };
const MEMORY: Place = Place { layer: "memory_attention", norms: "memory_norms" };
const FEED_FORWARD: Place = Place { layer: "feed_forward", norms: "feed_forward_norms" };

/// A [`Decoder`] that computes its blocks on the host.
#[derive(Debug)]
pub(super) struct FusedDecoder {
    trainable: Trainable<Decoder>,
    objective: Objective,
    heads: usize,
    dropout: f64,
}

/// The inputs and outputs of the blocks.
struct Passed {
    shape: Shape,
    x: Vec<f32>,
    memory: Vec<f32>,
    mask: Option<Vec<f32>>,
    values: Tensor<3>,
    tape: Option<DecoderTape>,
}

impl Passed {
    fn input(&self) -> DecoderInput<'_> {
        DecoderInput { x: &self.x, memory: &self.memory, mask: self.mask.as_deref() }
    }
}

impl FusedDecoder {
    pub(super) fn new(
        decoder: Decoder,
        shape: &ModelShape,
        optimizer: &OptimizerSettings,
        context: &PrimaryContext<'_>,
    ) -> Self {
        Self {
            trainable: Trainable::new(decoder, optimizer.clone(), context.device),
            objective: context.objective,
            heads: shape.heads,
            dropout: shape.dropout,
        }
    }

    /// Through the blocks: `embedded` [B, H] and `memory` [B, K, H], of which the first `available` are real.
    fn pass(
        &self,
        embedded: &Tensor<2>,
        memory: Tensor<3>,
        available: usize,
        pass: &mut Pass,
        taped: bool,
    ) -> Passed {
        let [rows, positions, width] = memory.dims();
        let device = memory.device().without_autodiff();
        let mask = padding_mask(rows, positions, available, &device).map(host);
        let mut passed = Passed {
            shape: Shape { width, heads: self.heads, positions },
            x: host(embedded.clone().without_autodiff()),
            memory: host(memory.without_autodiff()),
            mask,
            values: Tensor::empty([rows, 1, width], &device),
            tape: None,
        };
        let dropout = pass.stream().filter(|_| self.dropout > 0.0);
        let dropout = dropout.map(|rng| Dropout::new(rng.clone(), self.dropout));
        let blocks = blocks(self.trainable.parameters());
        let forward = fet_kernels::decode(&passed.shape, &blocks, passed.input(), dropout, taped);
        if let Some(rng) = forward.rng {
            pass.resume(rng);
        }
        passed.values = Tensor::from_data(TensorData::new(forward.values, [rows, 1, width]), &device);
        passed.tape = forward.tape;
        passed
    }
}

impl Primary for FusedDecoder {
    fn learner(&self) -> &dyn Learner {
        &self.trainable
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trainable
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        let memory = memory.expect("the trainer gives a memory to a method with secondaries");
        let decoder = self.trainable.module();
        let embedded = decoder.embedding.forward(batch.keys.clone(), batch.features.clone());
        // Where the memory is wider than the model, the graph goes on to it through a layer.
        let wider = decoder.memory.as_ref().map(|layer| {
            let leaf = memory.tensor.clone().autodiff().require_grad();
            (leaf.clone(), layer.forward(leaf))
        });
        let narrow = wider.as_ref().map_or(memory.tensor, |(_, projected)| projected.clone());
        let mut passed = self.pass(&embedded, narrow, memory.available, pass, true);
        let [rows, _, width] = passed.values.dims();

        let leaf = passed.values.clone().autodiff().require_grad();
        let output = apply(&self.trainable.module().output, leaf.clone().reshape([rows, width]));
        let output = self.objective.activate(output);
        let loss = self.objective.loss(output.clone(), &batch.labels, &batch.weights);
        let gradient = self.trainable.backward(&loss, Some(&leaf)).expect("the loss depends on the blocks");

        let tape = passed.tape.take().expect("a training pass leaves a tape");
        let blocks = blocks(self.trainable.parameters());
        let found = fet_kernels::decode_back(&passed.shape, &blocks, passed.input(), tape, host(gradient));
        let tracked = embedded.device();
        let shape = [rows, passed.shape.positions, width];
        let x_gradient = Tensor::from_data(TensorData::new(found.x, [rows, width]), &tracked);
        let mut scalar = (embedded * x_gradient).sum();
        let memory_gradient = TensorData::new(found.memory, shape);
        let memory_gradient = match wider {
            None => {
                self.trainable.backward_more(&scalar, None);
                Some(Tensor::from_data(memory_gradient, &tracked.without_autodiff()))
            }
            Some((leaf, projected)) => {
                scalar = scalar + (projected * Tensor::<3>::from_data(memory_gradient, &tracked)).sum();
                self.trainable.backward_more(&scalar, Some(&leaf))
            }
        };
        for (index, block) in found.blocks.iter().enumerate() {
            kernels::add_attention(&mut self.trainable, ITSELF, index, &block.itself);
            kernels::add_attention(&mut self.trainable, MEMORY, index, &block.memory);
            kernels::add_feed_forward(&mut self.trainable, FEED_FORWARD, index, &block.feed_forward);
        }
        let loss = f64::from(host(loss.without_autodiff())[0]);
        TrainOutcome { loss, memory_gradient, output: output.without_autodiff() }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        let memory = memory.expect("the trainer gives a memory to a method with secondaries");
        let decoder = self.trainable.untracked();
        let embedded = decoder.embedding.forward(batch.keys.clone(), batch.features.clone());
        let narrow = match &decoder.memory {
            Some(layer) => layer.forward(memory.tensor),
            None => memory.tensor,
        };
        let passed = self.pass(&embedded, narrow, memory.available, &mut Pass::evaluation(), false);
        let [rows, _, width] = passed.values.dims();
        self.objective.activate(apply(&decoder.output, passed.values.reshape([rows, width])))
    }
}

fn blocks(parameters: &Parameters) -> Vec<DecoderBlockWeights<'_>> {
    let block = |index: usize| DecoderBlockWeights {
        itself: kernels::attention(parameters, ITSELF, index),
        memory: kernels::attention(parameters, MEMORY, index),
        feed_forward: kernels::feed_forward(parameters, FEED_FORWARD, index),
    };
    (0..kernels::blocks(parameters)).map(block).collect()
}
