//! The `Method` slot: the computation of the primary and of the secondaries, given the other slots.
//!
//! A plug-in's half at the primary is a Burn module that implements [`PrimaryNetwork`]; [`PrimaryModel`]
//! makes a `Primary` of it, which cuts the autograd graph at the memory. A method builds halves; the trainer
//! runs them without knowing the method. The baseline methods are in the crate `fet-baselines`.

mod model;

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};

use crate::aggregator::Aggregator;
use crate::encoder::{Computation, Encoder};
use crate::linker::Linker;
use crate::message::Round;
use crate::model::Pass;
use crate::objective::Objective;
use crate::optimizer::OptimizerSettings;
use crate::parameters::Parameters;
use crate::privacy::PrivacyMechanism;
use crate::registry::{Plugin, Slot, SlotKind, Violation};
use crate::rng::ChaCha8Rng;
use crate::trainable::Learner;

pub use model::{PrimaryModel, PrimaryNetwork};

/// Builds the halves of a split model.
///
/// Law, checked by the contract suite for every plug-in: the method learns a tiny task and beats the best
/// constant.
pub trait Method: Send + Sync {
    /// Returns the properties that the trainer needs.
    fn plan(&self) -> Plan;

    /// Refuses slots that are incompatible with the method, before anything starts.
    fn check(&self, _slots: &Slots<'_>) -> Result<(), Violation> {
        Ok(())
    }

    /// Builds the primary's half.
    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation>;

    /// Builds one secondary's half; called only if the plan has secondaries.
    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation>;
}

/// The other plug-ins of an experiment. A method asks for their capabilities; their names are only for
/// messages.
pub struct Slots<'a> {
    /// The linker.
    pub linker: &'a dyn Linker,
    /// The aggregator.
    pub aggregator: &'a dyn Aggregator,
    /// The privacy mechanism.
    pub privacy: &'a dyn PrivacyMechanism,
    kinds: [(&'static str, &'a str); 3],
}

impl<'a> Slots<'a> {
    /// Creates the slots from plug-ins, each with its name.
    pub fn new(
        (linker, linker_kind): (&'a dyn Linker, &'a str),
        (aggregator, aggregator_kind): (&'a dyn Aggregator, &'a str),
        (privacy, privacy_kind): (&'a dyn PrivacyMechanism, &'a str),
    ) -> Self {
        let kinds = [
            (<dyn Linker>::SLOT, linker_kind),
            (<dyn Aggregator>::SLOT, aggregator_kind),
            (<dyn PrivacyMechanism>::SLOT, privacy_kind),
        ];
        Self { linker, aggregator, privacy, kinds }
    }

    /// Returns the refusal of the plug-in in slot `T`, which breaks `rule`.
    pub fn refuse<T: SlotKind + ?Sized>(&self, rule: impl Into<String>) -> Violation {
        let kind = self.kinds.iter().find(|(slot, _)| *slot == T::SLOT).map_or("", |(_, kind)| kind);
        Violation::new(format!("{}.kind", T::SLOT), rule, format!("\"{kind}\""))
    }
}

impl std::fmt::Debug for Slots<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slots({:?})", self.kinds)
    }
}

/// The properties of a method that the trainer needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// True if other parties take part.
    pub secondaries: bool,
    /// Default encoder.
    pub encoder: &'static str,
    /// Default aggregator.
    pub aggregator: &'static str,
    /// H, the width of a secondary's representation.
    pub width: usize,
    /// Width of a representation outside training, if it is not H.
    pub evaluation_width: Option<usize>,
    /// True if a secondary's representation is instead as wide as its number of columns.
    pub own_width: bool,
    /// Linked neighbours that each party represents.
    pub neighbours: Neighbours,
    /// True if a party makes one representation of all its neighbours of a row, so that the memory has one
    /// position.
    pub pooled: bool,
    /// True if the primary's half can train on some of the neighbours and evaluate with all of them.
    pub any_neighbours: bool,
    /// True if the primary's half needs similarities; the secondaries then reveal them.
    pub similarities: bool,
    /// Optimiser of the primary's model and of every secondary's model. Its learning rate is that of the first epoch.
    pub optimizer: OptimizerSettings,
    /// Share of the secondaries that each training step leaves out, r_d.
    pub party_dropout: f64,
    /// Parameters that are averaged over all parties, if any.
    pub averaged: Option<Averaged>,
    /// Epochs and steps of a method that takes all training rows at once and so cannot be interrupted.
    pub at_once: Option<AtOnce>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            secondaries: true,
            encoder: "transformer",
            aggregator: "average",
            width: 0,
            evaluation_width: None,
            own_width: false,
            neighbours: Neighbours::All,
            pooled: false,
            any_neighbours: false,
            similarities: false,
            optimizer: OptimizerSettings::default(),
            party_dropout: 0.0,
            averaged: None,
            at_once: None,
        }
    }
}

impl Plan {
    /// Returns the number of positions that a party sends for a row with `neighbours` neighbours.
    pub fn positions(&self, neighbours: usize) -> usize {
        if self.pooled { 1 } else { neighbours }
    }

    /// Returns the width of a representation in a round.
    pub fn width_in(&self, round: Round) -> usize {
        self.evaluation_width.filter(|_| !round.is_training()).unwrap_or(self.width)
    }
}

