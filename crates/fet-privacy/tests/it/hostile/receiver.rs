//! A receiver that keeps everything it gets, and the sums that it can compute from it.
//!
//! Linear algebra over the integers modulo 2^32 finds the combinations of messages that are free of masks. A
//! message is its party's values, plus or minus the masks of its pairs, plus its private mask. Masks of
//! different attempts, sets, rows and rounds are different unknowns. The receiver knows the masks of its
//! colluders' pairs, the unmasking values that it was sent, and those that [`reconstruct`] gives it from all
//! its shares. Unknowns are eliminated by pivots ±1, which are units, so that the remaining rows generate
//! *all* mask-free combinations.

use std::collections::BTreeMap;

use fet_privacy::secure_sum::{
    Evaluation, MaskGraph, Message, Unmasking, quorum, reconstruct, total, unmask,
};

use crate::hostile::group::{Id, PartyGroup};

/// Linear combination: unknowns and values with their factors modulo 2^32.
type Row = BTreeMap<Unknown, u32>;

/// Unknown of a linear combination. Masks come first, so that they are eliminated first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unknown {
    /// Private mask of a party in a sum.
    Own(usize, usize),
    /// Mask of a pair in a sum.
    Pair(usize, usize, usize),
    /// Values of a party.
    Value(usize),
}

#[derive(Default)]
pub(crate) struct Receiver {
    ids: Vec<Id>,
    messages: BTreeMap<(usize, usize), Message<u32>>,
    unmaskings: BTreeMap<(usize, usize), Unmasking>,
    shares: BTreeMap<(usize, usize), Vec<(usize, Evaluation)>>,
    /// Sum for which each party sent its last message.
    last: BTreeMap<usize, usize>,
}

impl Receiver {
    /// Asks a party for its message. Returns true if the party answered.
    pub(crate) fn ask(&mut self, group: &mut PartyGroup, party: usize, id: &Id, scheduled: &[usize]) -> bool {
        let Ok(message) = group.mask(party, id, scheduled) else { return false };
        let place = self.ids.iter().position(|known| known == id).unwrap_or_else(|| {
            self.ids.push(id.clone());
            self.ids.len() - 1
        });
        let again = self.messages.insert((place, party), message);
        assert!(again.is_none() || group.is_corrupt(party), "an honest party masks for a sum once");
        self.last.insert(party, place);
        true
    }

    /// Asks a party to unmask an attempt. Returns true if the party did.
    pub(crate) fn unmask(&mut self, group: &mut PartyGroup, party: usize, round: u64, attempt: u32) -> bool {
        let Some(&place) = self.last.get(&party) else { return false };
        let unmasking = match group.member(party) {
            Some(member) => member.unmasking(&self.ids[place].sum(group.degree)),
            None => match group.unmask(party, round, attempt) {
                Ok(unmasking) => unmasking,
                Err(_) => return false,
            },
        };
        assert_eq!(unmasking.commitment(), self.messages[&(place, party)].commitment);
        self.unmaskings.insert((place, party), unmasking);
        true
    }

    /// Asks a holder for the value of its key share of a party, for the attempt that the holder has unmasked.
    pub(crate) fn reveal(
        &mut self,
        group: &PartyGroup,
        holder: usize,
        round: u64,
        attempt: u32,
        party: usize,
    ) {
        let Some(&place) = self.last.get(&holder).filter(|_| !group.is_corrupt(holder)) else { return };
        let known =
            self.shares.get(&(place, party)).is_some_and(|all| all.iter().any(|(of, _)| *of == holder));
        if known || self.unmaskings.contains_key(&(place, party)) {
            return;
        }
        if let Ok(share) = group.reveal(holder, round, attempt, party) {
            assert!(
                self.unmaskings.contains_key(&(place, holder)),
                "it has unmasked what it helps to unmask"
            );
            self.shares.entry((place, party)).or_default().push((holder, share));
        }
    }

    /// Returns the unmasking value of a party in a sum if the receiver knows it or can reconstruct it.
    fn unmasking(&self, group: &PartyGroup, place: usize, party: usize) -> Option<Unmasking> {
        let commitment = self.messages.get(&(place, party))?.commitment;
        let id = &self.ids[place];
        if let Some(member) = group.member(party) {
            return Some(member.unmasking(&id.sum(group.degree)));
        }
        self.unmaskings.get(&(place, party)).copied().or_else(|| {
            let mut shares = group.colluders_shares(party, id);
            shares.extend(self.shares.get(&(place, party)).into_iter().flatten());
            let needed = quorum(group.parties, group.colluding);
            reconstruct(party, needed, &shares, &commitment, &id.sum(group.degree))
                .ok()
                .map(|found| found.unmasking)
        })
    }

