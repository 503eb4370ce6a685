//! The messages: all that ever crosses a party boundary.
//!
//! They hold host values and no tensors; [`codec`] turns them into bytes and back. `Debug` shows shapes, never values. A
//! message that belongs to a round names it.

mod array;
mod block;
pub mod codec;
mod keys;
mod parameters;
mod round;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::{Keys, Matrix, Sealed};
use crate::parameters::Parameters;

pub use block::{Block, ShapeError};
pub use codec::{Answer, CodecError, LARGEST_FRAME, Message, decode, encode};
pub use round::Round;

/// The version of the messages and of their frame. If a message changes, raise it.
pub const PROTOCOL_VERSION: u16 = 1;

/// What the primary asks of a secondary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Request {
    /// Agree to these terms; everything else comes after it.
    Join(Terms),
    /// Link these keys, one for each primary record, and keep the links.
    Link(LinkKeys),
    /// What the linker's challenge asked for; linking goes on.
    Answer(Sealed),
    /// Make a key for secret sums, and send its public half.
    MakeKey,
    /// Share keys with these parties, the receiver among them.
    AgreeOnKeys(PublicKeys),
    /// Represent the neighbours of these primary records.
    Forward(Forward),
    /// Learn from the gradient of the training representation of the same round.
    Backward(Backward),
    /// Send the parameters that the method averages over all parties.
    ShareParameters(ShareParameters),
    /// Take these as the parameters that the method averages over all parties.
    LoadParameters(LoadParameters),
    /// The model as it is now is the best so far: keep it.
    KeepBest(Epoch),
    /// Save everything that the run needs to go on after this epoch.
    Save(Epoch),
    /// Go back to what was saved after this epoch.
    Load(Saved),
    /// The run is over: write the best model.
    Finish,
    /// The primary has written its report: forget what was saved on the way.
    Forget,
}

/// What a secondary answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reply {
    /// It agrees to the terms.
    Joined(Joined),
    /// The keys are linked.
    Linked(Linked),
    /// The linker cannot go on before this is answered.
    Challenge(Sealed),
    /// A public key.
    Key(PublicKey),
    /// A representation.
    Representation(Block),
    /// A representation's share in a secret sum.
    Masked(Masked),
    /// The parameters that the method averages.
    Parameters(Parameters),
    /// Their share in a secret sum, as fixed-point words modulo 2^64.
    MaskedParameters(Words),
    /// What was saved.
    Saved(Saved),
    /// Done; there is nothing to tell.
    Done,
}

/// The public half of an X25519 key.
pub type PublicKey = [u8; 32];

/// The public keys of all parties, by their numbers; a party that is gone has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKeys {
    /// The numbers of the parties that are there, ascending from 0.
    #[serde(with = "array")]
    pub parties: Vec<u32>,
    /// 32 bytes for each of them.
    #[serde(with = "array")]
    pub keys: Vec<u8>,
}

/// What all parties agree on before anything is computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// [`PROTOCOL_VERSION`] of the primary.
    pub protocol: u16,
    /// The version of the primary's results.
    pub results: u32,
    /// The common settings, as TOML, every default filled in.
    pub settings: String,
    /// SHA-256 of `settings`.
    pub settings_hash: [u8; 32],
    /// The receiver's name, as the primary knows it.
    pub name: String,
    /// The receiver's number among the secondaries, from 1.
    pub number: usize,
    /// How many secondaries there are.
    pub parties: usize,
    /// How many records the primary has.
    pub rows: usize,
    /// Whether models see standardised keys.
    pub standardise_keys: bool,
}

/// What a party tells when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// How many parameters its model has. They tell how many columns it has, and nothing of its records.
    pub parameters: usize,
}

/// The primary's keys: in the clear, or as the linker conceals them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkKeys {
    /// One for each primary record.
    pub keys: Keys,
}

