//! The transformer with its blocks computed by `fet-kernels`, on the host.
//!
//! Embedding and mask remain Burn modules; the graph is cut between them and the blocks, as it is at a party's
//! boundary. The parameters, their names and the random numbers are those of [`Transformer`], which remains the
//! definition: a test compares the two.

use burn::tensor::{Tensor, TensorData};
use fet_kernels::{BlockWeights, ChainInput, Dropout, Shape, Tape};

use super::Transformer;
use crate::model::kernels::{self, Place};
use fet_core::encoder::{Encoder, EncoderContext, NeighbourBatch};
use fet_core::model::Pass;
use fet_core::parameters::{Parameters, host};
use fet_core::trainable::{Learner, Trainable};

const ATTENTION: Place = Place { layer: "attention", norms: "attention_norms" };
const FEED_FORWARD: Place = Place { layer: "feed_forward", norms: "feed_forward_norms" };

/// A [`Transformer`] that computes its blocks on the host.
#[derive(Debug)]
pub(super) struct FusedTransformer {
    trainable: Trainable<Transformer>,
    heads: usize,
    dropout: f64,
    recompute: bool,
    pending: Option<Pending>,
}

/// State kept between forward and backward.
#[derive(Debug)]
enum Pending {
    Graph(Box<Passed>),
    /// The inputs to recompute it: dropout repeats, because its masks come from the pass.
    Inputs(Box<(NeighbourBatch, Pass)>),
}

/// A forward pass: the cuts of the graph, and the saved state of the blocks.
#[derive(Debug)]
struct Passed {
    entrance: Entrance,
    tape: Option<Tape>,
}

/// What goes into the blocks.
#[derive(Debug)]
struct Entrance {
    records: Tensor<2>,
    mask: Option<Tensor<2>>,
    record_values: Vec<f32>,
    mask_values: Option<Vec<f32>>,
    slots: Vec<u32>,
    shape: Shape,
}

impl Entrance {
    fn input(&self) -> ChainInput<'_> {
        ChainInput { records: &self.record_values, slots: &self.slots, mask: self.mask_values.as_deref() }
    }
}

impl FusedTransformer {
    pub(super) fn new(module: Transformer, context: &EncoderContext<'_>) -> Self {
        Self {
            trainable: Trainable::new(module, context.optimizer.clone(), context.device),
            heads: context.shape.heads,
            dropout: context.shape.dropout,
            recompute: context.computation.recompute,
            pending: None,
        }
    }

    fn pass(&self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> (Tensor<3>, Passed) {
        let (records, mask) = if tracked {
            self.trainable.module().enter(batch)
        } else {
            self.trainable.untracked().enter(batch)
        };
        let width = records.dims()[1];
        let entrance = Entrance {
            record_values: host(records.clone().without_autodiff()),
            mask_values: mask.clone().map(|mask| host(mask.without_autodiff())),
            slots: batch.slots.clone().into_data().iter::<u32>().collect(),
            shape: Shape { width, heads: self.heads, positions: batch.neighbours },
            records,
            mask,
        };
        let dropout = pass.stream().filter(|_| self.dropout > 0.0);
        let dropout = dropout.map(|rng| Dropout::new(rng.clone(), self.dropout));
        let blocks = blocks(self.trainable.parameters());
        let forward = fet_kernels::forward(&entrance.shape, &blocks, entrance.input(), dropout, tracked);
        if let Some(rng) = forward.rng {
            pass.resume(rng);
        }
        let data = TensorData::new(forward.values, [batch.rows, batch.neighbours, width]);
        let device = batch.keys.device().without_autodiff();
        (Tensor::from_data(data, &device), Passed { entrance, tape: forward.tape })
    }
}

impl Encoder for FusedTransformer {
    fn learner(&self) -> &dyn Learner {
        &self.trainable
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trainable
    }

    fn forward(&mut self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> Tensor<3> {
        if tracked && self.recompute {
            self.pending = Some(Pending::Inputs(Box::new((batch.clone(), pass.clone()))));
            return self.pass(&batch.untracked(), pass, false).0;
        }
        let (representation, passed) = self.pass(batch, pass, tracked);
        if tracked {
            self.pending = Some(Pending::Graph(Box::new(passed)));
        }
        representation
    }

    fn backward(&mut self, gradient: Tensor<3>) {
        let passed = match self.pending.take().expect("backward follows a tracked forward") {
            Pending::Graph(passed) => *passed,
            Pending::Inputs(inputs) => {
                let (batch, mut pass) = *inputs;
                self.pass(&batch, &mut pass, true).1
            }
        };
        let Passed { entrance, tape } = passed;
        let tape = tape.expect("a tracked pass leaves a tape");
        let blocks = blocks(self.trainable.parameters());
        let found = fet_kernels::backward(&entrance.shape, &blocks, entrance.input(), tape, host(gradient));
        let device = entrance.records.device();
        let back = |leaf: &Tensor<2>, values: Vec<f32>| {
            (leaf.clone() * Tensor::<2>::from_data(TensorData::new(values, leaf.dims()), &device)).sum()
        };
        let mut scalar = back(&entrance.records, found.records);
        if let (Some(mask), Some(values)) = (&entrance.mask, found.mask) {
            scalar = scalar + back(mask, values);
        }
        self.trainable.backward(&scalar, None);
        for (index, block) in found.blocks.iter().enumerate() {
            kernels::add_attention(&mut self.trainable, ATTENTION, index, &block.attention);
            kernels::add_feed_forward(&mut self.trainable, FEED_FORWARD, index, &block.feed_forward);
        }
    }
}

fn blocks(parameters: &Parameters) -> Vec<BlockWeights<'_>> {
    let block = |index: usize| BlockWeights {
        attention: kernels::attention(parameters, ATTENTION, index),
        feed_forward: kernels::feed_forward(parameters, FEED_FORWARD, index),
    };
    (0..kernels::blocks(parameters)).map(block).collect()
}
