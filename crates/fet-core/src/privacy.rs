//! The `PrivacyMechanism` slot: how a secondary protects a representation before it leaves, and the privacy loss of a
//! run.
//!
//! A mechanism combines a function and its privacy map: neither is useful without the other. Statement and proof are in
//! the documentation of the crate `fet-privacy`. Plug-ins are in `mechanisms/` of `fet-components`.

mod account;
mod loss;

use burn::tensor::{Bool, Tensor};

use crate::registry::{Plugin, SlotKind, Violation};
use crate::rng::ChaCha8Rng;

pub use account::{Guarantee, Learning, Neighbouring, Randomness, Releases, Spent, Tally};
pub use loss::{Loss, NoisyReleases};

/// Bounds a representation, adds noise to it, and accounts for it.
///
/// Laws, checked by the contract suite for every plug-in: what leaves is bounded as the mechanism states; the noise has
/// the stated variance (tested at a stated α); the privacy map never understates the loss.
pub trait PrivacyMechanism: Send + Sync {
    /// Whether [`PrivacyMechanism::bound`] and [`PrivacyMechanism::share`] change nothing.
    fn is_identity(&self) -> bool;

    /// The representation with each row's block clipped to the norm that the mechanism allows one of `active` parties;
    /// differentiable.
    ///
    /// # Shapes
    /// - `representation` and the result: [B, K, H]
    fn bound(&self, representation: Tensor<3>, active: usize) -> Tensor<3>;

    /// What leaves: the bounded values plus this party's share of the noise.
    fn share(&self, values: Vec<f32>, release: &mut Release<'_>) -> Share;

    /// A bound on the values of a sum over `active` parties; nothing if they are not bounded.
    fn form(&self, active: usize, block: usize) -> Option<Form>;

    /// The records used in a release.
    fn selection(&self) -> Selection;

    /// Whether secondaries keep their initial models, so that every row is released only once.
    fn freezes_secondaries(&self) -> bool {
        false
    }

    /// The number of secondaries that may collude with the primary.
    fn colluding(&self) -> usize {
        0
    }

    /// Whether the guarantee relies on the secondaries' own sampling.
    fn claims_amplification(&self) -> bool {
        false
    }

    /// Records what the run will release; calibrates the noise if a target is set, and refuses a run that it cannot
    /// protect.
    fn prepare(&mut self, releases: &Releases) -> Result<(), Violation>;

    /// Refuses releases in which so many parties take part that it cannot make the noise that it accounts for; asked before
    /// every release, since a run may lose parties.
    fn check_parties(&self, _releases: &Releases, _active: usize) -> Result<(), Violation> {
        Ok(())
    }

    /// The privacy loss of any one record in the releases that were made, one tally for each epoch. Where secondaries are
    /// frozen, each tally that is not empty is a pass: a release of every row once.
    fn spent(&self, releases: &Releases, tallies: &[Tally]) -> Spent;

    /// ε of `spent` alone, infinite where it is not bounded. Law: it does not fall as releases are added, nor as one is
    /// replaced by one with fewer parties.
    fn epsilon(&self, releases: &Releases, tallies: &[Tally]) -> f64 {
        self.spent(releases, tallies).epsilon.unwrap_or(f64::INFINITY)
    }

    /// ε of the releases at `delta`, infinite where it is not bounded. Laws: at the δ of `spent` it is [`epsilon`]; it does not
    /// rise with δ, and changes with the releases as [`epsilon`] does.
    ///
    /// [`epsilon`]: PrivacyMechanism::epsilon
    fn epsilon_at(&self, releases: &Releases, tallies: &[Tally], delta: f64) -> f64 {
        // A bound at one δ is a bound at every larger one.
        let spent = self.spent(releases, tallies);
        spent.epsilon.filter(|_| delta >= spent.delta).unwrap_or(f64::INFINITY)
    }

    /// ε of the releases at `delta` if the noise were drawn perfectly. It is no guarantee, and may be finite where `epsilon_at`
    /// is not: by it a party compares the cost of releases. Laws: it is at most `epsilon_at`, and changes with the releases as
    /// [`epsilon`] does.
    ///
    /// [`epsilon`]: PrivacyMechanism::epsilon
    fn ideal_epsilon_at(&self, releases: &Releases, tallies: &[Tally], delta: f64) -> f64 {
        self.epsilon_at(releases, tallies, delta)
    }

    /// Whether ε is that of an idealisation, such as noise of real numbers where 32-bit floats leave.
    fn is_idealised(&self) -> bool {
        false
    }

    /// The loss of the releases in a form that adds up over runs. Law: alone it gives no less than `epsilon`, and it changes with
    /// the releases as `epsilon` does.
    fn loss(&self, releases: &Releases, tallies: &[Tally]) -> Loss {
        if tallies.iter().all(|tally| tally.releases() == 0) {
            return Loss::NONE;
        }
        let Spent { epsilon, delta, statement, .. } = self.spent(releases, tallies);
        match epsilon.filter(|epsilon| epsilon.is_finite()) {
            Some(epsilon) => Loss::Bound { epsilon, delta },
            None => Loss::Unbounded { reason: statement },
        }
    }

    /// The ε that the settings say no run must pass, if they say any.
    fn target(&self) -> Option<f64> {
        None
    }
}

/// The circumstances of one release.
#[derive(Debug)]
pub struct Release<'a> {
    /// The number of participating parties.
    pub active: usize,
    /// Whether only the sum over the parties is revealed, so that each adds only its share of the noise.
    pub summed: bool,
    /// K·H, the length of one row's block.
    pub block: usize,
    /// The party's own noise for this step.
    pub noise: &'a mut ChaCha8Rng,
}

/// A party's share of a representation, before masking.
#[derive(Clone, PartialEq)]
pub enum Share {
    /// Floats.
    Floats(Vec<f32>),
    /// Integers, in units of 1/`scale`.
    Integers {
        /// The values.
        values: Vec<i32>,
        /// Units per 1.
        scale: f64,
    },
}

/// Shows sizes, never values.
impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Floats(values) => write!(f, "Share[{} floats]", values.len()),
            Self::Integers { values, scale } => write!(f, "Share[{} integers, {scale} to 1]", values.len()),
        }
    }
}

/// Bounds on sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Form {
    /// The largest absolute value of a sum without noise.
    pub bound: f64,
    /// The standard deviation of the noise on the sum.
    pub noise: f64,
    /// Units per 1, if the shares are integers.
    pub scale: Option<f64>,
}

/// The records of a secondary that may be neighbours in a release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Selection {
    /// The probability that a record is used in a release.
    pub rate: f64,
    /// The most rows of a release for which a record may be a neighbour; 0 for all.
    pub occurrences: usize,
}

impl Selection {
    /// Every record, for every row.
    pub const ALL: Self = Self { rate: 1.0, occurrences: 0 };
}

impl SlotKind for dyn PrivacyMechanism {
    const SLOT: &'static str = "privacy";
    const DEFAULT: Option<&'static str> = Some("none");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn PrivacyMechanism>);

/// Returns true for each row whose block has no finite L2 norm, because it holds NaN, infinity or values that are too large.
/// Clipping replaces such a block by zeros.
///
/// # Shapes
/// - `representation`: [B, K, H]; the result: [B, 1]
pub fn unbounded_blocks(representation: &Tensor<3>) -> Tensor<2, Bool> {
    let [rows, _, _] = representation.dims();
    let flat = representation.clone().reshape([rows as i32, -1]);
    flat.powi_scalar(2).sum_dim(1).is_finite().bool_not()
}
