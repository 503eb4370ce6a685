//! Sums for which a party has sent a message, in memory that does not grow with successive rounds.

use std::collections::BTreeMap;

/// Set of sums, by tensor and round. Successive rounds are one entry.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Last round of each range of rounds, by the tensor and the first round of the range.
    last: BTreeMap<(u32, u64), u64>,
}

impl Seen {
    /// Returns the range of rounds that begins at or before `round`.
    fn range(&self, round: u64, name: u32) -> Option<(u64, u64)> {
        let (&(_, first), &last) = self.last.range((name, 0)..=(name, round)).next_back()?;
        Some((first, last))
    }

    pub(super) fn contains(&self, round: u64, name: u32) -> bool {
        self.range(round, name).is_some_and(|(_, last)| round <= last)
    }

    pub(super) fn insert(&mut self, round: u64, name: u32) {
        let before = self.range(round, name);
        if before.is_some_and(|(_, last)| round <= last) {
            return;
        }
        let first =
            before.filter(|&(_, last)| last.checked_add(1) == Some(round)).map_or(round, |(first, _)| first);
        let after = round.checked_add(1).and_then(|next| self.last.remove(&(name, next)));
        self.last.insert((name, first), after.unwrap_or(round));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn holds_what_was_inserted_in_any_order() {
        let (mut seen, mut expected) = (Seen::default(), BTreeSet::new());
        // Multiplication by 7 visits all remainders of 31 in another order.
        for step in 0..31u64 {
            let (round, name) = (step * 7 % 31, (step % 2) as u32);
            seen.insert(round, name);
            expected.insert((round, name));
            for round in 0..32 {
                for name in 0..3 {
                    assert_eq!(
                        seen.contains(round, name),
                        expected.contains(&(round, name)),
                        "{round}, {name}"
                    );
                }
            }
        }
        (0..31).for_each(|round| seen.insert(round, 0));
        assert_eq!(seen.last.range((0, 0)..(1, 0)).count(), 1, "one range: {:?}", seen.last);
        for round in [u64::MAX, u64::MAX - 1] {
            seen.insert(round, 0);
        }
        assert!(seen.contains(u64::MAX, 0) && !seen.contains(u64::MAX - 2, 0) && !seen.contains(31, 0));
    }
}