/// What the primary learns of a party's links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Linked {
    /// How many of the K neighbours are real.
    pub available: usize,
    /// How similar the neighbours are to each primary record, [n, K]: a leak, and only there where the
    /// experiment's method or aggregator cannot work without.
    pub similarities: Option<Matrix<f32>>,
}

/// Primary records whose neighbours are to be represented.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Which release this is; it keys dropout, sampling and noise.
    pub round: Round,
    /// Row numbers of primary records.
    #[serde(with = "array")]
    pub rows: Vec<u32>,
    /// The numbers of the parties that take part, ascending from 0.
    #[serde(with = "array")]
    pub active: Vec<u32>,
    /// At which attempt of a secret sum this is; nothing where the representation is sent by itself.
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
    /// The step size of this epoch.
    pub learning_rate: f64,
}

/// One party's encoded neighbours as integers under a mask: uniform by themselves.
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

/// How the averaged parameters are to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareParameters {
    /// The epoch.
    pub round: Round,
    /// The numbers of the parties that take part, ascending from 0.
    #[serde(with = "array")]
    pub active: Vec<u32>,
    /// At which attempt of a secret sum this is; nothing where they are sent by themselves.
    pub attempt: Option<u32>,
}

/// The averaged parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadParameters {
    /// The epoch.
    pub round: Round,
    /// Those that the method averages, and no others.
    pub parameters: Parameters,
}

/// Words of a secret sum. `Debug` shows how many, never which.
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

impl Request {
    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Join(_) => "Join",
            Self::Link(_) => "Link",
            Self::Answer(_) => "Answer",
            Self::MakeKey => "MakeKey",
            Self::AgreeOnKeys(_) => "AgreeOnKeys",
            Self::Forward(_) => "Forward",
            Self::Backward(_) => "Backward",
            Self::ShareParameters(_) => "ShareParameters",
            Self::LoadParameters(_) => "LoadParameters",
            Self::KeepBest(_) => "KeepBest",
            Self::Save(_) => "Save",
            Self::Load(_) => "Load",
            Self::Finish => "Finish",
            Self::Forget => "Forget",
        }
    }

    /// The round that it belongs to, where it belongs to one.
    pub fn round(&self) -> Option<Round> {
        match self {
            Self::Forward(message) => Some(message.round),
            Self::Backward(message) => Some(message.round),
            Self::ShareParameters(message) => Some(message.round),
            Self::LoadParameters(message) => Some(message.round),
            _ => None,
        }
    }

    /// How many bytes of payload it carries: keys, row numbers, gradients, parameters. What only steers the run
    /// (joining, saving) counts as nothing.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Link(message) => message.keys.bytes(),
            Self::Answer(message) => message.bytes().len() as u64,
            Self::Forward(message) => 4 * message.rows.len() as u64,
            Self::Backward(message) => 4 * message.gradient.values().len() as u64,
            Self::AgreeOnKeys(message) => message.keys.len() as u64,
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
            Self::Representation(_) => "Representation",
            Self::Masked(_) => "Masked",
            Self::Parameters(_) => "Parameters",
            Self::MaskedParameters(_) => "MaskedParameters",
            Self::Saved(_) => "Saved",
            Self::Done => "Done",
        }
    }

    /// How many bytes of payload it carries.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Representation(block) => 4 * block.values().len() as u64,
            Self::Parameters(parameters) => 4 * parameters.values().len() as u64,
            Self::Linked(message) => {
                message.similarities.as_ref().map_or(0, |similarities| 4 * similarities.values().len() as u64)
            }
            Self::Challenge(message) => message.bytes().len() as u64,
            Self::Masked(message) => (message.words.len() as u64 * u64::from(message.bits)).div_ceil(8),
            Self::Key(_) => 32,
            Self::MaskedParameters(words) => 8 * words.0.len() as u64,
            Self::Joined(_) | Self::Saved(_) | Self::Done => 0,
        }
    }
}
