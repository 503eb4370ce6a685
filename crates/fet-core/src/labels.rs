//! The `LabelProtection` slot: limits the information that the other parties learn about the primary's
//! training labels.
//!
//! A secondary receives a gradient for every row, and the gradient of a row reveals its label. A protection
//! changes the training labels once, before training, or the gradients each time before the primary sends
//! them. It also states the privacy loss. It concerns only the primary: no other party computes with it or
//! has to agree to it, so it is not one of the common settings. Plug-ins are in `labels/` of `fet-components`.

pub use fet_eval::records::LabelPrivacy;

use crate::data::Task;
use crate::objective::Objective;
use crate::registry::{Plugin, SlotKind, Violation};
use crate::rng::ChaCha8Rng;

/// Protects training labels from the parties that receive gradients.
///
/// Laws, checked by the contract suite for every plug-in:
///
/// - The privacy map never understates the loss, and claims a finite loss only if the protection draws random
///   values.
/// - The same generator gives the same values, so that a resumed run sends exactly what the interrupted run
///   sent.
pub trait LabelProtection: Send + Sync {
    /// Returns true if the protection changes neither labels nor gradients.
    fn is_identity(&self) -> bool;

    /// Returns true if [`LabelProtection::gradients`] changes gradients, which then pass through the host.
    fn changes_gradients(&self) -> bool {
        false
    }

    /// Returns the probability that the answer for a label is the true class, if the protection replaces classes and each
    /// other class is equally likely; `None` for any other protection.
    fn truth(&self) -> Option<f64> {
        None
    }

    /// Returns true if every value of a row's gradient is sent in some form. Otherwise some are left out, and among equal
    /// values, which several parties get, only the first are sent.
    fn keeps_every_value(&self) -> bool {
        true
    }

    /// Prepares the protection for the exposure of a run; refuses a run that it cannot protect.
    fn prepare(&mut self, _exposure: &Exposure) -> Result<(), Violation> {
        Ok(())
    }

    /// Replaces the training labels, in their own unit, and the label range of the objective. The primary
    /// validates and tests with the true labels. Law: each answer depends only on its own label and the
    /// generator. A run with independent randomness passes the labels one at a time, each with a separate
    /// generator.
    fn labels(&self, _labels: &mut [f64], _objective: &mut Objective, _rng: &mut ChaCha8Rng) {}

    /// Replaces the gradients with respect to the memory, of each row's own loss, before the primary sends
    /// them. Each row has a block of `width` values.
    fn gradients(&self, _gradients: &mut [f32], _width: usize, _rng: &mut ChaCha8Rng) {}

    /// Returns the privacy loss of any one training label through the exposure.
    fn spent(&self, exposure: &Exposure) -> LabelPrivacy;
}

/// The label-dependent data that leave the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// The kind of label.
    pub task: Task,
    /// Number of classes; 2 for a binary task, 1 for a regression.
    pub classes: usize,
    /// Total number of row gradients that the primary sends.
    pub rows: u64,
    /// Maximum number of times that the primary sends the gradient of one row.
    pub times: u64,
    /// True if the step sizes that the primary sends depend on the validation metric.
    pub steps_follow_metric: bool,
    /// True if the other parties take part in the training; false if they receive labels once, before it.
    pub parties_train: bool,
}

impl SlotKind for dyn LabelProtection {
    const SLOT: &'static str = "labels";
    const DEFAULT: Option<&'static str> = Some("none");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn LabelProtection>);
