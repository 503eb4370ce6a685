//! The privacy loss of a run's releases, in a form that adds up over several runs.

use serde::{Deserialize, Serialize};

/// Privacy loss of one record through a run's releases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Every release has Gaussian noise.
    Gaussian {
        /// The releases, by kind.
        releases: Vec<NoisyReleases>,
        /// Maximum number of integers drawn as noise; 0 for noise of real numbers.
        values: f64,
    },
    /// A bound on all releases together.
    Bound {
        /// ε.
        epsilon: f64,
        /// δ.
        delta: f64,
    },
    /// The loss is unbounded, as far as is known.
    Unbounded {
        /// The reason.
        reason: String,
    },
}

/// Number and noise of releases of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NoisyReleases {
    /// Standard deviation of the noise, in units of the sensitivity.
    pub noise: f64,
    /// The probability that a record takes part in a release.
    pub rate: f64,
    /// Number of releases.
    pub count: u64,
}

impl Loss {
    /// The loss without any release.
    pub const NONE: Self = Self::Gaussian { releases: Vec::new(), values: 0.0 };

    /// Returns true for the loss without any release.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Gaussian { releases, .. } if releases.iter().all(|release| release.count == 0))
    }
}
