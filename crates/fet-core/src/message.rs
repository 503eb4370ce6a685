//! The messages: the only data that cross a party boundary.
//!
//! They hold host values, not tensors; [`codec`] turns them into bytes and back. `Debug` shows shapes, never values. A
//! message that belongs to a round names it.

mod array;
mod block;
pub mod codec;
mod keys;
mod parameters;
mod round;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::{Keys, Matrix, Sealed, Standardise};
use crate::parameters::Parameters;

pub use block::{Block, ShapeError};
pub use codec::{Answer, CodecError, LARGEST_FRAME, Message, decode, encode};
pub use round::Round;

/// The version of the messages and of their frame. If a message changes, bump it.
pub const PROTOCOL_VERSION: u16 = 2;

/// A request from the primary to a secondary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request {
    /// Agree to these terms; always the first request.
    Join(Terms),
    /// Link these keys, one for each primary record, and keep the links.
    Link(LinkKeys),
    /// The answer to the linker's challenge; linking continues.
    Answer(Sealed),
    /// Generate a key pair for secure sums, and send the public key.
    MakeKey,
    /// Share keys with these parties, the receiver among them; the reply is a backup for each of them.
    AgreeOnKeys(PublicKeys),
    /// Keep these backups, one of each party that the receiver holds one for.
    KeepBackups(Backups),
    /// Take the own mask off the message of this attempt at a secure sum: the messages of all parties are there.
    Open(Open),
    /// Send the backup of a party that vanished before it opened its message of this attempt.
    Reveal(Reveal),
    /// Represent the neighbours of these primary records.
    Forward(Forward),
    /// Take a training step with the gradient of the representation of the same round.
    Backward(Backward),
    /// Send the parameters that the method averages.
    ShareParameters(ShareParameters),
    /// Set the parameters that the method averages to these.
    LoadParameters(LoadParameters),
    /// The current model is the best so far: keep it.
    KeepBest(Epoch),
    /// Save everything needed to resume the run after this epoch.
    Save(Epoch),
    /// Restore the state saved after this epoch.
    Load(Saved),
    /// Link these keys of new records for predictions with the best model; they replace those of the request before.
    /// [`Round::Predict`] then names their rows. Refused beside a privacy mechanism: no account covers it.
    Predict(LinkKeys),
    /// The run is over: write the best model.
    Finish,
    /// The primary has written its report: delete the saved states.
    Forget,
}

/// A secondary's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reply {
    /// It agrees to the terms.
    Joined(Joined),
    /// The keys are linked.
    Linked(Linked),
    /// The linker's challenge; it must be answered before linking continues.
    Challenge(Sealed),
    /// A signed public key.
    Key(SignedKey),
    /// Encrypted shares of the secret of its own masks, one for each holder.
    Backups(Backups),
    /// What takes its own mask off its message of one attempt.
    Opening(PublicKey),
    /// The share of another party's secret that it keeps.
    Backup(Backup),
    /// A representation.
    Representation(Block),
    /// A representation's share of a secure sum.
    Masked(Masked),
    /// The parameters that the method averages.
    Parameters(Parameters),
    /// Their share of a secure sum, as fixed-point words modulo 2^64.
    MaskedParameters(Words),
    /// The identity of what was saved.
    Saved(Saved),
    /// Done; no content.
    Done,
}

/// An X25519 public key, or another 32 bytes.
pub type PublicKey = [u8; 32];

/// A party's public key for secure sums, signed by its identity: who relays it cannot put another in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedKey {
    /// X25519.
    pub key: PublicKey,
    /// A commitment to the secret of its own masks.
    pub commitment: [u8; 32],
    /// 64 bytes, Ed25519, over the hash of the settings, the party's number, key and commitment.
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

/// A share of a secret, decrypted. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup(#[serde(with = "array")] pub Vec<u8>);

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Backup")
    }
}

/// An attempt at a secure sum that is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The round of the sum.
    pub round: Round,
    /// The attempt.
    pub attempt: u32,
}

/// A party that vanished before it opened its message of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reveal {
    /// The round of the sum.
    pub round: Round,
    /// The attempt.
    pub attempt: u32,
    /// Who vanished, from 0.
    pub party: u32,
}

/// The terms that all parties agree on before anything is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// [`PROTOCOL_VERSION`] of the primary.
    pub protocol: u16,
    /// The version of the primary's results.
    pub results: u32,
    /// The common settings, as TOML, with every default filled in.
    pub settings: String,
    /// SHA-256 of `settings`.
    pub settings_hash: [u8; 32],
    /// The receiver's name, as the primary knows it.
    pub name: String,
    /// The receiver's number among the secondaries, from 1.
    pub number: usize,
    /// The number of secondaries.
    pub parties: usize,
    /// The number of primary records.
    pub rows: usize,
    /// What is standardised before models see it.
    pub standardise: Standardise,
}

/// What a party reports when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The number of its model's parameters. It reveals the number of its columns, but nothing about its records.
    pub parameters: usize,
}

/// The primary's keys: in the clear, or as the linker conceals them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkKeys {
    /// One for each record.
    pub keys: Keys,
}

/// What the primary learns about a party's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Linked {
    /// How many of the K neighbours are real.
    pub available: usize,
    /// Similarities of the neighbours to each primary record, [n, K]: a leak, present only if the experiment's method
    /// or aggregator needs them.
    pub similarities: Option<Matrix<f32>>,
}

