//! The `PrivacyMechanism` slot: what a secondary does to a representation before it leaves, and what a
//! run has then spent.
//!
//! A mechanism is a function and its privacy map in one value: neither is of use without the other. Statement and
//! proof stand in the documentation of the crate `fet-privacy`. Plug-ins are in `privacy/`.

mod account;

use burn::tensor::Tensor;

use crate::registry::{Plugin, SlotKind, Violation};
use crate::rng::ChaCha8Rng;

pub use account::{Guarantee, Learning, Neighbouring, Releases, Spent};

/// Bounds a representation, adds noise to it, and accounts for it.
///
/// Laws, held by the contract suite for every plug-in: what leaves is bounded as the mechanism says; the
/// noise has the variance it states (tested at a written α); the privacy map is never below the truth.
pub trait PrivacyMechanism: Send + Sync {
    /// Whether [`PrivacyMechanism::bound`] and [`PrivacyMechanism::share`] change nothing.
    fn is_identity(&self) -> bool;

    /// The representation with each row's block no longer than the mechanism allows one of `active` parties;
    /// differentiable.
    ///
    /// # Shapes
    /// - `representation` and the result: [B, K, H]
    fn bound(&self, representation: Tensor<3>, active: usize) -> Tensor<3>;

    /// What leaves: the bounded values with this party's share of the noise.
    fn share(&self, values: Vec<f32>, release: &mut Release<'_>) -> Share;

    /// How large the values of a sum over `active` parties can be; nothing where they are not bounded.
    fn form(&self, active: usize, block: usize) -> Option<Form>;

    /// Which records take part in a release.
    fn selection(&self) -> Selection;

    /// Whether secondaries keep the models they begin with, so that every row is released once and for all.
    fn freezes_secondaries(&self) -> bool {
        false
    }

    /// How many secondaries may pool what they know with the primary.
    fn colluding(&self) -> usize {
        0
    }

    /// Whether the guarantee counts on the secondaries' own sampling.
    fn claims_amplification(&self) -> bool {
        false
    }

    /// Takes note of what the run will release; calibrates the noise where a target is set, and refuses a run that
    /// it cannot protect.
    fn prepare(&mut self, releases: &Releases) -> Result<(), Violation>;

    /// What the first `epochs` epochs of a run have spent of any one record.
    fn spent(&self, releases: &Releases, epochs: usize) -> Spent;
}

/// The circumstances of one release.
#[derive(Debug)]
pub struct Release<'a> {
    /// How many parties take part.
    pub active: usize,
    /// Whether only the sum over the parties becomes known, so that each adds only its share of the noise.
    pub summed: bool,
    /// K·H, the length of one row's block.
    pub block: usize,
    /// The party's own noise for this step.
    pub noise: &'a mut ChaCha8Rng,
}

/// What a party sends of a representation, before it is masked.
#[derive(Clone, PartialEq)]
pub enum Share {
    /// Floats.
    Floats(Vec<f32>),
    /// Integers, of which `scale` make 1.
    Integers {
        /// The values.
        values: Vec<i32>,
        /// Units per 1.
        scale: f64,
    },
}

/// Shows how much there is, never what.
impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Floats(values) => write!(f, "Share[{} floats]", values.len()),
            Self::Integers { values, scale } => write!(f, "Share[{} integers, {scale} to 1]", values.len()),
        }
    }
}

/// How large sums can be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Form {
    /// The largest absolute value of a sum without noise.
    pub bound: f64,
    /// The standard deviation of the noise on the sum.
    pub noise: f64,
    /// Units per 1, where the shares are integers.
    pub scale: Option<f64>,
}

/// Which records of a secondary may be neighbours in a release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Selection {
    /// The probability with which a record takes part in a release.
    pub rate: f64,
    /// For how many rows of a release a record may be a neighbour; 0 for all.
    pub occurrences: usize,
}

impl Selection {
    /// Every record, for every row.
    pub const ALL: Self = Self { rate: 1.0, occurrences: 0 };
}

impl SlotKind for dyn PrivacyMechanism {
    const SLOT: &'static str = "privacy";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn PrivacyMechanism>);
