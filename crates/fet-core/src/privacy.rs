//! The `PrivacyMechanism` slot: what a secondary does to a representation before it leaves, and what a
//! run has then spent.
//!
//! A mechanism is a function and its privacy map in one value: neither is of use without the other.
//! Plug-ins are in `privacy/`.

mod none;

use burn::tensor::Tensor;
use serde::Serialize;

use crate::registry::{Plugin, SlotKind};
use crate::rng::ChaCha8Rng;

pub use none::NoneSettings;

/// Bounds a representation, adds noise to it, and accounts for it.
///
/// Laws, held by the contract suite for every plug-in: what leaves is bounded as the mechanism says; the
/// noise has the variance it states (tested at a written α); the privacy map is never below the truth.
pub trait PrivacyMechanism: Send + Sync {
    /// Whether [`PrivacyMechanism::protect`] changes nothing, so that no graph need be built for it.
    fn is_identity(&self) -> bool;

    /// The representation as it may be sent; differentiable.
    ///
    /// # Shapes
    /// - `representation` and the result: [B, K, H]
    fn protect(&self, representation: Tensor<3>, release: &mut Release<'_>) -> Tensor<3>;

    /// What `releases` releases of one party's records have spent.
    fn spent(&self, releases: u64) -> Spent;
}

/// The circumstances of one release.
#[derive(Debug)]
pub struct Release<'a> {
    /// How many parties take part in the sum.
    pub active: usize,
    /// The party's own noise for this step.
    pub noise: &'a mut ChaCha8Rng,
}

/// A privacy loss, with what it assumes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spent {
    /// ε; nothing where the loss is not bounded.
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
    /// What the figure assumes and what it protects, in words.
    pub statement: String,
}

impl SlotKind for dyn PrivacyMechanism {
    const SLOT: &'static str = "privacy";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn PrivacyMechanism>);
