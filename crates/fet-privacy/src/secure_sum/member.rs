//! One party of a secure sum: its key, and the masks it shares with others.

use std::fmt;

use chacha20::ChaCha20Rng;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use x25519_dalek::StaticSecret;

use super::graph::MaskGraph;
use super::word::Word;

/// A party's public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub [u8; 32]);

/// Which sum a mask is for. No two sums may have the same: a mask that serves twice is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskId {
    /// The step.
    pub round: u64,
    /// Which tensor of the step.
    pub name: u32,
    /// How often this sum has been tried before.
    pub attempt: u32,
}

/// A party of a secure sum. `Debug` shows no secret.
pub struct Member {
    index: usize,
    secret: StaticSecret,
    public: PublicKey,
    /// Keys shared with each other party; nothing at its own place.
    keys: Vec<Option<[u8; 32]>>,
}

/// Words that one thread masks at a time; a multiple of a ChaCha block.
const CHUNK: usize = 1 << 14;
/// Bytes of mask that are made at a time.
const BLOCK: usize = 1 << 12;

impl Member {
    /// Party `index`, with a secret drawn from `rng`: one for simulations and tests, unless it is the system's own.
    pub fn new(index: usize, rng: &mut impl Rng) -> Self {
        let mut bytes = [0u8; 32];
        rng.fill_bytes(&mut bytes);
        Self::from_secret(index, bytes)
    }

    /// Party `index`, with 32 secret random bytes.
    pub fn from_secret(index: usize, secret: [u8; 32]) -> Self {
        let secret = StaticSecret::from(secret);
        let public = PublicKey(x25519_dalek::PublicKey::from(&secret).to_bytes());
        Self { index, secret, public, keys: Vec::new() }
    }

    /// What the others are told.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Derives the keys shared with each of `all` parties, this one among them.
    ///
    /// # Errors
    /// The first party whose public key is of small order, as no honest party's is.
    pub fn agree(&mut self, all: &[PublicKey]) -> Result<(), usize> {
        self.agree_with(&all.iter().copied().map(Some).collect::<Vec<_>>())
    }

    /// The same where some parties are not there: no key is shared with them.
    pub fn agree_with(&mut self, all: &[Option<PublicKey>]) -> Result<(), usize> {
        let derive = |(index, theirs): (usize, &Option<PublicKey>)| {
            let Some(theirs) = theirs.as_ref().filter(|_| index != self.index) else { return Ok(None) };
            let shared = self.secret.diffie_hellman(&x25519_dalek::PublicKey::from(theirs.0));
            if !shared.was_contributory() {
                return Err(index);
            }
            let (low, high) =
                if index < self.index { (theirs, &self.public) } else { (&self.public, theirs) };
            let hash =
                Sha256::new().chain_update(b"fet secure sum, pair key, 1").chain_update(shared.as_bytes());
            Ok(Some(hash.chain_update(low.0).chain_update(high.0).finalize().into()))
        };
        self.keys = all.iter().enumerate().map(derive).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Masks `words` in place, for a sum over the parties `active` (ascending, this one among them), modulo 2^bits.
    ///
    /// # Panics
    /// If the party does not take part, is alone, or has not agreed on keys with the others.
    pub fn mask<W: Word>(&self, words: &mut [W], bits: u32, active: &[usize], degree: usize, id: MaskId) {
        let place = active.iter().position(|&party| party == self.index).expect("the party takes part");
        assert!(active.len() >= 2, "a sum over one party is its value");
        let neighbours = MaskGraph::new(active.len(), degree).neighbours(place);
        let masks: Vec<(bool, [u8; 32])> = neighbours
            .into_iter()
            .map(|other| {
                let key = self.keys.get(active[other]).and_then(Option::as_ref).expect("keys were agreed on");
                (place < other, seed(key, id))
            })
            .collect();
        words.par_chunks_mut(CHUNK).enumerate().for_each(|(index, words)| {
            let mut bytes = [0u8; BLOCK];
            for (adds, seed) in &masks {
                let mut stream = ChaCha20Rng::from_seed(*seed);
                // A word of the stream has 4 bytes.
                stream.set_word_pos((index * CHUNK * W::BYTES / 4) as u128);
                for block in words.chunks_mut(BLOCK / W::BYTES) {
                    let bytes = &mut bytes[..block.len() * W::BYTES];
                    stream.fill_bytes(bytes);
                    let masks = bytes.chunks_exact(W::BYTES).map(W::from_bytes);
                    if *adds {
                        block.iter_mut().zip(masks).for_each(|(word, mask)| *word = word.plus(mask));
                    } else {
                        block.iter_mut().zip(masks).for_each(|(word, mask)| *word = word.minus(mask));
                    }
                }
            }
            words.iter_mut().for_each(|word| *word = word.low(bits));
        });
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({})", self.index)
    }
}

/// The key under which ChaCha20 makes the mask of one pair for one id.
fn seed(key: &[u8; 32], id: MaskId) -> [u8; 32] {
    let hash = Sha256::new()
        .chain_update(b"fet secure sum, mask, 1")
        .chain_update(key)
        .chain_update(id.round.to_le_bytes())
        .chain_update(id.name.to_le_bytes())
        .chain_update(id.attempt.to_le_bytes());
    hash.finalize().into()
}
