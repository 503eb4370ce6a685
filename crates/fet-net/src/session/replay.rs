//! Opened packets of a session: each counts once, in any order within a window.

/// Number of packets that may overtake a packet; a packet that is later counts as repeated.
const WINDOW: u64 = 4096;
const WORDS: usize = (WINDOW / 64) as usize;

/// Counters that were seen, as in RFC 6479.
#[derive(Debug)]
pub(super) struct Replay {
    /// Largest counter seen, plus one.
    next: u64,
    seen: [u64; WORDS],
}

impl Default for Replay {
    fn default() -> Self {
        Self { next: 0, seen: [0; WORDS] }
    }
}

impl Replay {
    /// Returns true if no packet with this counter was seen, as far as is known.
    pub(super) fn may_be_new(&self, counter: u64) -> bool {
        if counter == u64::MAX {
            return false; // Noise reserves this counter.
        }
        counter >= self.next
            || (self.next - counter <= WINDOW - 64 && self.seen[word(counter)] >> (counter % 64) & 1 == 0)
    }

    /// Notes an authentic packet.
    pub(super) fn note(&mut self, counter: u64) {
        if counter >= self.next {
            // The words between hold counters that are older than the window.
            let (from, to) = (self.next.div_ceil(64), counter / 64);
            for index in from..=to.min(from.saturating_add(WORDS as u64)) {
                self.seen[index as usize % WORDS] = 0;
            }
            self.next = counter + 1;
        }
        self.seen[word(counter)] |= 1 << (counter % 64);
    }
}

fn word(counter: u64) -> usize {
    (counter / 64) as usize % WORDS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Compares with a set that forgets nothing.
    #[test]
    fn each_counter_is_new_once() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for spread in [1_u64, 10, 70, 1000, 20_000] {
            let (mut replay, mut seen, mut at) = (Replay::default(), BTreeSet::new(), 0_u64);
            let mut kept = 0;
            for _ in 0..20_000 {
                at += rng.random_range(0..=spread / 4 + 1);
                let counter = at.saturating_sub(rng.random_range(0..=spread));
                let new = replay.may_be_new(counter);
                let largest = seen.last().copied().unwrap_or(0);
                if seen.contains(&counter) {
                    assert!(!new, "{counter} twice");
                } else if counter + WINDOW - 128 > largest {
                    assert!(new, "{counter} lost, of {largest}");
                }
                if new {
                    replay.note(counter);
                    seen.insert(counter);
                    kept += 1;
                }
            }
            assert!(kept > 100);
        }
        assert!(!Replay::default().may_be_new(u64::MAX));
    }
}
