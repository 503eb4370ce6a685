//! Key shares: shares of the secret behind a party's private masks, in case the party drops out after sending
//! its part of a sum.
//!
//! Each party gives every other party one share, encrypted under the key of the pair, once per session. A
//! holder never sends the share. For one attempt at a sum, it sends a value computed from the share
//! ([`super::prf`]), which unmasks that attempt and no other.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::VartimeMultiscalarMul;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use super::member::Member;
use super::prf::{Commitment, Evaluation, Unmasking, evaluate, point, scalar, unmasking};
use super::shamir::{place, share, weights};
use super::{SumId, subsets::subsets};

/// Number of bytes of one sealed share: a scalar, and 16 bytes that authenticate it.
pub const SEALED_SHARE: usize = 32 + 16;

/// Key shares that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyShareError {
    /// The share does not decrypt under the key of the pair.
    #[error(
        "the key share of party {from} is invalid: it is not the one that party {from} encrypted for this party"
    )]
    Unreadable {
        /// Sender of the share, counted from 1.
        from: usize,
    },
    /// Too few shares arrived.
    #[error("{found} valid shares of the unmasking value of party {party} arrived; {needed} are needed")]
    TooFew {
        /// Party whose unmasking value is missing, counted from 1.
        party: usize,
        /// Number of shares that arrived.
        found: usize,
        /// Number of shares needed.
        needed: usize,
    },
    /// No tried choice of the shares gives the unmasking value that the party committed to.
    #[error(
        "{found} shares of the unmasking value of party {party} arrived, but no {needed} of them give an unmasking value that fits its message: \
         the party committed to a different unmasking value, or more than {withstood} shares are wrong"
    )]
    Wrong {
        /// Party whose unmasking value is missing, counted from 1.
        party: usize,
        /// Number of shares that arrived.
        found: usize,
        /// Number of shares needed.
        needed: usize,
        /// Maximum number of wrong shares that can be left out.
        withstood: usize,
    },
}

/// Unmasking value that was reconstructed from shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconstructed {
    /// Unmasking value that removes the mask of the party that dropped out.
    pub unmasking: Unmasking,
    /// Holders whose shares do not fit, counted from 0: they sent a wrong share, or received one. Shares that
    /// were not needed are not checked.
    pub wrong: Vec<usize>,
}

/// Returns the parties that hold shares of the secret of `party`: all others of the `parties`.
pub fn holders(parties: &[usize], party: usize) -> Vec<usize> {
    parties.iter().copied().filter(|&other| other != party).collect()
}

impl Member {
    /// Returns an encrypted share of the secret behind this party's masks for each of its [`holders`] among
    /// `parties`, in their order. `needed` of the shares unmask an attempt. Repeated calls return the same
    /// shares.
    ///
    /// # Panics
    /// If the party has not agreed on keys with all of the `parties`.
    pub fn key_shares(&self, parties: &[usize], needed: usize) -> Vec<Vec<u8>> {
        // The coefficients depend on everything that was agreed on, so that two polynomials share only the
        // first one.
        let coefficient = |power: usize| {
            let of = [self.own().as_bytes(), &self.transcript()[..], &numbers([needed, power])].concat();
            scalar(b"fet secure sum, coefficient, 1", &Zeroizing::new(of))
        };
        let own = std::iter::once(*self.own());
        let coefficients: Zeroizing<Vec<Scalar>> =
            Zeroizing::new(own.chain((1..needed).map(coefficient)).collect());
        let seal = |holder: usize| {
            let share = Zeroizing::new(share(&coefficients, holder).to_bytes());
            let (cipher, names) = self.channel(self.index(), holder, needed);
            let payload = Payload { msg: &share[..], aad: &names };
            cipher.encrypt(&Nonce::default(), payload).expect("a short message")
        };
        holders(parties, self.index()).into_iter().map(seal).collect()
    }

