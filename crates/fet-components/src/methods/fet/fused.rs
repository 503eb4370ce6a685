//! The primary's half computed by `fet-kernels` on the host: embedding, blocks and output layer.
//!
//! The loss remains an autograd graph from the outputs on, as does a layer that narrows the memory.
//! Parameters, names and random numbers are those of [`Decoder`], which remains the definition: a test
//! compares both.

use burn::tensor::{Tensor, TensorData};
use fet_kernels::{Buffer, DecoderBlockWeights, DecoderInput, DecoderTape, Dropout, EmbeddingTape, Shape};

use crate::model::kernels::{self, HostRecords, Place};
use crate::model::{Decoder, padding};
use fet_core::method::{Memory, Primary, PrimaryBatch, PrimaryContext, TrainOutcome};
use fet_core::model::{ModelShape, Pass};
use fet_core::objective::Objective;
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::{Parameters, host};
use fet_core::trainable::{Learner, Trainable};

const ITSELF: Place = Place { layer: "self_attention", norms: "self_norms" };
const MEMORY: Place = Place { layer: "memory_attention", norms: "memory_norms" };
const FEED_FORWARD: Place = Place { layer: "feed_forward", norms: "feed_forward_norms" };
const OUTPUT: &str = "output";

/// A [`Decoder`] that computes on the host.
#[derive(Debug)]
pub(super) struct FusedDecoder {
    trainable: Trainable<Decoder>,
    /// True if a layer narrows the memory.
    wide: bool,
    objective: Objective,
    heads: usize,
    dropout: f64,
}

/// A forward pass: its inputs, the output of the blocks, and the values that the backward pass needs.
struct DecoderPass {
    own: HostRecords,
    shape: Shape,
    embedding: EmbeddingTape,
    /// Embedded records, [B, H].
    x: Buffer,
    /// Memory, [B, K, H].
    memory: Buffer,
    mask: Option<Vec<f32>>,
    /// Output of the blocks, [B, H].
    values: Vec<f32>,
    tape: Option<DecoderTape>,
}

impl DecoderPass {
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
            wide: decoder.memory.is_some(),
            trainable: Trainable::new(decoder, optimizer.clone(), context.device),
            objective: context.objective,
            heads: shape.heads,
            dropout: shape.dropout,
        }
    }

    /// Computes embedding and blocks, which see the first `available` positions of `memory` [B, K, H].
    fn pass(
        &self,
        batch: &PrimaryBatch,
        memory: Tensor<3>,
        available: usize,
        pass: &mut Pass,
        taped: bool,
    ) -> DecoderPass {
        let [rows, positions, width] = memory.dims();
        let parameters = self.trainable.flat();
        let own = HostRecords::from_tensors(&batch.keys, &batch.features);
        let (x, embedding) = fet_kernels::embed(&kernels::embedding(parameters), own.view());
        let mut passed = DecoderPass {
            shape: Shape { width, heads: self.heads, positions },
            own,
            embedding,
            x,
            memory: host(memory.without_autodiff()).into(),
            mask: padding(positions, available).map(|row| row.repeat(rows)),
            values: Vec::new(),
            tape: None,
        };
        let dropout = pass.stream().filter(|_| self.dropout > 0.0);
        let dropout = dropout.map(|rng| Dropout::new(rng.clone(), self.dropout));
        let forward = fet_kernels::decode(&passed.shape, &blocks(parameters), passed.input(), dropout, taped);
        if let Some(rng) = forward.rng {
            pass.resume(rng);
        }
        (passed.values, passed.tape) = (forward.values, forward.tape);
        passed
    }

    /// Returns the output layer's result for the blocks' values, before the activation, [B, outputs].
    fn output(&self, values: &[f32]) -> TensorData {
        let [weight, bias] = kernels::layer(self.trainable.flat(), OUTPUT);
        let output = fet_kernels::linear(values, weight, bias);
        let outputs = bias.len();
        TensorData::new(output, [values.len() * outputs / weight.len(), outputs])
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
        // If the memory is wider than the model, an autograd graph continues through the layer that narrows
        // it.
        let wider = self.wide.then(|| {
            let layer = self.trainable.module().memory.as_ref().expect("the module has the layer");
            let leaf = memory.tensor.clone().autodiff().require_grad();
            (leaf.clone(), layer.forward(leaf))
        });
        let narrow = wider.as_ref().map_or(memory.tensor, |(_, projected)| projected.clone());
        let mut passed = self.pass(batch, narrow, memory.available, pass, true);

        let device = batch.keys.device().without_autodiff();
        let leaf = Tensor::<2>::from_data(self.output(&passed.values), &device);
        let leaf = leaf.autodiff().require_grad();
        let output = self.objective.activate(leaf.clone());
        let loss = self.objective.loss(output.clone(), &batch.labels, &batch.weights);
        let gradient = leaf.grad_remove(&mut loss.backward()).expect("the loss depends on the outputs");

        let tape = passed.tape.take().expect("a training pass leaves a tape");
        let parameters = self.trainable.flat();
        let [weight, bias] = kernels::layer(parameters, OUTPUT);
        let (to_weight, to_bias, below) =
            fet_kernels::linear_back(&passed.values, weight, &host(gradient), bias.len());
        let found = fet_kernels::decode_back(&passed.shape, &blocks(parameters), passed.input(), tape, below);
        let records = passed.own.view();
        let embedding =
            fet_kernels::embed_back(&kernels::embedding(parameters), records, &passed.embedding, &found.x);
        let shape = [batch.labels.len(), passed.shape.positions, passed.shape.width];
        let memory_gradient = TensorData::new(found.memory, shape);
        let memory_gradient = match wider {
            None => {
                self.trainable.forget_gradient();
                Some(Tensor::from_data(memory_gradient, &device))
            }
            Some((leaf, projected)) => {
                let gradient = Tensor::<3>::from_data(memory_gradient, &device.autodiff());
                self.trainable.backward(&(projected * gradient).sum(), Some(&leaf))
            }
        };
        kernels::add_embedding(&mut self.trainable, &embedding);
        self.trainable.add_to_gradient(&format!("{OUTPUT}.weight"), &to_weight);
        self.trainable.add_to_gradient(&format!("{OUTPUT}.bias"), &to_bias);
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
        let narrow = match self.wide.then(|| self.trainable.untracked().memory).flatten() {
            Some(layer) => layer.forward(memory.tensor),
            None => memory.tensor,
        };
        let passed = self.pass(batch, narrow, memory.available, &mut Pass::evaluation(), false);
        let device = batch.keys.device().without_autodiff();
        self.objective.activate(Tensor::from_data(self.output(&passed.values), &device))
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
