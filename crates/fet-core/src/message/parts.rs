//! The split of the primary's records into training, validation and test records, as the terms contain it.

use std::fmt;

use fet_eval::Fractions;
use serde::{Deserialize, Serialize};

/// Split of the primary's records. All parties have it, because it determines the schedule.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Parts {
    /// A random split drawn from the common seed, with these shares for validation and test.
    Random {
        /// Share of all records for validation.
        validation: f64,
        /// Share of all records for the test.
        test: f64,
    },
    /// A part for each record: [`Parts::TRAIN`], [`Parts::VALIDATION`], [`Parts::TEST`] or [`Parts::ASIDE`].
    /// It reveals to the secondaries how the primary's column splits the records, for example which records
    /// are later.
    Given(Vec<u8>),
}

impl Parts {
    /// A training record.
    pub const TRAIN: u8 = 0;
    /// A validation record, which selects the epoch.
    pub const VALIDATION: u8 = 1;
    /// A test record.
    pub const TEST: u8 = 2;
    /// A record outside the split.
    pub const ASIDE: u8 = 3;
}

impl Default for Parts {
    fn default() -> Self {
        let usual = Fractions::default();
        Self::Random { validation: usual.validation(), test: usual.test() }
    }
}

/// Shows the number of records, not their parts.
impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random { validation, test } => write!(f, "Random({validation}, {test})"),
            Self::Given(parts) => write!(f, "Given({} records)", parts.len()),
        }
    }
}
