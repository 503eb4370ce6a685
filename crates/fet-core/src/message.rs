//! The messages: the only data that cross a party boundary.
//!
//! They hold host values, not tensors; [`codec`] turns them into bytes and back. `Debug` shows shapes, never values. A
//! message that belongs to a round names it.

mod array;
mod block;
pub mod codec;
mod keys;
mod parameters;
mod parts;
mod round;
mod sums;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::{Keys, Matrix, Sealed, Standardise};
use crate::parameters::Parameters;

pub use block::{Block, ShapeError};
pub use codec::{Answer, CodecError, LARGEST_FRAME, Message, decode, encode, encode_behind, frames};
pub use parts::Parts;
pub use round::Round;
pub use sums::{Agreed, Backups, Confirmed, Masked, Open, PublicKey, PublicKeys, Reveal, SignedKey, Words};

/// The version of the messages and of their frame. If a message changes, bump it.
pub const PROTOCOL_VERSION: u16 = 6;

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
    /// Share keys with these parties, the receiver among them; the reply is a backup for each of them, and a signature.
    AgreeOnKeys(PublicKeys),
    /// All parties signed the same keys: keep their backups, and take part in sums.
    KeepBackups(Confirmed),
    /// Take the own mask off the message of this attempt at a secure sum: the messages of all parties are there.
    Open(Open),
    /// Compute what your share makes of this attempt, in the place of a party that vanished before it opened its message.
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
    /// It agrees on keys.
    Agreed(Agreed),
    /// What takes its own mask off its message of one attempt.
    Opening(PublicKey),
    /// Its share of another party's opening of one attempt.
    Share(PublicKey),
    /// A representation.
    Representation(Block),
    /// A representation's share of a secure sum.
    Masked(Masked),
    /// The parameters that the method averages.
    Parameters(Parameters),
    /// Their part of a secure sum, as fixed-point words modulo 2^64.
    MaskedParameters(Words),
    /// The identity of what was saved.
    Saved(Saved),
    /// Done; no content.
    Done,
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
    /// Which of them are in which part.
    pub parts: Parts,
    /// What is standardised before models see it.
    pub standardise: Standardise,
}

/// What a party reports when it joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// The number of its model's parameters. It reveals the number of its columns, but nothing about its records.
    pub parameters: usize,
    /// A digest of its table, keyed with the party's own secret: equal in two sessions if and only if the table is. Without
    /// the secret it cannot be compared with a guessed table.
    pub table: [u8; 32],
    /// The state of its lifetime account; nothing where it keeps none, as in a simulation.
    pub lifetime: Option<Standing>,
}

/// The state of a party's lifetime account. It follows from the settings of runs and from what was asked for, never from records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The age of the account.
    pub age: Age,
    /// Earlier runs in it, besides the one that is joined.
    pub earlier: u64,
    /// ε of all of them together with the one that is joined, as planned; nothing where it is not bounded.
    pub epsilon: Option<f64>,
    /// δ.
    pub delta: f64,
}

/// The age of a lifetime account, counted in its records: one that is younger than it was before is an old copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Age {
    /// When the party was about to join.
    pub found: u64,
    /// Once it had joined.
    pub now: u64,
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
    /// What the party knows it by: random, so that it says nothing of what was saved.
    pub tag: [u8; 32],
}

/// The bytes of a key and a signature.
const SIGNED_KEY: u64 = 96;
/// The bytes of a commitment, an opening or a share of one.
const OPENING: u64 = 32;

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
            Self::KeepBackups(message) => (message.backups.sealed.len() + message.signatures.len()) as u64,
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
            Self::Agreed(_) => "Agreed",
            Self::Opening(_) => "Opening",
            Self::Share(_) => "Share",
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
            Self::Masked(message) => {
                (message.words.len() as u64 * u64::from(message.bits)).div_ceil(8) + OPENING
            }
            Self::Key(_) => SIGNED_KEY,
            Self::Agreed(message) => (message.backups.sealed.len() + message.signature.len()) as u64,
            Self::Opening(_) | Self::Share(_) => OPENING,
            Self::MaskedParameters(message) => 8 * message.words.len() as u64 + OPENING,
            Self::Joined(_) | Self::Saved(_) | Self::Done => 0,
        }
    }
}
