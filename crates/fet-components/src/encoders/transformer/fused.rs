//! The transformer computed by `fet-kernels` on the host: embedding, mask and blocks.
//!
//! It makes no autograd graph. Parameters, their names and random numbers are those of [`Transformer`], which
//! remains the definition: a test compares both.

use burn::tensor::{Int, Tensor, TensorData};
use fet_kernels::{
    BlockWeights, Buffer, ChainInput, Dropout, EmbeddingTape, MaskInput, MaskTape, PerceptronWeights,
    Records, Shape, Tape,
};

use super::layers::Transformer;
use crate::model::kernels::{self, HostRecords, Place};
use crate::model::padding;
use fet_core::encoder::{Encoder, EncoderContext, NeighbourBatch};
use fet_core::model::Pass;
use fet_core::parameters::{Parameters, host};
use fet_core::trainable::{Learner, Trainable};

const ATTENTION: Place = Place { layer: "attention", norms: "attention_norms" };
const FEED_FORWARD: Place = Place { layer: "feed_forward", norms: "feed_forward_norms" };
const MASK: &str = "mask";

/// A [`Transformer`] that computes on the host.
#[derive(Debug)]
pub(super) struct FusedTransformer {
    trainable: Trainable<Transformer>,
    masked: bool,
    heads: usize,
    dropout: f64,
    recompute: bool,
    pending: Option<Pending>,
}

/// State kept between forward and backward.
#[derive(Debug)]
enum Pending {
    Graph(Box<EncoderPass>),
    /// Inputs for recomputing the forward pass. Dropout repeats, because its masks are drawn from the pass.
    Inputs(Box<(NeighbourBatch, Pass)>),
}

/// A forward pass: its inputs, and the values that the backward pass needs.
#[derive(Debug)]
struct EncoderPass {
    entrance: EncoderInputs,
    embedding: EmbeddingTape,
    mask: Option<MaskTape>,
    tape: Option<Tape>,
}

/// Inputs of the model and of its blocks.
#[derive(Debug)]
struct EncoderInputs {
    own: HostRecords,
    slots: Vec<u32>,
    /// The whole lists, [B·L], and the places that are shown; `None` if all places are shown.
    listed: Option<(Vec<u32>, Vec<usize>)>,
    /// Embedded records, [U, H].
    records: Buffer,
    /// Mask, [B, K].
    mask: Option<Vec<f32>>,
    shape: Shape,
}

impl EncoderInputs {
    fn mask(&self) -> MaskInput<'_> {
        let Records { keys, key_columns, .. } = self.own.view();
        let slots = self.listed.as_ref().map_or(&self.slots, |(slots, _)| slots);
        let rows = self.slots.len() / self.shape.positions;
        MaskInput { keys, key_columns, slots, positions: slots.len() / rows }
    }

    /// Selects the values of the shown places from the values of all places.
    fn shown(&self, of_lists: Vec<f32>) -> Vec<f32> {
        let Some((slots, places)) = &self.listed else { return of_lists };
        let length = places.len() * slots.len() / self.slots.len();
        of_lists.chunks_exact(length).flat_map(|row| places.iter().map(|&place| row[place])).collect()
    }

    /// Transpose of [`EncoderInputs::shown`]: zeros in places that are not shown.
    fn of_lists(&self, shown: Vec<f32>) -> Vec<f32> {
        let Some((slots, places)) = &self.listed else { return shown };
        let length = places.len() * slots.len() / self.slots.len();
        let mut all = vec![0.0; slots.len()];
        for (row, shown) in all.chunks_exact_mut(length).zip(shown.chunks_exact(places.len())) {
            places.iter().zip(shown).for_each(|(&place, value)| row[place] = *value);
        }
        all
    }

    fn chain(&self) -> ChainInput<'_> {
        ChainInput { records: &self.records, slots: &self.slots, mask: self.mask.as_deref() }
    }
}

