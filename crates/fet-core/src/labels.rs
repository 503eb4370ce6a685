//! The `LabelProtection` slot: what the other parties can learn of the primary's training labels.
//!
//! A secondary receives a gradient for every row, and the gradient of a row points to its label. A protection changes
//! the training labels once, before training, or the gradients, each time before they are sent; and it says what that is
//! worth. It concerns the primary alone: no other party computes with it or has to agree to it, so it is not among the
//! common settings. Plug-ins are in `labels/` of `fet-components`.

pub use fet_eval::records::LabelPrivacy;

use crate::data::Task;
use crate::objective::Objective;
use crate::registry::{Plugin, SlotKind, Violation};
use crate::rng::ChaCha8Rng;

/// Protects training labels from the parties that receive gradients.
///
/// Laws, checked by the contract suite for every plug-in: the privacy map never understates the loss, and claims one only
/// where something random is drawn; the same generator gives the same values, so that a resumed run sends nothing that the
/// interrupted one did not.
pub trait LabelProtection: Send + Sync {
    /// Returns true if the protection changes neither labels nor gradients.
    fn is_identity(&self) -> bool;

    /// Whether [`LabelProtection::gradients`] changes them; they then pass through the host.
    fn changes_gradients(&self) -> bool {
        false
    }

    /// Learns what the run will expose; computes what depends on it, and refuses what it cannot protect.
    fn prepare(&mut self, _exposure: &Exposure) -> Result<(), Violation> {
        Ok(())
    }

    /// Replaces the training labels, in their own unit, and what the objective knows of them. Only those labels: the
    /// primary validates and tests with true ones. Law: each answer follows from its own label and the generator alone, because the
    /// labels of a run with its own randomness come one at a time, each with a generator of its own.
    fn labels(&self, _labels: &mut [f64], _objective: &mut Objective, _rng: &mut ChaCha8Rng) {}

    /// Replaces the gradients with respect to the memory, of each row's own loss, before they are sent: one block of
    /// `width` values for each row.
    fn gradients(&self, _gradients: &mut [f32], _width: usize, _rng: &mut ChaCha8Rng) {}

    /// What the exposure costs any one training label.
    fn spent(&self, exposure: &Exposure) -> LabelPrivacy;
}

/// What depends on labels and leaves the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// The kind of label.
    pub task: Task,
    /// The number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// Gradients of rows that are sent in all.
    pub rows: u64,
    /// How often the gradient of one row is sent at most.
    pub times: u64,
    /// Whether the step sizes that are sent follow the validation metric.
    pub steps_follow_metric: bool,
}

impl SlotKind for dyn LabelProtection {
    const SLOT: &'static str = "labels";
    const DEFAULT: Option<&'static str> = Some("none");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn LabelProtection>);
