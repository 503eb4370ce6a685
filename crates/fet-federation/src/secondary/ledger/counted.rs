//! Sum of a ledger's records: releases by the number of active parties, or passes of a frozen party.

use std::collections::{BTreeMap, HashMap};

use fet_core::privacy::Tally;

use super::record::{Entry, sample};

/// Rules for counting releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::secondary) struct Counting {
    /// True if the party is frozen, so that passes over the rows count.
    pub(in crate::secondary) frozen: bool,
    /// True if the guarantee requires that each release has its own sample. Portions of a pass share one
    /// sample.
    pub(in crate::secondary) sampled: bool,
    /// True if each release of a frozen party counts as a separate pass, because its rows are new.
    pub(in crate::secondary) apart: bool,
}

/// Releases so far.
#[derive(Debug, Clone, Default)]
pub(in crate::secondary) struct Counted {
    counting: Counting,
    tally: Tally,
    /// Smallest number of active parties in each pass over the rows, by the sample and the number of the pass.
    /// Only a frozen party counts passes.
    passes: BTreeMap<(Vec<u8>, usize), usize>,
    /// Number of releases of each portion with each sample.
    portions: HashMap<(Vec<u8>, u64), usize>,
    /// Smallest number of active parties in each pass whose records were lost.
    lost: Vec<usize>,
    /// Last release, which another attempt at its sum may replace.
    open: Option<Entry>,
}

impl Counted {
    pub(super) fn new(counting: Counting) -> Self {
        Self { counting, ..Self::default() }
    }

    pub(super) fn counting(&self) -> Counting {
        self.counting
    }

    /// Adds a release. Returns the release that it replaces, if it is another attempt at the same sum.
    pub(super) fn add(&mut self, entry: Entry) -> Option<Entry> {
        let again = |open: &Entry| open.round == entry.round && entry.attempt == open.attempt + 1;
        let replaced = self.open.filter(again);
        if replaced.is_none() {
            self.settle();
        }
        self.open = Some(entry);
        replaced
    }

    /// Counts the last release: no later attempt can replace it.
    pub(super) fn settle(&mut self) {
        let Some(entry) = self.open.take() else { return };
        if !self.counting.frozen {
            return self.tally.add(entry.active, 1);
        }
        if self.counting.apart {
            self.passes.insert((Vec::new(), self.passes.len()), entry.active);
            return;
        }
        // Portions with different samples are parts of different passes.
        let sample = if self.counting.sampled { sample(&entry.digest).to_vec() } else { Vec::new() };
        let released = self.portions.entry((sample.clone(), entry.round)).or_default();
        let fewest = self.passes.entry((sample, *released)).or_insert(entry.active);
        *fewest = entry.active.min(*fewest);
        *released += 1;
    }

    /// Adds releases whose records were lost; for a frozen party, a whole pass.
    pub(super) fn lose(&mut self, count: u64, active: usize) {
        if self.counting.frozen {
            self.lost.push(active);
        } else {
            self.tally.add(active, count);
        }
    }

    /// Returns the releases as a mechanism accounts for them: all in one tally, or a tally for each pass of a
    /// frozen party.
    pub(in crate::secondary) fn tallies(&self) -> Vec<Tally> {
        let mut all = self.clone();
        all.settle();
        if !self.counting.frozen {
            return vec![all.tally];
        }
        let pass = |fewest| {
            let mut tally = Tally::default();
            tally.add(fewest, 1);
            tally
        };
        all.passes.into_values().chain(all.lost).map(pass).collect()
    }
}
