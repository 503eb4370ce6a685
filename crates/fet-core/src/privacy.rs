//! The `PrivacyMechanism` slot: protects a secondary's representation before it leaves, and computes the
//! privacy loss of a run.
//!
//! A mechanism combines a function and its privacy map: neither is useful without the other. Statement and
//! proof are in the documentation of the crate `fet-privacy`. Plug-ins are in `mechanisms/` of
//! `fet-components`.

mod account;

use burn::tensor::{Bool, Tensor};

use crate::registry::{Plugin, SlotKind, Violation};
use crate::rng::ChaCha8Rng;

pub use crate::loss::{Loss, NoisyReleases};
pub use account::{Guarantee, Learning, Neighbouring, Randomness, Releases, Spent, Tally};

/// Clips a representation, adds noise to it, and accounts for its release.
///
/// Laws, checked by the contract suite for every plug-in:
///
/// - The released values are bounded as the mechanism states.
/// - The noise has the stated variance (tested at a stated α).
/// - The privacy map never understates the loss.
pub trait PrivacyMechanism: Send + Sync {
    /// Returns true if [`PrivacyMechanism::clip`] and [`PrivacyMechanism::add_noise`] change nothing.
    fn is_identity(&self) -> bool;

    /// Clips each row's block to the norm that the mechanism allows one of `active` parties; differentiable.
    ///
    /// # Shapes
    /// - `representation` and the result: [B, K, H]
    fn clip(&self, representation: Tensor<3>, active: usize) -> Tensor<3>;

    /// Returns the values for release: the clipped values plus this party's share of the noise.
    fn add_noise(&self, values: Vec<f32>, release: &mut Release<'_>) -> Share;

    /// Returns bounds on the values of a sum over `active` parties, or `None` if the values are unbounded.
    fn form(&self, active: usize, block: usize) -> Option<Form>;

    /// Returns the selection of records for a release.
    fn selection(&self) -> Selection;

    /// Returns true if secondaries keep their initial models, so that every row is released only once.
    fn freezes_secondaries(&self) -> bool {
        false
    }

    /// Returns the number of secondaries that may collude with the primary.
    fn colluding(&self) -> usize {
        0
    }

    /// Returns true if the guarantee relies on the secondaries' own sampling.
    fn claims_amplification(&self) -> bool {
        false
    }

    /// Records the planned releases of the run; calibrates the noise if a target is set, and refuses a run
    /// that the mechanism cannot protect.
    fn prepare(&mut self, releases: &Releases) -> Result<(), Violation>;

    /// Refuses releases with a number of parties for which the mechanism cannot make the noise that it
    /// accounts for. The party checks this before every release, because parties may drop out of a run.
    fn check_parties(&self, _releases: &Releases, _active: usize) -> Result<(), Violation> {
        Ok(())
    }

    /// Returns the privacy loss of any one record through the releases so far, with one tally for each epoch.
    /// If secondaries are frozen, each tally that is not empty is a pass: a release of every row once.
    fn spent(&self, releases: &Releases, tallies: &[Tally]) -> Spent;

    /// Returns only the ε of `spent`, or infinity if it is unbounded. Law: ε does not decrease if a release
    /// is added, nor if a release is replaced by one with fewer parties.
    fn epsilon(&self, releases: &Releases, tallies: &[Tally]) -> f64 {
        self.spent(releases, tallies).epsilon.unwrap_or(f64::INFINITY)
    }

    /// Returns the ε of the releases at `delta`, or infinity if it is unbounded. Laws: at the δ of `spent` it
    /// equals [`epsilon`]; it does not increase with δ, and changes with the releases as [`epsilon`] does.
    ///
    /// [`epsilon`]: PrivacyMechanism::epsilon
    fn epsilon_at(&self, releases: &Releases, tallies: &[Tally], delta: f64) -> f64 {
        // A bound at one δ is a bound at every larger one.
        let spent = self.spent(releases, tallies);
        spent.epsilon.filter(|_| delta >= spent.delta).unwrap_or(f64::INFINITY)
    }

    /// Returns the ε that the releases would have at `delta` if the noise were drawn perfectly. It is not a
    /// guarantee, and may be finite if `epsilon_at` is infinite: a party uses it to compare the cost of
    /// releases. Laws: it is at most `epsilon_at`, and changes with the releases as [`epsilon`] does.
    ///
    /// [`epsilon`]: PrivacyMechanism::epsilon
    fn ideal_epsilon_at(&self, releases: &Releases, tallies: &[Tally], delta: f64) -> f64 {
        self.epsilon_at(releases, tallies, delta)
    }

    /// Returns true if ε holds only for an idealisation, such as noise of real numbers for a release of
    /// 32-bit floats.
    fn is_idealised(&self) -> bool {
        false
    }

    /// Returns the loss of the releases in a form that adds up over runs. Law: for a single run it gives at
    /// least `epsilon`, and it changes with the releases as `epsilon` does.
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

    /// Returns the ε that no run may exceed, if the settings give one.
    fn target(&self) -> Option<f64> {
        None
    }
}

/// The circumstances of one release.
#[derive(Debug)]
pub struct Release<'a> {
    /// Number of participating parties.
    pub active: usize,
    /// True if only the sum over the parties is revealed, so that each party adds only its share of the
    /// noise.
    pub summed: bool,
    /// K·H, the length of one row's block.
    pub block: usize,
    /// The party's own noise for this step.
    pub noise: &'a mut ChaCha8Rng,
}

/// A party's protected representation, before masking.
#[derive(Clone, PartialEq)]
pub enum Share {
    /// Floats.
    Floats(Vec<f32>),
    /// Integers, in units of 1/`scale`.
    Integers {
        /// The values.
        values: Vec<i32>,
        /// Number of integer units in 1.
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
    /// Largest absolute value of a sum without noise.
    pub bound: f64,
    /// Standard deviation of the noise on the sum.
    pub noise: f64,
    /// Number of integer units in 1, if the shares are integers.
    pub scale: Option<f64>,
}

/// Selection of the secondary's records that may be neighbours in a release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Selection {
    /// Probability that a record is used in a release.
    pub rate: f64,
    /// Maximum number of rows in a release for which a record may be a neighbour; 0 for all.
    pub occurrences: usize,
}

impl Selection {
    /// Selects every record for every row.
    pub const ALL: Self = Self { rate: 1.0, occurrences: 0 };
}

impl SlotKind for dyn PrivacyMechanism {
    const SLOT: &'static str = "privacy";
    const DEFAULT: Option<&'static str> = Some("none");
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn PrivacyMechanism>);

/// Returns true for each row whose block has no finite L2 norm, because it holds NaN, infinity or values that
/// are too large. Clipping replaces such a block by zeros.
///
/// # Shapes
/// - `representation`: [B, K, H]; the result: [B, 1]
pub fn unbounded_blocks(representation: &Tensor<3>) -> Tensor<2, Bool> {
    let [rows, _, _] = representation.dims();
    let flat = representation.clone().reshape([rows as i32, -1]);
    flat.powi_scalar(2).sum_dim(1).is_finite().bool_not()
}
