//! What a run releases and its privacy loss: the types of a privacy account. No loss is computed here.

use std::collections::BTreeMap;

pub use fet_eval::records::{Guarantee, Learning, Neighbouring, Randomness, Spent};
use serde::{Deserialize, Serialize};

/// What a run releases if it loses no party, known before it begins: the noise is calibrated to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Releases {
    /// Epochs of the run.
    pub epochs: usize,
    /// Training steps of an epoch.
    pub train_steps: usize,
    /// Batches of a validation and of a test evaluation. The test is counted in every epoch though it runs only after a
    /// best one, because whether it runs depends on what was released.
    pub evaluation_steps: usize,
    /// The largest number of rows in one release.
    pub rows: usize,
    /// All rows of the run.
    pub all_rows: usize,
    /// The number of secondaries in a training step.
    pub train_active: usize,
    /// The number of all secondaries, which is also that of an evaluation.
    pub active: usize,
    /// K·H.
    pub block: usize,
    /// Whether only sums over the parties are revealed.
    pub summed: bool,
    /// What the parties' noise follows from.
    pub randomness: Randomness,
}

impl Releases {
    /// The releases of one epoch of a run that loses no party.
    pub fn of_epoch(&self) -> Tally {
        let mut tally = Tally::default();
        tally.add(self.train_active, self.train_steps as u64);
        tally.add(self.active, self.evaluation_steps as u64);
        tally
    }
}

/// How many releases there were with each number of participating secondaries: fewer parties make a release cost more,
/// so that each is counted as it happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(BTreeMap<usize, u64>);

impl Tally {
    /// Counts `releases` in which `active` secondaries took part.
    pub fn add(&mut self, active: usize, releases: u64) {
        if releases > 0 {
            *self.0.entry(active).or_default() += releases;
        }
    }

    /// The releases of several tallies together.
    pub fn of_all<'a>(tallies: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        tallies.into_iter().flat_map(Self::iter).for_each(|(active, releases)| all.add(active, releases));
        all
    }

    /// Each number of participating secondaries, ascending, and the releases with so many.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|(&active, &releases)| (active, releases))
    }

    /// Whether each of these releases is met by one of `other` in which no more secondaries took part, each of `other` meeting
    /// one: then these cost no more, since a release costs no less with fewer.
    pub fn is_within(&self, other: &Self) -> bool {
        let up_to =
            |tally: &Self, active: usize| tally.0.range(..=active).map(|(_, count)| count).sum::<u64>();
        self.0.keys().all(|&active| up_to(self, active) <= up_to(other, active))
    }

    /// How many releases there were.
    pub fn releases(&self) -> u64 {
        self.0.values().sum()
    }

    /// The fewest secondaries that took part in a release; nothing if there was none.
    pub fn fewest(&self) -> Option<usize> {
        self.0.keys().next().copied()
    }
}