/// A request for the representations of these primary records' neighbours.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Which release this is; it keys dropout, sampling and noise.
    pub round: Round,
    /// Row numbers of primary records.
    #[serde(with = "array")]
    pub rows: Vec<u32>,
    /// The numbers of the participating parties, ascending from 0.
    #[serde(with = "array")]
    pub active: Vec<u32>,
    /// The attempt number of a secure sum; nothing if the representation is sent alone.
    pub attempt: Option<u32>,
}

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Forward({}, {} rows, {} parties)", self.round, self.rows.len(), self.active.len())
    }
}

/// The gradient of the loss with respect to a party's representation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backward {
    /// The round of the representation.
    pub round: Round,
    /// [B, K, H].
    pub gradient: Block,
    /// The learning rate of this epoch.
    pub learning_rate: f64,
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
}

impl fmt::Debug for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masked{:?}", self.shape)
    }
}

/// How to send the averaged parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareParameters {
    /// The epoch.
    pub round: Round,
    /// The numbers of the participating parties, ascending from 0.
    #[serde(with = "array")]
    pub active: Vec<u32>,
    /// The attempt number of a secure sum; nothing if they are sent alone.
    pub attempt: Option<u32>,
}

/// The averaged parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadParameters {
    /// The epoch.
    pub round: Round,
    /// Only those that the method averages.
    pub parameters: Parameters,
}

/// Words of a secure sum. `Debug` shows their number, never their values.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words(#[serde(with = "array")] pub Vec<u64>);

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words[{}]", self.0.len())
    }
}

/// An epoch, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// From 1.
    pub epoch: u32,
}

/// What a party saved, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// After which epoch, from 1.
    pub epoch: u32,
    /// SHA-256 of what was saved.
    pub hash: [u8; 32],
}

/// The bytes of a key, a commitment and a signature.
const SIGNED_KEY: u64 = 128;

impl Request {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Join(_) => "Join",
            Self::Link(_) => "Link",
            Self::Answer(_) => "Answer",
            Self::MakeKey => "MakeKey",
            Self::AgreeOnKeys(_) => "AgreeOnKeys",
            Self::KeepBackups(_) => "KeepBackups",
            Self::Open(_) => "Open",
            Self::Reveal(_) => "Reveal",
            Self::Forward(_) => "Forward",
            Self::Backward(_) => "Backward",
            Self::ShareParameters(_) => "ShareParameters",
            Self::LoadParameters(_) => "LoadParameters",
            Self::KeepBest(_) => "KeepBest",
            Self::Save(_) => "Save",
            Self::Load(_) => "Load",
            Self::Predict(_) => "Predict",
            Self::Finish => "Finish",
            Self::Forget => "Forget",
        }
    }

    /// The round that it belongs to, if any.
    pub fn round(&self) -> Option<Round> {
        match self {
            Self::Forward(message) => Some(message.round),
            Self::Backward(message) => Some(message.round),
            Self::ShareParameters(message) => Some(message.round),
            Self::LoadParameters(message) => Some(message.round),
            Self::Open(message) => Some(message.round),
            Self::Reveal(message) => Some(message.round),
            _ => None,
        }
    }

    /// Its payload in bytes: keys, row numbers, gradients, parameters. Control messages (joining, saving) count as 0.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Link(message) | Self::Predict(message) => message.keys.bytes(),
            Self::Answer(message) => message.bytes().len() as u64,
            Self::Forward(message) => 4 * message.rows.len() as u64,
            Self::Backward(message) => 4 * message.gradient.values().len() as u64,
            Self::AgreeOnKeys(message) => SIGNED_KEY * message.keys.len() as u64,
            Self::KeepBackups(message) => message.sealed.len() as u64,
            Self::LoadParameters(message) => 4 * message.parameters.values().len() as u64,
            _ => 0,
        }
    }
}

impl Reply {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Joined(_) => "Joined",
            Self::Linked(_) => "Linked",
            Self::Challenge(_) => "Challenge",
            Self::Key(_) => "Key",
            Self::Backups(_) => "Backups",
            Self::Opening(_) => "Opening",
            Self::Backup(_) => "Backup",
            Self::Representation(_) => "Representation",
            Self::Masked(_) => "Masked",
            Self::Parameters(_) => "Parameters",
            Self::MaskedParameters(_) => "MaskedParameters",
            Self::Saved(_) => "Saved",
            Self::Done => "Done",
        }
    }

    /// Its payload in bytes.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Representation(block) => 4 * block.values().len() as u64,
            Self::Parameters(parameters) => 4 * parameters.values().len() as u64,
            Self::Linked(message) => {
                message.similarities.as_ref().map_or(0, |similarities| 4 * similarities.values().len() as u64)
            }
            Self::Challenge(message) => message.bytes().len() as u64,
            Self::Masked(message) => (message.words.len() as u64 * u64::from(message.bits)).div_ceil(8),
            Self::Key(_) => SIGNED_KEY,
            Self::Backups(message) => message.sealed.len() as u64,
            Self::Opening(_) => 32,
            Self::Backup(share) => share.0.len() as u64,
            Self::MaskedParameters(words) => 8 * words.0.len() as u64,
            Self::Joined(_) | Self::Saved(_) | Self::Done => 0,
        }
    }
}
