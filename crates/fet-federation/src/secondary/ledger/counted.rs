//! What a ledger's records come to: releases by how many parties took part, or passes of a frozen party.

use std::collections::{BTreeMap, HashMap};

use fet_core::privacy::Tally;

use super::record::{Entry, sample};

/// How releases are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::secondary) struct Counting {
    /// Whether the party is frozen, so that passes over the rows count.
    pub(in crate::secondary) frozen: bool,
    /// Whether the guarantee rests on each release having a sample of its own. Portions of a pass share one sample.
    pub(in crate::secondary) sampled: bool,
}

/// What was released so far.
#[derive(Debug, Clone, Default)]
pub(in crate::secondary) struct Counted {
    counting: Counting,
    tally: Tally,
    /// If the party is frozen: the fewest parties of each pass over the rows, by the sample and the number of the pass.
    passes: BTreeMap<(Vec<u8>, usize), usize>,
    /// How often each portion was released with each sample.
    portions: HashMap<(Vec<u8>, u64), usize>,
    /// The fewest parties of passes whose records were lost.
    lost: Vec<usize>,
    /// The last release, which another attempt at its sum may replace.
    open: Option<Entry>,
}

impl Counted {
    pub(super) fn new(counting: Counting) -> Self {
        Self { counting, ..Self::default() }
    }

    pub(super) fn counting(&self) -> Counting {
        self.counting
    }

    /// Adds a release; the one that it replaces, if it is another attempt at the same sum.
    pub(super) fn add(&mut self, entry: Entry) -> Option<Entry> {
        let again = |open: &Entry| open.round == entry.round && entry.attempt == open.attempt + 1;
        let replaced = self.open.filter(again);
        if replaced.is_none() {
            self.settle();
        }
        self.open = Some(entry);
        replaced
    }

    /// The last release is not replaced any more.
    pub(super) fn settle(&mut self) {
        let Some(entry) = self.open.take() else { return };
        if !self.counting.frozen {
            return self.tally.add(entry.active, 1);
        }
        // Portions with different samples are parts of different passes.
        let sample = if self.counting.sampled { sample(&entry.digest).to_vec() } else { Vec::new() };
        let released = self.portions.entry((sample.clone(), entry.round)).or_default();
        let fewest = self.passes.entry((sample, *released)).or_insert(entry.active);
        *fewest = entry.active.min(*fewest);
        *released += 1;
    }

    /// Adds releases whose records were lost; a whole pass, if the party is frozen.
    pub(super) fn lose(&mut self, count: u64, active: usize) {
        if self.counting.frozen {
            self.lost.push(active);
        } else {
            self.tally.add(active, count);
        }
    }

    /// The releases as a mechanism accounts for them: all together, or a tally for each pass of a frozen party.
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
