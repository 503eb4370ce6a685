//! Shares of the secret behind a party's own masks, for the case that it vanishes after it has sent its part of a sum.
//!
//! Each party gives every other one a share, encrypted under the key of the pair, once for a session. A holder never sends the
//! share: of one attempt at a sum it sends what the share makes of it ([`super::prf`]), which opens that attempt and no other.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::VartimeMultiscalarMul;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use super::member::Member;
use super::prf::{Commitment, Evaluation, Opening, evaluate, opening, point, scalar};
use super::shamir::{place, share, weights};
use super::{SumId, subsets::subsets};

/// The bytes of one sealed share: a scalar, and 16 bytes that authenticate it.
pub const SEALED_SHARE: usize = 32 + 16;

/// Why a backup cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// It does not decrypt under the key of the pair.
    #[error("the backup of party {from} is not what that party encrypted for this one")]
    Unreadable {
        /// Who sent it, from 1.
        from: usize,
    },
    /// Too few shares came.
    #[error("{found} sound shares of the opening of party {party} came; {needed} are needed")]
    TooFew {
        /// Whose opening, from 1.
        party: usize,
        /// How many came.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// No tried choice of the shares gives what the party committed to.
    #[error(
        "{found} shares of the opening of party {party} came, of which {needed} give no opening that fits its message: it \
         committed to another, or more than {withstood} shares are wrong"
    )]
    Wrong {
        /// Whose opening, from 1.
        party: usize,
        /// How many came.
        found: usize,
        /// How many are needed.
        needed: usize,
        /// Up to how many wrong ones are found out.
        withstood: usize,
    },
}

/// An opening from shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// What takes the vanished party's mask off.
    pub opening: Opening,
    /// The holders whose shares do not fit, from 0: they sent a wrong one, or were dealt one. Shares that were not needed are not
    /// looked at.
    pub wrong: Vec<usize>,
}

/// The parties that hold shares of the secret of `party`: all others of the `parties`.
pub fn holders(parties: &[usize], party: usize) -> Vec<usize> {
    parties.iter().copied().filter(|&other| other != party).collect()
}

impl Member {
    /// An encrypted share of the secret behind this party's masks for each of its [`holders`] among `parties`, in their order;
    /// `needed` of them open an attempt. It is the same each time.
    ///
    /// # Panics
    /// If the party has not agreed on keys with all of them.
    pub fn backups(&self, parties: &[usize], needed: usize) -> Vec<Vec<u8>> {
        // The coefficients follow from all that is agreed on, so that no two polynomials share any but the first.
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

    /// Keeps the share that `from` encrypted for this party.
    pub fn keep_backup(&mut self, from: usize, sealed: &[u8], needed: usize) -> Result<(), BackupError> {
        let unreadable = BackupError::Unreadable { from: from + 1 };
        if !self.has_key_with(from) {
            return Err(unreadable);
        }
        let (cipher, names) = self.channel(from, self.index(), needed);
        let share = cipher.decrypt(&Nonce::default(), Payload { msg: sealed, aad: &names });
        let share = Zeroizing::new(share.map_err(|_| unreadable.clone())?);
        let share: [u8; 32] = share.as_slice().try_into().map_err(|_| unreadable.clone())?;
        let share = Option::<Scalar>::from(Scalar::from_canonical_bytes(share)).ok_or(unreadable)?;
        self.backups.insert(from, Zeroizing::new(share));
        Ok(())
    }

    /// What the share of `party` makes of one attempt at a sum, if this member keeps one. Who gives it out sees to it that it
    /// opened the same attempt itself, and no other ([`super::Participant`]).
    pub fn evaluation(&self, party: usize, id: &SumId<'_>) -> Option<Evaluation> {
        self.backups.get(&party).map(|share| evaluate(share, id).compress().to_bytes())
    }

    /// The channel for the one backup from one party to another; each pair has a key for each direction.
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

/// Opens the mask of `party` in its place, given what `needed` or more holders computed, and the commitment that came with its
/// message. Evaluations that are no points of the group, second ones of a holder, and up to [`super::withstands`] wrong ones do
/// no harm.
pub fn recover(
    party: usize,
    needed: usize,
    evaluations: &[(usize, Evaluation)],
    commitment: &Commitment,
    id: &SumId<'_>,
) -> Result<Recovered, BackupError> {
    let mut sound: Vec<(usize, RistrettoPoint)> = Vec::with_capacity(evaluations.len());
    for (holder, evaluation) in evaluations {
        let known = *holder == party || sound.iter().any(|(other, _)| other == holder);
        sound.extend(point(evaluation).filter(|_| !known).map(|point| (*holder, point)));
    }
    let found = sound.len();
    if found < needed || needed == 0 {
        return Err(BackupError::TooFew { party: party + 1, found, needed });
    }
    let value = |subset: &[usize], x: Scalar| {
        let parties: Vec<usize> = subset.iter().map(|&share| sound[share].0).collect();
        let points = subset.iter().map(|&share| sound[share].1);
        RistrettoPoint::vartime_multiscalar_mul(weights(&parties, x), points)
    };
    for (trial, subset) in subsets(found, needed).enumerate() {
        let opening = opening(&value(&subset, Scalar::ZERO), id);
        if opening.commitment() == *commitment {
            let misfits = |&share: &usize| {
                !subset.contains(&share) && value(&subset, place(sound[share].0)) != sound[share].1
            };
            let wrong = (0..found).filter(|share| trial > 0 && misfits(share));
            return Ok(Recovered { opening, wrong: wrong.map(|share| sound[share].0).collect() });
        }
    }
    let withstood = super::withstands(found, needed);
    Err(BackupError::Wrong { party: party + 1, found, needed, withstood })
}

fn numbers(pair: [usize; 2]) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    bytes.chunks_exact_mut(8).zip(pair).for_each(|(out, n)| out.copy_from_slice(&(n as u64).to_le_bytes()));
    bytes
}
