//! Repetitions of a variant: seeds, and the folds of a cross-validation.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};

use anyhow::{Result, ensure};
use serde_json::Value;

/// One of the repetitions of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Repetition {
    /// The seed.
    pub(crate) seed: u64,
    /// The fold, if the study has a cross-validation.
    pub(crate) fold: Option<usize>,
}

impl From<u64> for Repetition {
    fn from(seed: u64) -> Self {
        Self { seed, fold: None }
    }
}

impl Repetition {
    /// Returns the seed as a JSON number, or seed and fold as text.
    pub(crate) fn json(&self) -> Value {
        if self.fold.is_none() { self.seed.into() } else { self.to_string().into() }
    }
}

impl Display for Repetition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.fold {
            None => write!(f, "{}", self.seed),
            Some(fold) => write!(f, "{}, fold {fold}", self.seed),
        }
    }
}

/// Checks that `seeds` is not empty and has no duplicates. The error names `field`, the source of the seeds.
pub(crate) fn check_seeds(field: &str, seeds: &[u64]) -> Result<()> {
    ensure!(!seeds.is_empty(), "{field}: must contain at least one seed, but is []");
    let mut seen = HashSet::new();
    for seed in seeds {
        ensure!(seen.insert(seed), "{field}: seeds must differ, but {seed} appears twice");
    }
    Ok(())
}

/// Checks a number of folds. The error names `field`, the source of the number.
pub(crate) fn check_folds(field: &str, folds: usize) -> Result<()> {
    ensure!(folds != 1, "{field}: must be at least 2, or 0 for the split of the experiment, but is 1");
    Ok(())
}
