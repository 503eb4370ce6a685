//! Messages of a release that a party makes once, in place of taking part in the training.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LifetimeState, array};
use crate::data::Keys;

/// The primary's places for a release that follows from its keys and labels.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ReleasePlaces {
    /// One key for each place.
    pub keys: Keys,
    /// For each place, 0 if no training row has it, and otherwise one plus the class or the bin of its label.
    #[serde(with = "array")]
    pub labels: Vec<u32>,
    /// Number of classes or bins.
    pub symbols: u32,
    /// Probability that a label is the true one, where each other label is equally likely; 1 for labels without protection.
    pub label_truth: f64,
}

/// Shows the number of places, not their keys or labels.
impl fmt::Debug for ReleasePlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReleasePlaces({} keys)", self.keys.rows())
    }
}

/// A party's release.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ReleasedValues {
    /// The integers, in the order of the kind of release.
    #[serde(with = "array")]
    pub values: Vec<i64>,
    /// State of the party's lifetime account with this release; `None` if the party keeps no account.
    pub lifetime: Option<LifetimeState>,
}

/// Shows the number of values only.
impl fmt::Debug for ReleasedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReleasedValues({} values)", self.values.len())
    }
}
