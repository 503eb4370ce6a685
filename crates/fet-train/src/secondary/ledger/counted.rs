//! What a ledger's records come to: releases by how many parties took part, or passes of a frozen party.

use std::collections::HashMap;

use fet_core::privacy::Tally;

use super::record::Entry;

/// What was released so far.
#[derive(Debug, Clone, Default)]
pub(in crate::secondary) struct Counted {
    frozen: bool,
    tally: Tally,
    /// If the party is frozen: the fewest parties of each pass over the rows, and how often each portion was released.
    passes: Vec<usize>,
    portions: HashMap<u64, usize>,
    /// The last release, which another attempt at its sum may replace.
    open: Option<Entry>,
}

impl Counted {
    pub(super) fn new(frozen: bool) -> Self {
        Self { frozen, ..Self::default() }
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
        if !self.frozen {
            return self.tally.add(entry.active, 1);
        }
        let released = self.portions.entry(entry.round).or_default();
        let pass = *released;
        *released += 1;
        match self.passes.get_mut(pass) {
            Some(fewest) => *fewest = entry.active.min(*fewest),
            None => self.passes.push(entry.active),
        }
    }

    /// Adds releases whose records were lost; a whole pass, if the party is frozen.
    pub(super) fn lose(&mut self, count: u64, active: usize) {
        if self.frozen {
            self.passes.push(active);
        } else {
            self.tally.add(active, count);
        }
    }

    /// The releases as a mechanism accounts for them: all together, or a tally for each pass of a frozen party.
    pub(in crate::secondary) fn tallies(&self) -> Vec<Tally> {
        let mut all = self.clone();
        all.settle();
        if !self.frozen {
            return vec![all.tally];
        }
        let pass = |fewest| {
            let mut tally = Tally::default();
            tally.add(fewest, 1);
            tally
        };
        all.passes.into_iter().map(pass).collect()
    }
}