/// Epochs and steps of a method that takes all training rows at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    /// Number of epochs.
    pub epochs: usize,
    /// Number of steps of an epoch; each takes all training rows in the same order.
    pub steps: usize,
}

impl AtOnce {
    /// Returns epochs of one step.
    pub fn epochs(epochs: usize) -> Self {
        Self { epochs, steps: 1 }
    }
}

/// Parameters that are averaged over all parties, including the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Averaged {
    /// Prefix of the parameters' names, at every party.
    pub prefix: &'static str,
    /// Interval in epochs; at least 1.
    pub every: usize,
    /// The method's setting that requests the averaging.
    pub setting: &'static str,
}

/// The linked neighbours that a party represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// All K neighbours.
    All,
    /// The most similar neighbour.
    First,
    /// All K neighbours for the secondary with that number (from 1), the most similar neighbour for the
    /// others.
    FirstBut(usize),
}

impl Neighbours {
    /// Returns the number of `linked` neighbours that secondary `party` (from 1) represents.
    pub fn represented(self, party: usize, linked: usize) -> usize {
        match self {
            Self::All => linked,
            Self::FirstBut(all) if all == party => linked,
            Self::First | Self::FirstBut(_) => 1,
        }
    }
}

impl SlotKind for dyn Method {
    const SLOT: &'static str = "method";
    const DEFAULT: Option<&'static str> = Some("fet");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Method>);

/// The primary's half of a model.
pub trait Primary: Send {
    /// Returns the trained parameters and their optimiser.
    fn learner(&self) -> &dyn Learner;

    /// Returns the trained parameters and their optimiser, to take a step or to load parameters.
    fn learner_mut(&mut self) -> &mut dyn Learner;

    /// Fits the parts of the model that need all training rows at once. The trainer calls it once, before the
    /// first step of a run; `all` returns the training rows with their labels.
    fn begin(&mut self, _all: &mut dyn FnMut() -> PrimaryBatch) {}

    /// Runs forward pass, loss and backward pass for a training batch; the optimiser's step is separate.
    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome;

    /// Returns the activated output [B, outputs] of an evaluation batch.
    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2>;

    /// Returns the output [B, outputs] that [`Self::fit_to_validation`] requires of the validation rows.
    fn predict_for_fit(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        self.predict(batch, memory)
    }

    /// Fits the parts of the model that validation rows determine, and returns the activated output
    /// [n, outputs] of the fitted model, the same as [`Self::predict`]. The trainer calls it after every epoch,
    /// before the scores: the validation rows then choose these parts and the epoch, so that only the test rows
    /// give an unbiased score. `all` returns the n validation rows with their labels; `output` is
    /// [`Self::predict_for_fit`] of them.
    fn fit_to_validation(&mut self, _all: &mut dyn FnMut() -> PrimaryBatch, output: Tensor<2>) -> Tensor<2> {
        output
    }

    /// Returns the settings that `parameters` of this model contain as fitted values, by their names in the
    /// method's table.
    fn fitted_settings(&self, _parameters: &Parameters) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }
}

/// Primary records of one batch, and their labels.
#[derive(Debug, Clone)]
pub struct PrimaryBatch {
    /// Keys, [B, m], scaled.
    pub keys: Tensor<2>,
    /// Features, [B, d], scaled.
    pub features: Tensor<2>,
    /// Labels, scaled; empty at evaluation.
    pub labels: Vec<f32>,
    /// Weight of each row's loss, 1 on average over the training rows; empty if all rows have equal weight.
    pub weights: Vec<f32>,
}

/// The aggregator's output.
#[derive(Debug, Clone)]
pub struct Memory {
    /// Memory, [B, K, W], detached.
    pub tensor: Tensor<3>,
    /// Number of the K positions with real neighbours from any party.
    pub available: usize,
    /// Similarities of each active party's neighbours, [B, K], standardised on the training rows; empty
    /// unless the method requests them.
    pub similarities: Vec<Tensor<2>>,
}

/// The results of a training batch.
#[derive(Debug)]
pub struct TrainOutcome {
    /// Mean loss of the batch.
    pub loss: f64,
    /// Gradient with respect to the memory, if there was a memory.
    pub memory_gradient: Option<Tensor<3>>,
    /// Activated output [B, outputs].
    pub output: Tensor<2>,
}

/// The inputs of the primary's half.
#[derive(Debug)]
pub struct PrimaryContext<'a> {
    /// Device of the half, with autodiff.
    pub device: &'a Device,
    /// Random stream of the initial weights.
    pub weights: ChaCha8Rng,
    /// m, the number of key columns.
    pub key_columns: usize,
    /// d, the number of feature columns.
    pub feature_columns: usize,
    /// Loss and number of outputs.
    pub objective: Objective,
    /// Number of secondaries.
    pub parties: usize,
    /// K, the positions of the memory.
    pub positions: usize,
    /// W, the width of the memory.
    pub memory_width: usize,
    /// Computation options.
    pub computation: Computation,
}

/// The inputs of a secondary's half.
#[derive(Debug)]
pub struct SecondaryContext<'a> {
    /// Device of the half, with autodiff.
    pub device: &'a Device,
    /// Random stream of the initial weights.
    pub weights: ChaCha8Rng,
    /// K, the number of neighbours per row.
    pub neighbours: usize,
    /// m, the number of key columns.
    pub key_columns: usize,
    /// d, the number of feature columns.
    pub feature_columns: usize,
    /// Computation options.
    pub computation: Computation,
}
