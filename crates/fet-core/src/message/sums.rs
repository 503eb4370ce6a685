//! The messages of secure sums: keys, backups, masked vectors and what opens them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Age, Round, array};

/// An X25519 public key, or another 32 bytes.
pub type PublicKey = [u8; 32];

/// A party's public key for secure sums, signed by its identity: who relays it cannot put another in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedKey {
    /// X25519.
    pub key: PublicKey,
    /// The age of the party's lifetime account; zeros where it keeps none.
    pub age: Age,
    /// 64 bytes, Ed25519, over the hash of the settings, the party, its key and the age.
    #[serde(with = "array")]
    pub signature: Vec<u8>,
}

/// The signed public keys of all parties; a party that has left has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKeys {
    /// The numbers of the present parties, ascending from 0.
    #[serde(with = "array")]
    pub parties: Vec<u32>,
    /// One for each of them.
    pub keys: Vec<SignedKey>,
}

/// Encrypted shares of secrets, all of one length: from one party to each of `parties`, or from each of them to one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backups {
    /// The other parties' numbers, from 0.
    #[serde(with = "array")]
    pub parties: Vec<u32>,
    /// All shares, one after another.
    #[serde(with = "array")]
    pub sealed: Vec<u8>,
}

impl fmt::Debug for Backups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backups[{}]", self.parties.len())
    }
}

/// What a party gives once it was told all keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// Encrypted shares of the secret behind its own masks, one for each of the others.
    pub backups: Backups,
    /// 64 bytes, Ed25519, over the hash of all keys that it was told.
    #[serde(with = "array")]
    pub signature: Vec<u8>,
}

/// What a party needs of the others before it takes part in a sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The share that each of the others encrypted for the receiver.
    pub backups: Backups,
    /// The signatures of all parties that agreed, the receiver among them, in their order; 64 bytes each.
    #[serde(with = "array")]
    pub signatures: Vec<u8>,
}

/// An attempt at a secure sum that is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The round of the sum.
    pub round: Round,
    /// The attempt.
    pub attempt: u32,
}

/// A party that vanished before it opened its message of an attempt, or opened it wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// The round of the sum.
    pub round: Round,
    /// The attempt.
    pub attempt: u32,
    /// Who vanished, from 0.
    pub party: u32,
}

/// One party's encoded neighbours as masked integers: alone, they are uniformly distributed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Masked {
    /// [B, K, H].
    pub shape: [usize; 3],
    /// Modulo 2^bits.
    #[serde(with = "array")]
    pub words: Vec<u32>,
    /// Bits of a word.
    pub bits: u32,
    /// A commitment to what takes the party's own mask off.
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
    /// Modulo 2^64.
    #[serde(with = "array")]
    pub words: Vec<u64>,
    /// A commitment to what takes the party's own mask off.
    pub commitment: [u8; 32],
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words[{}]", self.words.len())
    }
}