    /// Returns the honest parties' values in each mask-free combination of the messages of a round.
    fn computable(&self, group: &PartyGroup, round: u64) -> Vec<Row> {
        let mut pivots: BTreeMap<Unknown, Row> = BTreeMap::new();
        let mut free: Vec<Row> = Vec::new();
        for (place, party) in self.messages.keys().copied() {
            let id = &self.ids[place];
            if id.round != round || group.is_corrupt(party) {
                continue;
            }
            let mut row = Row::from([(Unknown::Value(party), 1)]);
            if self.unmasking(group, place, party).is_none() {
                row.insert(Unknown::Own(place, party), 1);
            }
            let at = id.active.iter().position(|&other| other == party).expect("it takes part");
            for other in MaskGraph::new(id.active.len(), group.degree).neighbours(at) {
                let (low, high) = (at.min(other), at.max(other));
                if !group.is_corrupt(id.active[other]) {
                    let sign = if at < other { 1 } else { u32::MAX };
                    row.insert(Unknown::Pair(place, low, high), sign);
                }
            }
            if let Some(pivot) = reduce(&mut row, &pivots) {
                pivots.insert(pivot, row);
            } else if !row.is_empty() {
                free.push(row);
            }
        }
        // The values are unknowns too: keep the independent combinations.
        let (mut values, mut independent) = (BTreeMap::new(), Vec::new());
        for mut row in free {
            if let Some(pivot) = eliminate(&mut row, &values) {
                values.insert(pivot, row.clone());
                independent.push(row);
            }
        }
        independent
    }

    /// Asserts that the receiver can compute at most one sum of the round, over the honest parties of one set
    /// that was large enough. Returns these parties.
    pub(crate) fn one_sum(&self, group: &PartyGroup, round: u64) -> Option<Vec<usize>> {
        let computable = self.computable(group, round);
        assert!(computable.len() <= 1, "round {round}: {} sums, {computable:?}", computable.len());
        let row = computable.into_iter().next()?;
        let factor = *row.values().next().expect("not empty");
        assert!(factor == 1 || factor == u32::MAX, "{row:?}");
        assert!(row.values().all(|&other| other == factor), "a sum, with one factor: {row:?}");
        let of: Vec<usize> = row
            .keys()
            .map(|unknown| match unknown {
                Unknown::Value(party) => *party,
                mask => panic!("{mask:?} is left"),
            })
            .collect();
        let fits = |id: &&Id| {
            let honest = id.active.iter().copied().filter(|&party| !group.is_corrupt(party));
            id.round == round && honest.eq(of.iter().copied())
        };
        assert!(self.ids.iter().any(|id| fits(&id)), "the parties of an attempt: {of:?}");
        assert!(of.len() >= 2, "two honest parties hide in it: {of:?}");
        Some(of)
    }

    /// Returns the sum of an attempt, if the receiver has all messages and unmasking values.
    pub(crate) fn sum(&self, group: &PartyGroup, id: &Id) -> Option<Vec<u32>> {
        let place = self.ids.iter().position(|known| known == id)?;
        let messages = id.active.iter().map(|&party| self.messages.get(&(place, party)));
        let messages = messages.map(|message| message.map(|message| message.words.clone()));
        let unmaskings = id.active.iter().map(|&party| self.unmasking(group, place, party));
        let mut sum = total(messages.collect::<Option<Vec<_>>>()?, 32).expect("of one length");
        unmask(&mut sum, &unmaskings.collect::<Option<Vec<_>>>()?, 32);
        Some(sum)
    }

    pub(crate) fn ids(&self) -> &[Id] {
        &self.ids
    }
}

/// Eliminates the masks of the pivots from a row. Returns the first remaining mask, whose factor is a unit.
fn reduce(row: &mut Row, pivots: &BTreeMap<Unknown, Row>) -> Option<Unknown> {
    loop {
        let (&first, &factor) = row.first_key_value()?;
        if matches!(first, Unknown::Value(_)) {
            return None;
        }
        let Some(pivot) = pivots.get(&first) else {
            assert!(factor == 1 || factor == u32::MAX, "a unit: {row:?}");
            return Some(first);
        };
        subtract(row, pivot, first);
    }
}

/// Eliminates the values of the pivots from a row. Returns the first remaining value.
fn eliminate(row: &mut Row, pivots: &BTreeMap<Unknown, Row>) -> Option<Unknown> {
    while let Some((&first, _)) = row.first_key_value() {
        let Some(pivot) = pivots.get(&first) else { return Some(first) };
        subtract(row, pivot, first);
    }
    None
}

fn subtract(row: &mut Row, pivot: &Row, first: Unknown) {
    // ±1 is its own inverse.
    let times = row[&first].wrapping_mul(pivot[&first]);
    for (unknown, factor) in pivot {
        let entry = row.entry(*unknown).or_insert(0);
        *entry = entry.wrapping_sub(times.wrapping_mul(*factor));
        if *entry == 0 {
            row.remove(unknown);
        }
    }
}
