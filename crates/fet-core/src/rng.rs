//! Random streams drawn on the host.
//!
//! Shared randomness (weights, dropout, party choice, batches, splits) comes from a ChaCha stream keyed by
//! (seed, party, purpose, round), [`stream`]. A party's private randomness (its noise, its sampled records)
//! comes from the party's private seed, [`OwnSeed`], which is derived from the experiment's seed only in a
//! simulation. Backends therefore agree bit for bit, a run is reproducible, and a checkpoint needs no
//! generator state. This module draws nothing on a device, and it is not for cryptographic keys.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use rand::SeedableRng;
pub use rand_chacha::ChaCha8Rng;
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

/// Purpose of a stream. Streams of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Initial weights of a party's model.
    Weights = 1,
    /// Dropout masks.
    Dropout = 2,
    /// Differential-privacy noise.
    Noise = 3,
    /// The choice of active parties in a step.
    PartyDropout = 4,
    /// The order of training rows in an epoch.
    Batches = 5,
    /// Training, validation and test rows.
    Split = 6,
    /// Assignment of the columns and rows of one table to parties.
    Parties = 7,
    /// Noise on a party's keys.
    KeyNoise = 8,
    /// Random choices of a linker.
    Linking = 9,
    /// The choice of a secondary's records for a release.
    Sampling = 10,
    /// Randomisation of the primary's training labels.
    Labels = 11,
    /// Random choices of an attack.
    Attack = 12,
    /// Resamples for the interval of a metric.
    Bootstrap = 13,
    /// Derivation of one table from another.
    Source = 14,
    /// The neighbours that a training step sees.
    Shown = 15,
    /// The secret order of the primary's rows at the secondaries.
    Rows = 16,
    /// The validation rows that fit the spread of residuals.
    Calibration = 17,
    /// Noise of a release that a party makes once.
    Release = 18,
}

/// Returns the stream of `party` for `purpose` in `round` (a step or an epoch, depending on the purpose).
pub fn stream(seed: u64, party: usize, purpose: Purpose, round: u64) -> ChaCha8Rng {
    let mut key = [0u8; 32];
    for (slot, word) in key.chunks_exact_mut(8).zip([seed, party as u64, purpose as u64, round]) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// First bytes of a seed file.
const MAGIC: &[u8] = b"fet own seed, 1\n";

/// Seed of a party's private randomness. `Debug` does not show it; dropping it clears its memory.
#[derive(Clone)]
pub struct OwnSeed {
    bytes: Zeroizing<[u8; 32]>,
    simulated: bool,
    repeats: bool,
}

impl OwnSeed {
    /// Creates a seed from 32 secret random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self { bytes: Zeroizing::new(bytes), simulated: false, repeats: false }
    }

    /// Creates a seed for a run that must be repeatable, such as a run of an audit. The party's keys for
    /// secure aggregation, which otherwise come from the operating system, are derived from it too. Use such
    /// a seed for one session only.
    pub fn repeating(bytes: [u8; 32]) -> Self {
        Self { repeats: true, ..Self::new(bytes) }
    }

    /// Returns the secret from which the party's key for secure aggregation is derived, or `None` if the key
    /// comes from the operating system.
    pub fn key_secret(&self) -> Option<Zeroizing<[u8; 32]>> {
        self.repeats.then(|| self.secret("secure sum key"))
    }

    /// Returns the seed as the bytes of a file that only its party may read; `None` for a simulated seed,
    /// which needs no file.
    pub fn to_file(&self) -> Option<Zeroizing<Vec<u8>>> {
        let parts = || [MAGIC, &self.bytes[..], &keyed(&self.bytes[..], &[MAGIC])[..]].concat();
        (!self.simulated).then(|| Zeroizing::new(parts()))
    }

    /// Reads the seed of such a file; `None` if the bytes differ from those that [`OwnSeed::to_file`] wrote.
    pub fn from_file(file: &[u8]) -> Option<Self> {
        let seed = Self::new(file.strip_prefix(MAGIC)?.get(..32)?.try_into().ok()?);
        (seed.to_file()?.as_slice() == file).then_some(seed)
    }

    /// Returns the seed of secondary `party` (from 1) in a simulation: HMAC-SHA256 under the experiment's
    /// seed, so that a run is reproducible. A deployment draws 32 bytes from the operating system instead.
    pub fn simulated(seed: u64, party: usize) -> Self {
        let parts = [b"fet own seed".as_slice(), &(party as u64).to_le_bytes()];
        Self { bytes: keyed(&seed.to_le_bytes(), &parts), simulated: true, repeats: false }
    }

    /// Returns the party's stream for `purpose` in `round`.
    pub fn stream(&self, purpose: Purpose, round: u64) -> ChaCha8Rng {
        self.stream_over(purpose, round, &[])
    }

    /// Returns the party's stream for a release of certain content, with `over` as the digest of the content.
    /// Releasing the same content again gives the same stream; any other content gives an independent stream.
    pub fn stream_over(&self, purpose: Purpose, round: u64, over: &[u8]) -> ChaCha8Rng {
        let parts: [&[u8]; 3] = [&(purpose as u64).to_le_bytes(), &round.to_le_bytes(), over];
        ChaCha8Rng::from_seed(*keyed(&self.bytes[..], &parts))
    }

    /// Returns true if the seed is derived from an experiment's seed, which is public.
    pub fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// Returns 32 secret bytes for the use that `label` names. They reveal nothing about the bytes for
    /// another label.
    pub fn secret(&self, label: &str) -> Zeroizing<[u8; 32]> {
        keyed(&self.bytes[..], &[b"fet secret", label.as_bytes()])
    }

    /// Returns a digest keyed with this seed: equal digests give equal values, and without the seed a value
    /// cannot be compared with a guess.
    pub fn keyed_digest(&self, label: &str, digest: &[u8; 32]) -> [u8; 32] {
        *keyed(&self.bytes[..], &[b"fet digest", label.as_bytes(), digest])
    }
}

impl fmt::Debug for OwnSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnSeed")
    }
}

/// Computes HMAC-SHA256 of the concatenated parts.
fn keyed(key: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    let mut tag = mac.finalize().into_bytes();
    let key = Zeroizing::new(tag.into());
    tag.as_mut_slice().zeroize();
    key
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

    #[test]
    fn own_streams_repeat_and_differ_in_each_coordinate() {
        let first =
            |seed, party, purpose, round| OwnSeed::simulated(seed, party).stream(purpose, round).next_u64();
        let base = first(1, 2, Purpose::Noise, 3);
        assert_eq!(base, first(1, 2, Purpose::Noise, 3));
        assert_ne!(base, stream(1, 2, Purpose::Noise, 3).next_u64(), "not what all parties know");
        for other in [
            first(2, 2, Purpose::Noise, 3),
            first(1, 3, Purpose::Noise, 3),
            first(1, 2, Purpose::Sampling, 3),
            first(1, 2, Purpose::Noise, 4),
        ] {
            assert_ne!(base, other);
        }
        assert_eq!(format!("{:?}", OwnSeed::simulated(1, 2)), "OwnSeed");
    }
}
