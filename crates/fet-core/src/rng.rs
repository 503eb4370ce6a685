//! Random streams drawn on the host.
//!
//! Every random number of a run (weights, dropout, noise, party choice, batches, splits) comes from a
//! ChaCha stream keyed by (seed, party, purpose, round). Backends therefore agree bit for bit, a run
//! repeats, and a checkpoint needs no generator state. This module draws nothing on a device, and it
//! is not the place for cryptographic keys.

use rand::SeedableRng;
pub use rand_chacha::ChaCha8Rng;

/// What a stream is for. Two purposes never share numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights of a party's model.
    Weights = 1,
    /// Dropout masks.
    Dropout = 2,
    /// Differential-privacy noise.
    Noise = 3,
    /// Which parties take part in a step.
    PartyDropout = 4,
    /// The order of training rows in an epoch.
    Batches = 5,
    /// Training, validation and test rows.
    Split = 6,
    /// Assigning columns and rows of one table to parties.
    Parties = 7,
    /// Noise on a party's keys.
    KeyNoise = 8,
    /// Random choices of a linker.
    Linking = 9,
    /// Which records a secondary uses in a release.
    Sampling = 10,
}

/// The stream of `party` for `purpose` in `round` (a step or an epoch, as the purpose has it).
pub fn stream(seed: u64, party: usize, purpose: Purpose, round: u64) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    for (slot, word) in key.chunks_exact_mut(8).zip([seed, party as u64, purpose as u64, round]) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_repeat_and_differ_in_each_coordinate() {
        let first = |seed, party, purpose, round| stream(seed, party, purpose, round).next_u64();
        let base = first(1, 2, Purpose::Noise, 3);
        assert_eq!(base, first(1, 2, Purpose::Noise, 3));
        for other in [
            first(2, 2, Purpose::Noise, 3),
            first(1, 3, Purpose::Noise, 3),
            first(1, 2, Purpose::Dropout, 3),
            first(1, 2, Purpose::Noise, 4),
        ] {
            assert_ne!(base, other);
        }
    }
}