    /// Stores the share that `from` encrypted for this party.
    pub fn keep_key_share(&mut self, from: usize, sealed: &[u8], needed: usize) -> Result<(), KeyShareError> {
        let unreadable = KeyShareError::Unreadable { from: from + 1 };
        if !self.has_key_with(from) {
            return Err(unreadable);
        }
        let (cipher, names) = self.channel(from, self.index(), needed);
        let share = cipher.decrypt(&Nonce::default(), Payload { msg: sealed, aad: &names });
        let share = Zeroizing::new(share.map_err(|_| unreadable.clone())?);
        let share: [u8; 32] = share.as_slice().try_into().map_err(|_| unreadable.clone())?;
        let share = Option::<Scalar>::from(Scalar::from_canonical_bytes(share)).ok_or(unreadable)?;
        self.key_shares.insert(from, Zeroizing::new(share));
        Ok(())
    }

    /// Computes the value of the share of `party` for one attempt at a sum, if this member holds such a
    /// share. The caller must ensure that the member itself unmasked the same attempt, and no other
    /// ([`super::Participant`]).
    pub fn evaluation(&self, party: usize, id: &SumId<'_>) -> Option<Evaluation> {
        self.key_shares.get(&party).map(|share| evaluate(share, id).compress().to_bytes())
    }

    /// Returns the cipher and the associated data for the share from one party to another. Each pair has a
    /// key for each direction.
    fn channel(&self, from: usize, to: usize, needed: usize) -> (ChaCha20Poly1305, [u8; 16]) {
        let names = numbers([from, to]);
        let other = if from == self.index() { to } else { from };
        let mut key = Sha256::new()
            .chain_update(b"fet secure sum, backup, 2")
            .chain_update(self.key_with(other))
            .chain_update((needed as u64).to_le_bytes())
            .chain_update(names)
            .finalize();
        let cipher = ChaCha20Poly1305::new(&Key::from(<[u8; 32]>::from(key)));
        key.as_mut_slice().zeroize();
        (cipher, names)
    }
}

/// Reconstructs the unmasking value of `party` from the values of `needed` or more holders, and the
/// commitment that came with its message. Values that are not points of the group, repeated values of a
/// holder, and up to [`super::withstands`] wrong values do no harm.
pub fn reconstruct(
    party: usize,
    needed: usize,
    evaluations: &[(usize, Evaluation)],
    commitment: &Commitment,
    id: &SumId<'_>,
) -> Result<Reconstructed, KeyShareError> {
    let mut sound: Vec<(usize, RistrettoPoint)> = Vec::with_capacity(evaluations.len());
    for (holder, evaluation) in evaluations {
        let known = *holder == party || sound.iter().any(|(other, _)| other == holder);
        sound.extend(point(evaluation).filter(|_| !known).map(|point| (*holder, point)));
    }
    let found = sound.len();
    if found < needed || needed == 0 {
        return Err(KeyShareError::TooFew { party: party + 1, found, needed });
    }
    let value = |subset: &[usize], x: Scalar| {
        let parties: Vec<usize> = subset.iter().map(|&share| sound[share].0).collect();
        let points = subset.iter().map(|&share| sound[share].1);
        RistrettoPoint::vartime_multiscalar_mul(weights(&parties, x), points)
    };
    for (trial, subset) in subsets(found, needed).enumerate() {
        let unmasking = unmasking(&value(&subset, Scalar::ZERO), id);
        if unmasking.commitment() == *commitment {
            let misfits = |&share: &usize| {
                !subset.contains(&share) && value(&subset, place(sound[share].0)) != sound[share].1
            };
            let wrong = (0..found).filter(|share| trial > 0 && misfits(share));
            return Ok(Reconstructed { unmasking, wrong: wrong.map(|share| sound[share].0).collect() });
        }
    }
    let withstood = super::withstands(found, needed);
    Err(KeyShareError::Wrong { party: party + 1, found, needed, withstood })
}

fn numbers(pair: [usize; 2]) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    bytes.chunks_exact_mut(8).zip(pair).for_each(|(out, n)| out.copy_from_slice(&(n as u64).to_le_bytes()));
    bytes
}
