//! The `Encoder` slot: one secondary's local model, which maps neighbours to a representation.
//!
//! A plug-in is a Burn module that implements [`Network`]; [`LocalModel`] turns it into an `Encoder`
//! and keeps the autograd graph, cut at the party's boundary, between forward and backward. To add one, copy
//! `encoders/transformer.rs` of `fet-components`.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

use crate::model::{ModelShape, Pass};
use crate::optimizer::OptimizerSettings;
use crate::registry::{Plugin, SlotKind};
use crate::rng::ChaCha8Rng;
use crate::trainable::{Learner, Trainable};

/// The records linked with a batch of primary rows. Each record occurs once, however many rows it is a neighbour of.
#[derive(Debug, Clone)]
pub struct NeighbourBatch {
    /// Keys of the distinct records, [U, m], scaled.
    pub keys: Tensor<2>,
    /// Features of the distinct records, [U, d], scaled.
    pub features: Tensor<2>,
    /// The record in each slot, [B·K], nearest first within a row.
    pub slots: Tensor<1, Int>,
    /// B.
    pub rows: usize,
    /// K.
    pub neighbours: usize,
    /// How many of the K are real; the others repeat them and must be masked out.
    pub available: usize,
    /// How similar they are to the row, as the linker says, [B·K]; present only where a method pools neighbours
    /// ([`Plan::pooled`]) and the linker has similarities.
    ///
    /// [`Plan::pooled`]: crate::method::Plan::pooled
    pub similarities: Option<Vec<f32>>,
    /// The whole lists, where K counts only those that a training step sees.
    pub listed: Option<Listed>,
}

/// All neighbours of the rows of a batch that shows some of them.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The record in each place, [B·L].
    pub slots: Tensor<1, Int>,
    /// The places, ascending, that are shown: K of L.
    pub places: Vec<usize>,
}

impl NeighbourBatch {
    /// The same records without autodiff.
    #[must_use]
    pub fn untracked(&self) -> Self {
        Self {
            keys: self.keys.clone().without_autodiff(),
            features: self.features.clone().without_autodiff(),
            slots: self.slots.clone().without_autodiff(),
            similarities: self.similarities.clone(),
            listed: self.listed.as_ref().map(|listed| Listed {
                slots: listed.slots.clone().without_autodiff(),
                places: listed.places.clone(),
            }),
            ..*self
        }
    }
}

/// One party's local model.
///
/// Laws, checked by the contract suite for every plug-in: backward after forward gives the same gradient as an uncut
/// graph; all backends agree to a stated tolerance. Without dropout, what it makes of a row follows from the row's neighbours alone, so that
/// rows with the same neighbours are evaluated once.
pub trait Encoder: Send {
    /// The trained parameters and their optimiser.
    fn learner(&self) -> &dyn Learner;

    /// The same, mutable: to take a step or load parameters.
    fn learner_mut(&mut self) -> &mut dyn Learner;

    /// The representation [B, K, H], detached; a tracked pass keeps the graph for [`Encoder::backward`].
    fn forward(&mut self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> Tensor<3>;

    /// Back-propagates the gradient [B, K, H] with respect to the last tracked representation.
    ///
    /// # Panics
    /// Without a tracked forward pass before it.
    fn backward(&mut self, gradient: Tensor<3>);
}

/// The inputs of an encoder besides its settings.
#[derive(Debug)]
pub struct EncoderContext<'a> {
    /// Its device, with autodiff.
    pub device: &'a Device,
    /// The random stream of its initial weights.
    pub weights: ChaCha8Rng,
    /// K.
    pub neighbours: usize,
    /// m; 0 if the method's models see no keys.
    pub key_columns: usize,
    /// d.
    pub feature_columns: usize,
    /// Settings shared by the method's models.
    pub shape: &'a ModelShape,
    /// How it is trained.
    pub optimizer: &'a OptimizerSettings,
    /// How it may be computed.
    pub computation: Computation,
}

/// How a party computes; the results are equal up to rounding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Computation {
    /// Whether the graph of a forward pass is dropped and recomputed for the backward pass.
    pub recompute: bool,
    /// Whether the host's fused kernels replace tensor operations, if an encoder has any.
    pub fused: bool,
}

impl SlotKind for dyn Encoder {
    const SLOT: &'static str = "encoder";
    type Context<'a> = EncoderContext<'a>;
}

inventory::collect!(Plugin<dyn Encoder>);

/// A module that maps neighbours to a representation.
pub trait Network: Module {
    /// # Shapes
    /// - result: [B, K, H]
    fn forward(&self, batch: &NeighbourBatch, pass: &mut Pass) -> Tensor<3>;
}

/// A [`Network`] as an [`Encoder`].
#[derive(Debug)]
pub struct LocalModel<N> {
    trainable: Trainable<N>,
    recompute: bool,
    pending: Option<Pending>,
}

/// State kept between forward and backward.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of them for each party")]
enum Pending {
    /// The graph itself.
    Graph(Tensor<3>),
    /// The inputs to recompute it: dropout repeats, because its masks come from the pass.
    Inputs(NeighbourBatch, Pass),
}

impl<N: Network> LocalModel<N> {
    /// Trains `network`, made in `context`.
    pub fn new(network: N, context: &EncoderContext<'_>) -> Self {
        let trainable = Trainable::new(network, context.optimizer.clone(), context.device);
        Self { trainable, recompute: context.computation.recompute, pending: None }
    }
}

impl<N: Network + Send> Encoder for LocalModel<N> {
    fn learner(&self) -> &dyn Learner {
        &self.trainable
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trainable
    }

    fn forward(&mut self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> Tensor<3> {
        if !tracked {
            return self.trainable.untracked().forward(batch, pass);
        }
        if self.recompute {
            self.pending = Some(Pending::Inputs(batch.clone(), pass.clone()));
            return self.trainable.untracked().forward(&batch.untracked(), pass);
        }
        let representation = self.trainable.module().forward(batch, pass);
        self.pending = Some(Pending::Graph(representation.clone()));
        representation.without_autodiff()
    }

    fn backward(&mut self, gradient: Tensor<3>) {
        let representation = match self.pending.take().expect("backward follows a tracked forward") {
            Pending::Graph(representation) => representation,
            Pending::Inputs(batch, mut pass) => self.trainable.module().forward(&batch, &mut pass),
        };
        let scalar = (representation * gradient.autodiff()).sum();
        self.trainable.backward(&scalar, None);
    }
}
