//! The transformer with its blocks computed by `fet-kernels`, on the host.
//!
//! Embedding and mask are Burn modules as ever; the graph is cut between them and the blocks, as it is at a party's
//! boundary. The parameters, their names and the random numbers are those of [`Transformer`], which remains the
//! definition: a test holds the two against each other.

use burn::tensor::{Tensor, TensorData};
use fet_kernels::{BlockGradient, BlockWeights, ChainInput, Dropout, Shape, Tape};

use super::Transformer;
use crate::encoder::{Encoder, EncoderContext, NeighbourBatch};
use crate::model::Pass;
use crate::parameters::{Parameters, host};
use crate::trainable::{Learner, Trainable};

/// A [`Transformer`] that computes its blocks on the host.
#[derive(Debug)]
pub(super) struct FusedTransformer {
    trainable: Trainable<Transformer>,
    heads: usize,
    dropout: f64,
    recompute: bool,
    pending: Option<Pending>,
}

/// What stays between forward and backward.
#[derive(Debug)]
enum Pending {
    Graph(Box<Passed>),
    /// What it can be built from: dropout repeats, because its masks come from the pass.
    Inputs(Box<(NeighbourBatch, Pass)>),
}

/// A forward pass: where the graph was cut, and what the blocks left.
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
        let norms = norms(self.trainable.parameters());
        for (index, block) in found.blocks.iter().enumerate() {
            for (name, values) in NAMES.iter().zip(parts(block)) {
                self.trainable.add_to_gradient(&name.of(index, norms), values);
            }
        }
    }
}

/// The name of a block's parameter.
enum Name {
    /// It belongs to the chain, one for each block or one for all.
    Norm(&'static str),
    /// It belongs to the block.
    Own(&'static str),
}

/// In the order of [`parts`].
const NAMES: [Name; 12] = [
    Name::Norm("chain.attention_norms.each.#.gamma"),
    Name::Norm("chain.attention_norms.each.#.beta"),
    Name::Own("chain.blocks.#.attention.projection.weight"),
    Name::Own("chain.blocks.#.attention.projection.bias"),
    Name::Own("chain.blocks.#.attention.output.weight"),
    Name::Own("chain.blocks.#.attention.output.bias"),
    Name::Norm("chain.feed_forward_norms.each.#.gamma"),
    Name::Norm("chain.feed_forward_norms.each.#.beta"),
    Name::Own("chain.blocks.#.feed_forward.hidden.weight"),
    Name::Own("chain.blocks.#.feed_forward.hidden.bias"),
    Name::Own("chain.blocks.#.feed_forward.output.weight"),
    Name::Own("chain.blocks.#.feed_forward.output.bias"),
];

impl Name {
    /// The name in block `index`, where there are `norms` norms.
    fn of(&self, index: usize, norms: usize) -> String {
        match self {
            Self::Norm(pattern) => pattern.replace('#', &(index % norms).to_string()),
            Self::Own(pattern) => pattern.replace('#', &index.to_string()),
        }
    }
}

fn parts(block: &BlockGradient) -> [&[f32]; 12] {
    [
        &block.attention_gain,
        &block.attention_bias,
        &block.projection,
        &block.projection_bias,
        &block.output,
        &block.output_bias,
        &block.feed_forward_gain,
        &block.feed_forward_bias,
        &block.hidden,
        &block.hidden_bias,
        &block.contraction,
        &block.contraction_bias,
    ]
}

/// How many norms a place in the chain has.
fn norms(parameters: &Parameters) -> usize {
    (0..).take_while(|&index| parameters.get(&NAMES[0].of(index, index + 1)).is_some()).count()
}

fn blocks(parameters: &Parameters) -> Vec<BlockWeights<'_>> {
    let norms = norms(parameters);
    let count = (0..).take_while(|&index| parameters.get(&NAMES[2].of(index, norms)).is_some()).count();
    let block = |index: usize| {
        let part = |name: usize| {
            let name = NAMES[name].of(index, norms);
            parameters.get(&name).unwrap_or_else(|| panic!("a transformer has the parameter `{name}`"))
        };
        BlockWeights {
            attention_gain: part(0),
            attention_bias: part(1),
            projection: part(2),
            projection_bias: part(3),
            output: part(4),
            output_bias: part(5),
            feed_forward_gain: part(6),
            feed_forward_bias: part(7),
            hidden: part(8),
            hidden_bias: part(9),
            contraction: part(10),
            contraction_bias: part(11),
        }
    };
    (0..count).map(block).collect()
}
