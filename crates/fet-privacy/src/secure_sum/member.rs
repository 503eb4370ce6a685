//! Party of a secure sum: its keys, the masks that it shares with others, and its private mask.

use std::collections::BTreeMap;
use std::fmt;

use chacha20::ChaCha20Rng;
use curve25519_dalek::scalar::Scalar;
use rand::{Rng, SeedableRng};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use x25519_dalek::StaticSecret;
use zeroize::Zeroizing;

use super::graph::MaskGraph;
use super::id::SumId;
use super::prf::{Unmasking, evaluate, scalar, unmasking};
use super::word::Word;

/// Public key of a party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub [u8; 32]);

/// Party of a secure sum. `Debug` shows no secret, and memory is cleared on drop.
pub struct Member {
    index: usize,
    secret: StaticSecret,
    /// Secret behind the private masks.
    own: Zeroizing<Scalar>,
    public: PublicKey,
    /// Keys shared with each other party; `None` at the party's own place.
    keys: Vec<Option<Zeroizing<[u8; 32]>>>,
    /// Digest of everything that was agreed on.
    transcript: [u8; 32],
    /// Shares of the secrets behind other parties' masks.
    pub(super) key_shares: BTreeMap<usize, Zeroizing<Scalar>>,
}

/// Number of words that one thread masks at a time; a multiple of a ChaCha block.
const CHUNK: usize = 1 << 14;
/// Number of mask bytes generated at a time.
const BLOCK: usize = 1 << 12;

impl Member {
    /// Creates party `index` with a secret drawn from `rng`. Use it only for simulations and tests, unless
    /// `rng` is the system's generator.
    pub fn new(index: usize, rng: &mut impl Rng) -> Self {
        let mut bytes = Zeroizing::new([0u8; 32]);
        rng.fill_bytes(&mut bytes[..]);
        Self::from_secret(index, *bytes)
    }

    /// Creates party `index` from 32 secret random bytes.
    pub fn from_secret(index: usize, secret: [u8; 32]) -> Self {
        let secret = Zeroizing::new(secret);
        let own = Zeroizing::new(scalar(b"fet secure sum, own masks, 2", &secret[..]));
        let secret = StaticSecret::from(*labelled(b"fet secure sum, key pair, 1", &secret));
        let public = PublicKey(x25519_dalek::PublicKey::from(&secret).to_bytes());
        let (keys, transcript) = (Vec::new(), [0; 32]);
        Self { index, secret, own, public, keys, transcript, key_shares: BTreeMap::new() }
    }

    /// Returns the public key to send to the other parties.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Returns a digest of the context and of all agreed keys: parties with the same digest received the same
    /// keys.
    pub fn transcript(&self) -> &[u8; 32] {
        &self.transcript
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    pub(super) fn own(&self) -> &Scalar {
        &self.own
    }

    pub(super) fn has_key_with(&self, party: usize) -> bool {
        self.keys.get(party).is_some_and(Option::is_some)
    }

    pub(super) fn key_with(&self, party: usize) -> &[u8; 32] {
        self.keys.get(party).and_then(Option::as_deref).expect("keys were agreed on")
    }

    /// Derives the keys shared with each of `all` parties, which include this one. The party shares no key
    /// with absent parties. `context` holds everything else that all parties must agree on: parties that
    /// received different keys, or have another context, share no key.
    ///
    /// # Errors
    /// The first party whose public key is of small order, which an honest party's key never is.
    pub fn agree(&mut self, all: &[Option<PublicKey>], context: &[u8]) -> Result<(), usize> {
        let mut transcript = Sha256::new()
            .chain_update(b"fet secure sum, transcript, 2")
            .chain_update((context.len() as u64).to_le_bytes())
            .chain_update(context);
        for key in all {
            match key {
                Some(key) => transcript.update([&[1u8], &key.0[..]].concat()),
                None => transcript.update([0u8]),
            }
        }
        let transcript: [u8; 32] = transcript.finalize().into();
        let derive = |(index, theirs): (usize, &Option<PublicKey>)| {
            let Some(theirs) = theirs.as_ref().filter(|_| index != self.index) else { return Ok(None) };
            let shared = self.secret.diffie_hellman(&x25519_dalek::PublicKey::from(theirs.0));
            if !shared.was_contributory() {
                return Err(index);
            }
            let hash = Sha256::new()
                .chain_update(b"fet secure sum, pair key, 2")
                .chain_update(shared.as_bytes())
                .chain_update(transcript);
            let (low, high) = (self.index.min(index) as u64, self.index.max(index) as u64);
            let hash = hash.chain_update(low.to_le_bytes()).chain_update(high.to_le_bytes());
            Ok(Some(Zeroizing::new(hash.finalize().into())))
        };
        self.keys = all.iter().enumerate().map(derive).collect::<Result<_, _>>()?;
        self.transcript = transcript;
        self.key_shares.clear();
        Ok(())
    }

    /// Masks `words` in place with the masks that the party shares with its neighbours among the active
    /// parties, which cancel in the sum, and with its private mask. The returned unmasking value removes the
    /// private mask ([`Member::unmasking`]).
    ///
    /// # Panics
    /// If the party does not take part, is alone, or has not agreed on keys with the others.
    pub fn mask<W: Word>(&self, words: &mut [W], id: &SumId<'_>) -> Unmasking {
        let active = id.active;
        let place = active.iter().position(|&party| party == self.index).expect("the party takes part");
        assert!(active.len() >= 2, "a sum over one party would reveal its value");
        let digest = id.digest();
        let pair = |other: usize| {
            let hash = Sha256::new().chain_update(b"fet secure sum, mask, 2");
            Zeroizing::new(
                hash.chain_update(self.key_with(active[other])).chain_update(digest).finalize().into(),
            )
        };
        let neighbours = MaskGraph::new(active.len(), id.degree).neighbours(place);
        let mut masks: Vec<(bool, Zeroizing<[u8; 32]>)> =
            neighbours.into_iter().map(|other| (place < other, pair(other))).collect();
        let unmasking = self.unmasking(id);
        masks.push((true, Zeroizing::new(unmasking.0)));
        apply(words, &masks, id.bits);
        unmasking
    }

    /// Returns the unmasking value that removes this party's private mask from its message of one sum. A
    /// receiver that has the unmasking values of all messages learns the sum. A party therefore unmasks one
    /// attempt at a sum, and no other afterwards.
    pub fn unmasking(&self, id: &SumId<'_>) -> Unmasking {
        unmasking(&evaluate(&self.own, id), id)
    }
}

/// Removes the parties' private masks from the sum of their messages.
pub fn unmask<W: Word>(sum: &mut [W], unmaskings: &[Unmasking], bits: u32) {
    let masks: Vec<_> = unmaskings.iter().map(|unmasking| (false, Zeroizing::new(unmasking.0))).collect();
    apply(sum, &masks, bits);
}

/// Adds or subtracts the streams of the seeds, modulo 2^bits.
fn apply<W: Word>(words: &mut [W], masks: &[(bool, Zeroizing<[u8; 32]>)], bits: u32) {
    words.par_chunks_mut(CHUNK).enumerate().for_each(|(index, words)| {
        let mut bytes = [0u8; BLOCK];
        for (adds, seed) in masks {
            let mut stream = ChaCha20Rng::from_seed(**seed);
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

fn labelled(label: &[u8], secret: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(Sha256::new().chain_update(label).chain_update(secret).finalize().into())
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Member({})", self.index)
    }
}
