//! The messages of secure aggregation: keys, key shares, masked vectors and unmasking values.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::array;
use super::round::Round;

/// An X25519 public key, or another value of 32 bytes.
pub type PublicKey = [u8; 32];

/// A party's public key for secure aggregation, signed by its identity, so that a relay cannot replace the
/// key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedKey {
    /// X25519 public key.
    pub key: PublicKey,
    /// Age of the party's lifetime account; zeros if the party keeps no account.
    pub age: Age,
    /// Ed25519 signature, 64 bytes, over the hash of the settings, the party, its key and the age.
    #[serde(with = "array")]
    pub signature: Vec<u8>,
}

/// The signed public keys of all parties, except parties that dropped out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKeys {
    /// Numbers of the active parties, ascending from 0.
    #[serde(with = "array")]
    pub parties: Vec<u32>,
    /// One key for each active party.
    pub keys: Vec<SignedKey>,
}

/// Encrypted key shares, all of one length: from one party to each of `parties`, or from each of `parties` to
/// one party.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyShares {
    /// Numbers of the other parties, from 0.
    #[serde(with = "array")]
    pub parties: Vec<u32>,
    /// All shares, one after another.
    #[serde(with = "array")]
    pub sealed: Vec<u8>,
}

impl fmt::Debug for KeyShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyShares[{}]", self.parties.len())
    }
}

/// A party's reply to the keys of all parties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// Encrypted shares of the secret that generates the party's own masks, one for each of the other
    /// parties.
    pub key_shares: KeyShares,
    /// Ed25519 signature, 64 bytes, over the hash of all keys that the party received.
    #[serde(with = "array")]
    pub signature: Vec<u8>,
}

/// The other parties' key shares and signatures, which a party needs before it takes part in secure
/// aggregation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The share that each of the other parties encrypted for the receiver.
    pub key_shares: KeyShares,
    /// Signatures of all parties that agreed, including the receiver, in their order; 64 bytes each.
    #[serde(with = "array")]
    pub signatures: Vec<u8>,
}

/// An attempt at secure aggregation that the parties unmask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmask {
    /// The round of the aggregation.
    pub round: Round,
    /// Number of the attempt.
    pub attempt: u32,
}

/// A party that dropped out before it unmasked its message of an attempt, or sent a wrong unmasking value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// The round of the aggregation.
    pub round: Round,
    /// Number of the attempt.
    pub attempt: u32,
    /// Number of the party, from 0.
    pub party: u32,
}

/// One party's representations as masked integers: by themselves, they are uniformly distributed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Masked {
    /// Shape [B, K, H].
    pub shape: [usize; 3],
    /// Masked integers modulo 2^bits.
    #[serde(with = "array")]
    pub words: Vec<u32>,
    /// Number of bits of a word.
    pub bits: u32,
    /// Commitment to the unmasking value of the party's own mask.
    pub commitment: [u8; 32],
}

impl fmt::Debug for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masked{:?}", self.shape)
    }
}

/// Masked parameters. `Debug` shows their number, never their values.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// Masked integers modulo 2^64.
    #[serde(with = "array")]
    pub words: Vec<u64>,
    /// Commitment to the unmasking value of the party's own mask.
    pub commitment: [u8; 32],
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words[{}]", self.words.len())
    }
}

/// Age of a lifetime account, which each entry increases. An account that is younger than before is an old copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Age {
    /// Age immediately before the party joined, or before it signed this age.
    pub found: u64,
    /// Age after that.
    pub now: u64,
}
