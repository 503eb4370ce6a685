//! Shares of a party's own mask secret, for the case that it vanishes after it has sent its part of a sum.
//!
//! Each party gives every other one share of its secret (Shamir over GF(256)), encrypted under the key of the pair, once
//! for a run. A majority of the others can open its mask in its place; fewer learn nothing about it.

use blahaj::{Share, Sharks};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use sha2::{Digest, Sha256};

use super::member::{Member, Opening, opening};
use super::{Commitment, SumId};

/// The bytes of one sealed share: its place, 32 bytes of the share, and 16 that authenticate it.
pub const SEALED_SHARE: usize = 1 + 32 + 16;

/// GF(256) has no more places for shares.
const MOST_HOLDERS: usize = 255;

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
    #[error("{found} shares of the mask secret of party {party} came; {needed} are needed")]
    TooFew {
        /// Whose secret, from 1.
        party: usize,
        /// How many came.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// The shares give another secret than the party committed to.
    #[error("the shares of the mask secret of party {party} do not give what it committed to")]
    Wrong {
        /// Whose secret, from 1.
        party: usize,
    },
}

/// So many of `holders` open a party's mask together: more than half of them.
pub fn threshold(holders: usize) -> usize {
    holders / 2 + 1
}

/// The parties that hold shares of the secret of `party`: all others of the `parties`, up to 255, the next in the circle
/// first.
pub fn holders(parties: &[usize], party: usize) -> Vec<usize> {
    let place = parties.iter().position(|&other| other == party).unwrap_or(0);
    let next = (1..parties.len()).map(|step| parties[(place + step) % parties.len()]);
    next.filter(|&other| other != party).take(MOST_HOLDERS).collect()
}

impl Member {
    /// An encrypted share of this party's mask secret for each of its [`holders`] among `parties`, in their order. It is
    /// the same each time.
    ///
    /// # Panics
    /// If the party has not agreed on keys with all of them.
    pub fn backups(&self, parties: &[usize]) -> Vec<Vec<u8>> {
        let holders = holders(parties, self.index());
        let mut rng = self.backup_rng();
        let shares = Sharks(threshold(holders.len()) as u8).dealer_rng(self.mask_secret(), &mut rng);
        let seal = |(&holder, share): (&usize, Share)| {
            let share = Vec::from(&share);
            let (cipher, names) = self.channel(self.index(), holder);
            let payload = Payload { msg: &share, aad: &names };
            cipher.encrypt(&Nonce::default(), payload).expect("a short message")
        };
        holders.iter().zip(shares).map(seal).collect()
    }

    /// Keeps the share that `from` encrypted for this party.
    pub fn keep_backup(&mut self, from: usize, sealed: &[u8]) -> Result<(), BackupError> {
        let unreadable = BackupError::Unreadable { from: from + 1 };
        if !self.has_key_with(from) {
            return Err(unreadable);
        }
        let (cipher, names) = self.channel(from, self.index());
        let share = cipher
            .decrypt(&Nonce::default(), Payload { msg: sealed, aad: &names })
            .map_err(|_| unreadable)?;
        self.backups.insert(from, share);
        Ok(())
    }

    /// The share of the secret of `party`, if this party keeps one.
    pub fn backup_of(&self, party: usize) -> Option<&[u8]> {
        self.backups.get(&party).map(Vec::as_slice)
    }

    /// The channel for the one backup from one party to another; each pair has a key for each direction.
    fn channel(&self, from: usize, to: usize) -> (ChaCha20Poly1305, [u8; 16]) {
        let mut names = [0u8; 16];
        names[..8].copy_from_slice(&(from as u64).to_le_bytes());
        names[8..].copy_from_slice(&(to as u64).to_le_bytes());
        let other = if from == self.index() { to } else { from };
        let key: [u8; 32] = Sha256::new()
            .chain_update(b"fet secure sum, backup, 1")
            .chain_update(self.key_with(other))
            .chain_update(names)
            .finalize()
            .into();
        (ChaCha20Poly1305::new(&Key::from(key)), names)
    }
}

/// Opens the mask of `party` in its place, given shares of its secret.
pub fn recover(
    party: usize,
    holders: usize,
    shares: &[Vec<u8>],
    commitment: &Commitment,
    id: &SumId<'_>,
) -> Result<Opening, BackupError> {
    let needed = threshold(holders);
    let mut sound: Vec<Share> =
        shares.iter().filter_map(|share| Share::try_from(share.as_slice()).ok()).collect();
    sound.retain(|share| share.y.len() == 32);
    let few = BackupError::TooFew { party: party + 1, found: sound.len(), needed };
    let secret = Sharks(needed as u8).recover(&sound).map_err(|_| few)?;
    let wrong = BackupError::Wrong { party: party + 1 };
    let secret: [u8; 32] = secret.try_into().map_err(|_| wrong.clone())?;
    if super::member::commit(&secret) != *commitment {
        return Err(wrong);
    }
    Ok(opening(&secret, id))
}