impl FusedTransformer {
    pub(super) fn new(module: Transformer, context: &EncoderContext<'_>) -> Self {
        Self {
            masked: module.mask.is_some(),
            trainable: Trainable::new(module, context.optimizer.clone(), context.device),
            heads: context.shape.heads,
            dropout: context.shape.dropout,
            recompute: context.computation.recompute,
            pending: None,
        }
    }

    fn mask(&self) -> Option<PerceptronWeights<'_>> {
        self.masked.then(|| kernels::perceptron(self.trainable.flat(), MASK))
    }

    fn pass(&self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> (Tensor<3>, EncoderPass) {
        let parameters = self.trainable.flat();
        let weights = kernels::embedding(parameters);
        let width = weights.input_bias.len();
        let mut entrance = EncoderInputs {
            own: HostRecords::from_tensors(&batch.keys, &batch.features),
            slots: indices(&batch.slots),
            listed: batch.listed.as_ref().map(|listed| (indices(&listed.slots), listed.places.clone())),
            records: Buffer::default(),
            mask: padding(batch.neighbours, batch.available).map(|row| row.repeat(batch.rows)),
            shape: Shape { width, heads: self.heads, positions: batch.neighbours },
        };
        let embedding;
        (entrance.records, embedding) = fet_kernels::embed(&weights, entrance.own.view());
        let mut mask = None;
        if let Some(weights) = self.mask() {
            let (values, tape) = fet_kernels::mask(&weights, entrance.mask());
            let mut values = entrance.shown(values);
            if let Some(padding) = &entrance.mask {
                values.iter_mut().zip(padding).for_each(|(value, more)| *value += more);
            }
            (entrance.mask, mask) = (Some(values), Some(tape));
        }
        let dropout = pass.stream().filter(|_| self.dropout > 0.0);
        let dropout = dropout.map(|rng| Dropout::new(rng.clone(), self.dropout));
        let blocks = blocks(parameters);
        let forward = fet_kernels::forward(&entrance.shape, &blocks, entrance.chain(), dropout, tracked);
        if let Some(rng) = forward.rng {
            pass.resume(rng);
        }
        let data = TensorData::new(forward.values, [batch.rows, batch.neighbours, width]);
        let device = batch.keys.device().without_autodiff();
        (Tensor::from_data(data, &device), EncoderPass { entrance, embedding, mask, tape: forward.tape })
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
        let EncoderPass { entrance, embedding, mask, tape } = passed;
        let tape = tape.expect("a tracked pass leaves a tape");
        let parameters = self.trainable.flat();
        let blocks = blocks(parameters);
        let found = fet_kernels::backward(&entrance.shape, &blocks, entrance.chain(), tape, host(gradient));
        let records = entrance.own.view();
        let embedding =
            fet_kernels::embed_back(&kernels::embedding(parameters), records, &embedding, &found.records);
        let mask = self.mask().zip(mask).zip(found.mask).map(|((weights, tape), gradient)| {
            fet_kernels::mask_back(&weights, entrance.mask(), &tape, &entrance.of_lists(gradient))
        });
        self.trainable.forget_gradient();
        kernels::add_embedding(&mut self.trainable, &embedding);
        if let Some(mask) = mask {
            kernels::add_perceptron(&mut self.trainable, MASK, &mask);
        }
        for (index, block) in found.blocks.iter().enumerate() {
            kernels::add_attention(&mut self.trainable, ATTENTION, index, &block.attention);
            kernels::add_feed_forward(&mut self.trainable, FEED_FORWARD, index, &block.feed_forward);
        }
    }
}

fn indices(slots: &Tensor<1, Int>) -> Vec<u32> {
    slots.clone().into_data().iter::<u32>().collect()
}

fn blocks(parameters: &Parameters) -> Vec<BlockWeights<'_>> {
    let block = |index: usize| BlockWeights {
        attention: kernels::attention(parameters, ATTENTION, index),
        feed_forward: kernels::feed_forward(parameters, FEED_FORWARD, index),
    };
    (0..kernels::blocks(parameters)).map(block).collect()
}
