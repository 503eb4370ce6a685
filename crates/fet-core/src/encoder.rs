//! The `Encoder` slot: one secondary's local model, which maps neighbours to a representation.
//!
//! A plug-in is a Burn module that implements [`Network`]; [`LocalModel`] turns it into an `Encoder`. The
//! `LocalModel` keeps the autograd graph between the forward and the backward pass, and cuts it at the
//! party's boundary. To add an encoder, copy `encoders/transformer.rs` of `fet-components`.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};

use crate::model::{ModelShape, Pass};
use crate::optimizer::OptimizerSettings;
use crate::registry::{Plugin, SlotKind};
use crate::rng::ChaCha8Rng;
use crate::trainable::{Learner, Trainable};

/// The records linked with a batch of primary rows. Each record occurs once, even if it is a neighbour of
/// several rows.
#[derive(Debug, Clone)]
pub struct NeighbourBatch {
    /// Keys of the distinct records, [U, m], scaled.
    pub keys: Tensor<2>,
    /// Features of the distinct records, [U, d], scaled.
    pub features: Tensor<2>,
    /// Index of the record in each slot, [B·K], nearest first within a row.
    pub slots: Tensor<1, Int>,
    /// B, the number of rows.
    pub rows: usize,
    /// K, the number of neighbours per row.
    pub neighbours: usize,
    /// Number of real neighbours among the K; the others repeat real ones and must be masked out.
    pub available: usize,
    /// Similarities of the neighbours to the row, as the linker gives them, [B·K]. They are present only if
    /// the method pools neighbours ([`Plan::pooled`]) and the linker has similarities.
    ///
    /// [`Plan::pooled`]: crate::method::Plan::pooled
    pub similarities: Option<Vec<f32>>,
    /// The complete lists of neighbours, if a training step sees only K of them.
    pub listed: Option<NeighbourLists>,
}

/// All neighbours of the rows of a batch, if the training step sees only some of them.
#[derive(Debug, Clone)]
pub struct NeighbourLists {
    /// Index of the record at each position of the lists, [B·L].
    pub slots: Tensor<1, Int>,
    /// Positions that the step sees, ascending: K of L.
    pub places: Vec<usize>,
}

impl NeighbourBatch {
    /// Returns the same records without autodiff.
    #[must_use]
    pub fn untracked(&self) -> Self {
        Self {
            keys: self.keys.clone().without_autodiff(),
            features: self.features.clone().without_autodiff(),
            slots: self.slots.clone().without_autodiff(),
            similarities: self.similarities.clone(),
            listed: self.listed.as_ref().map(|listed| NeighbourLists {
                slots: listed.slots.clone().without_autodiff(),
                places: listed.places.clone(),
            }),
            ..*self
        }
    }
}

/// One party's local model.
///
/// Laws, checked by the contract suite for every plug-in:
///
/// - Backward after forward gives the same gradient as an uncut graph.
/// - All backends agree to a stated tolerance.
/// - Without dropout, the representation of a row depends only on the row's neighbours, so that rows with the
///   same neighbours are evaluated once.
pub trait Encoder: Send {
    /// Returns the trained parameters and their optimiser.
    fn learner(&self) -> &dyn Learner;

    /// Returns the trained parameters and their optimiser, to take a step or to load parameters.
    fn learner_mut(&mut self) -> &mut dyn Learner;

    /// Returns the detached representation [B, K, H]; a tracked pass keeps the graph for
    /// [`Encoder::backward`].
    fn forward(&mut self, batch: &NeighbourBatch, pass: &mut Pass, tracked: bool) -> Tensor<3>;

    /// Back-propagates the gradient [B, K, H] with respect to the last tracked representation.
    ///
    /// # Panics
    /// If no tracked forward pass precedes the call.
    fn backward(&mut self, gradient: Tensor<3>);
}

/// The inputs of an encoder, in addition to its settings.
#[derive(Debug)]
pub struct EncoderContext<'a> {
    /// Device of the encoder, with autodiff.
    pub device: &'a Device,
    /// Random stream of the initial weights.
    pub weights: ChaCha8Rng,
    /// K, the number of neighbours per row.
    pub neighbours: usize,
    /// m, the number of key columns; 0 if the method's models see no keys.
    pub key_columns: usize,
    /// d, the number of feature columns.
    pub feature_columns: usize,
    /// Settings shared by the method's models.
    pub shape: &'a ModelShape,
    /// Optimiser of the encoder.
    pub optimizer: &'a OptimizerSettings,
    /// Computation options.
    pub computation: Computation,
}

/// Computation options of a party; the results are equal up to rounding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Computation {
    /// True if the forward pass drops its graph and the backward pass recomputes it.
    pub recompute: bool,
    /// True if the host's fused kernels replace tensor operations, for encoders with fused kernels.
    pub fused: bool,
}

impl SlotKind for dyn Encoder {
    const SLOT: &'static str = "encoder";
    type Context<'a> = EncoderContext<'a>;
}

inventory::collect!(Plugin<dyn Encoder>);

/// A module that maps neighbours to a representation.
pub trait Network: Module {
    /// Returns the representation of a batch.
    ///
    /// # Shapes
    /// - result: [B, K, H]
    fn forward(&self, batch: &NeighbourBatch, pass: &mut Pass) -> Tensor<3>;
}

/// Adapter that makes a [`Network`] an [`Encoder`].
#[derive(Debug)]
pub struct LocalModel<N> {
    trainable: Trainable<N>,
    recompute: bool,
    pending: Option<Pending>,
}

/// State kept between the forward and the backward pass.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each party has only one")]
enum Pending {
    /// The graph itself.
    Graph(Tensor<3>),
    /// The inputs for recomputing the graph in the backward pass. Dropout repeats, because its masks come
    /// from the pass.
    Inputs(NeighbourBatch, Pass),
}

impl<N: Network> LocalModel<N> {
    /// Wraps `network`, built in `context`, for training.
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
