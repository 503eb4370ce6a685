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
    /// Parts of different forms, such as noisy sums and randomised symbols, which add up.
    Parts {
        /// The losses of the parts.
        parts: Vec<Loss>,
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

    /// Returns the loss of releases with Gaussian noise, which is unbounded without noise.
    pub fn of_releases(releases: NoisyReleases) -> Self {
        match releases.noise > 0.0 {
            true => Self::Gaussian { releases: vec![releases], values: 0.0 },
            false => Self::Unbounded { reason: "releases without noise".into() },
        }
    }

    /// Returns true for the loss without any release.
    pub fn is_none(&self) -> bool {
        match self {
            Self::Gaussian { releases, .. } => releases.iter().all(|release| release.count == 0),
            Self::Parts { parts } => parts.iter().all(Self::is_none),
            Self::Bound { .. } | Self::Unbounded { .. } => false,
        }
    }

    /// Returns true if a file can hold the loss: its numbers are finite.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Gaussian { releases, values } => {
                values.is_finite()
                    && releases.iter().all(|kind| kind.noise.is_finite() && kind.rate.is_finite())
            }
            Self::Bound { epsilon, delta } => epsilon.is_finite() && delta.is_finite(),
            Self::Unbounded { .. } => true,
            Self::Parts { parts } => parts.iter().all(Self::is_finite),
        }
    }

    /// Returns the reason why the loss is unbounded; `None` if it is bounded.
    pub fn unbounded(&self) -> Option<&str> {
        match self {
            Self::Unbounded { reason } => Some(reason),
            Self::Parts { parts } => parts.iter().find_map(Self::unbounded),
            Self::Gaussian { .. } | Self::Bound { .. } => None,
        }
    }
}
