//! The types of a privacy account: a run's releases and their privacy loss. This module computes no loss.

use std::collections::BTreeMap;

pub use fet_eval::records::{Guarantee, Learning, Neighbouring, Randomness, Spent};
use serde::{Deserialize, Serialize};

/// The planned releases of a run in which no party drops out, known before the run begins; the noise is
/// calibrated to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Releases {
    /// Number of epochs in the run.
    pub epochs: usize,
    /// Number of training steps in an epoch.
    pub train_steps: usize,
    /// Number of batches of a validation and of a test evaluation together. The account counts the test in
    /// every epoch, although the test runs only after a best epoch, because whether the test runs depends on
    /// earlier releases.
    pub evaluation_steps: usize,
    /// Largest number of rows in one release.
    pub rows: usize,
    /// Number of all rows in the run.
    pub all_rows: usize,
    /// Number of secondaries in a training step.
    pub train_active: usize,
    /// Number of all secondaries, who all take part in an evaluation.
    pub active: usize,
    /// K·H, the length of one row's block.
    pub block: usize,
    /// True if only sums over the parties are revealed.
    pub summed: bool,
    /// Origin of the parties' noise.
    pub randomness: Randomness,
}

impl Releases {
    /// Returns the releases of one epoch of a run in which no party drops out.
    pub fn of_epoch(&self) -> Tally {
        let mut tally = Tally::default();
        tally.add(self.train_active, self.train_steps as u64);
        tally.add(self.active, self.evaluation_steps as u64);
        tally
    }
}

/// Number of releases for each number of participating secondaries. A release costs more with fewer parties,
/// so the account counts each release when it happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(BTreeMap<usize, u64>);

impl Tally {
    /// Counts `releases` with `active` participating secondaries.
    pub fn add(&mut self, active: usize, releases: u64) {
        if releases > 0 {
            *self.0.entry(active).or_default() += releases;
        }
    }

    /// Adds up several tallies.
    pub fn of_all<'a>(tallies: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        tallies.into_iter().flat_map(Self::iter).for_each(|(active, releases)| all.add(active, releases));
        all
    }

    /// Returns each number of participating secondaries, ascending, with its number of releases.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|(&active, &releases)| (active, releases))
    }

    /// Returns true if each release can be paired with a different release of `other` that has at most the
    /// same number of secondaries. The releases then cost no more than those of `other`, because a release
    /// costs at least as much with fewer secondaries.
    pub fn is_within(&self, other: &Self) -> bool {
        let up_to =
            |tally: &Self, active: usize| tally.0.range(..=active).map(|(_, count)| count).sum::<u64>();
        self.0.keys().all(|&active| up_to(self, active) <= up_to(other, active))
    }

    /// Returns the number of releases.
    pub fn releases(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the smallest number of secondaries in a release, or `None` without any release.
    pub fn fewest(&self) -> Option<usize> {
        self.0.keys().next().copied()
    }
}
