//! Which of the primary's records are trained on, validated on and tested on.

use std::fmt;

use fet_eval::Fractions;
use serde::{Deserialize, Serialize};

/// Which of the primary's records are in which part. All parties have it: the schedule follows from it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Parts {
    /// As the common seed draws them; these shares are for validation and test.
    Random {
        /// Of all records.
        validation: f64,
        /// Of all records.
        test: f64,
    },
    /// Record by record: [`Parts::TRAIN`], [`Parts::VALIDATION`], [`Parts::TEST`] or [`Parts::ASIDE`]. It tells the secondaries what the
    /// primary's column tells of each record: by time, which records are later.
    Given(Vec<u8>),
}

impl Parts {
    /// A record that is trained on.
    pub const TRAIN: u8 = 0;
    /// A record that selects the epoch.
    pub const VALIDATION: u8 = 1;
    /// A record that is tested on.
    pub const TEST: u8 = 2;
    /// A record that is in no part.
    pub const ASIDE: u8 = 3;
}

impl Default for Parts {
    fn default() -> Self {
        let usual = Fractions::default();
        Self::Random { validation: usual.validation(), test: usual.test() }
    }
}

/// Shows how many there are, not which.
impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random { validation, test } => write!(f, "Random({validation}, {test})"),
            Self::Given(parts) => write!(f, "Given({} records)", parts.len()),
        }
    }
}
