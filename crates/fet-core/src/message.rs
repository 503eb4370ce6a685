//! The messages: the only data that cross a party boundary.
//!
//! Messages hold host values, not tensors; [`codec`] converts them to bytes and back. `Debug` shows shapes,
//! never values. A message that belongs to a round names the round.

mod array;
mod block;
pub mod codec;
mod keys;
mod parameters;
mod parts;
mod release;
mod round;
mod sums;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::{Keys, Matrix, Sealed, Standardise};
use crate::parameters::Parameters;

pub use block::{Block, ShapeError};
pub use codec::{CodecError, LARGEST_FRAME, Message, decode, encode, encode_behind, frames};
pub use parts::Parts;
pub use release::{ReleasePlaces, ReleasedValues};
pub use round::Round;
pub use sums::{
    Age, Agreed, Confirmed, KeyShares, Masked, PublicKey, PublicKeys, Reveal, SignedKey, Unmask, Words,
};

/// Newest version of the messages and of their frame. Increase it whenever a message changes.
///
/// A new variant at the end of [`Request`] or [`Reply`] leaves the bytes of all others unchanged. Give only the new
/// variant the new version in [`Message::since`]: programs of the former version then take part in every run
/// without it. After any other change, set [`OLDEST_PROTOCOL`] to the new version too.
pub const PROTOCOL_VERSION: u16 = 8;

/// Oldest version of the messages that this program reads and writes.
pub const OLDEST_PROTOCOL: u16 = 8;

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
    /// Generate a key pair for secure aggregation, and send the public key.
    MakeKey,
    /// Agree on keys with these parties, which include the receiver. The reply holds an encrypted key share
    /// for each of the other parties, and a signature.
    AgreeOnKeys(PublicKeys),
    /// All parties signed the same keys: store their key shares, and take part in secure aggregation.
    KeepKeyShares(Confirmed),
    /// Unmask your message of this attempt at secure aggregation: the messages of all parties have arrived.
    Unmask(Unmask),
    /// Evaluate your key share for this attempt, to reconstruct the mask of a party that dropped out before
    /// it unmasked its message.
    Reveal(Reveal),
    /// Compute the representations of the neighbours of these primary records.
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
    /// Link these keys of new records for predictions with the best model; they replace the keys of the
    /// previous request. [`Round::Predict`] then names their rows. With a privacy mechanism the party
    /// counts each batch in its account.
    Predict(LinkKeys),
    /// The run is over: write the best model.
    Finish,
    /// The primary has written its report: delete the saved states.
    Forget,
    /// Make the release of the run, for these places if its kind needs them. The party takes no other part in the run.
    Release(Option<ReleasePlaces>),
}

/// A secondary's reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reply {
    /// The party agrees to the terms.
    Joined(Joined),
    /// The keys are linked.
    Linked(Linked),
    /// The linker's challenge; the primary must answer it before linking continues.
    Challenge(Sealed),
    /// A signed public key.
    Key(SignedKey),
    /// The party agrees on keys.
    Agreed(Agreed),
    /// The unmasking value for the party's own mask on its message of one attempt.
    Unmasking(PublicKey),
    /// The party's share of another party's unmasking value for one attempt.
    Share(PublicKey),
    /// A representation.
    Representation(Block),
    /// A masked representation, for secure aggregation.
    Masked(Masked),
    /// The parameters that the method averages.
    Parameters(Parameters),
    /// The masked parameters, for secure aggregation, as fixed-point words modulo 2^64.
    MaskedParameters(Words),
    /// The identity of the saved state.
    Saved(Saved),
    /// Done; no content.
    Done,
    /// The release of the run.
    Released(ReleasedValues),
}

/// A party's refusal of a request: a sentence for the primary's operator, which reveals nothing about the
/// party's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The rule, the value, and the remedy.
    pub reason: String,
    /// True if the party's account allows no more releases: the run can end here with the present model.
    pub spent: bool,
}

/// Beginning of the reason of a refusal that may end by itself; parties of former versions never begin with it.
const NOT_NOW: &str = "not now: ";

impl Refusal {
    /// Creates a refusal for `reason`.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), spent: false }
    }

    /// Creates a refusal that may end without another request, such as that of a busy party. The reason begins with
    /// "not now".
    pub fn not_now(reason: impl fmt::Display) -> Self {
        Self::new(format_args!("{NOT_NOW}{reason}"))
    }

    /// Returns true if the same request may succeed later.
    pub fn is_not_now(&self) -> bool {
        self.reason.starts_with(NOT_NOW)
    }

    /// Creates the refusal of a party whose account allows no more releases.
    pub fn spent(reason: impl fmt::Display) -> Self {
        Self { spent: true, ..Self::new(reason) }
    }
}

/// A party's answer: a reply or a refusal.
pub type Answer = Result<Reply, Refusal>;

/// The terms that all parties agree on before they compute anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Newest version of the protocol that a message of the run needs.
    pub protocol: u16,
    /// Version of the primary's results.
    pub results: u32,
    /// The common settings, as TOML, with every default filled in.
    pub settings: String,
    /// SHA-256 of `settings`.
    pub settings_hash: [u8; 32],
    /// The receiver's name, as the primary knows it.
    pub name: String,
    /// The receiver's number among the secondaries, from 1.
    pub number: usize,
    /// Number of secondaries.
    pub parties: usize,
    /// Number of primary records.
    pub rows: usize,
    /// Split of the primary's records.
    pub parts: Parts,
    /// Columns that are standardised before models see them.
    pub standardise: Standardise,
}

/// A party's report when it joins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// Number of parameters of the party's model. The number reveals how many columns the party has, but
    /// nothing about its records.
    pub parameters: usize,
    /// Digest of the party's table, keyed with the party's own secret. Two sessions have equal digests if and
    /// only if their tables are equal. Without the secret, the digest cannot be compared with a guessed
    /// table.
    pub table: [u8; 32],
    /// State of the party's lifetime account; `None` if the party keeps no account, as in a simulation.
    pub lifetime: Option<LifetimeState>,
}

/// State of a party's lifetime account. It depends on the settings of runs and on requests, never on records.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LifetimeState {
    /// Age of the account.
    pub age: Age,
    /// Number of earlier runs in the account, without the run that the party joins.
    pub earlier: u64,
    /// Planned ε of all runs together, including the run that the party joins; `None` if it is unbounded.
    pub epsilon: Option<f64>,
    /// δ of the account.
    pub delta: f64,
}

impl LifetimeState {
    /// Returns a warning for the report of a run if the account of the party with this name has earlier runs.
    pub fn warning(&self, party: &str) -> Option<String> {
        let Self { earlier, epsilon, delta, .. } = self;
        let epsilon = epsilon.map_or_else(|| "unbounded".to_string(), |epsilon| format!("{epsilon:.4}"));
        (*earlier > 0).then(|| {
            format!(
                "party \"{party}\": its lifetime account has {earlier} earlier runs, which the ε of this \
                 report does not include; together with this run as planned they have ε = {epsilon} at δ = \
                 {delta:e}"
            )
        })
    }
}

/// The primary's keys: in the clear, or as the linker encodes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkKeys {
    /// One key for each record.
    pub keys: Keys,
}

/// The information about a party's links that the primary receives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Linked {
    /// Number of real neighbours among the K.
    pub available: usize,
    /// Similarities of the neighbours to each primary record, [n, K]. They are a leak, and are present only
    /// if the method or the aggregator needs them.
    pub similarities: Option<Matrix<f32>>,
}

/// A request for the representations of these primary records' neighbours.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// The release; it keys dropout, sampling and noise.
    pub round: Round,
    /// Row numbers of primary records.
    #[serde(with = "array")]
    pub rows: Vec<u32>,
    /// Numbers of the participating parties, ascending from 0.
    #[serde(with = "array")]
    pub active: Vec<u32>,
    /// Number of the secure aggregation attempt; `None` if the party sends its representation without secure
    /// aggregation.
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
    /// Gradient, [B, K, H].
    pub gradient: Block,
    /// The learning rate of this epoch.
    pub learning_rate: f64,
}

/// A request for the parameters that the method averages, with the way of sending them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareParameters {
    /// The epoch of the averaging.
    pub round: Round,
    /// Numbers of the participating parties, ascending from 0.
    #[serde(with = "array")]
    pub active: Vec<u32>,
    /// Number of the secure aggregation attempt; `None` if the party sends its parameters without secure
    /// aggregation.
    pub attempt: Option<u32>,
}

/// The averaged parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadParameters {
    /// The epoch of the averaging.
    pub round: Round,
    /// The parameters that the method averages, and no others.
    pub parameters: Parameters,
}

/// An epoch, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// Number of the epoch, from 1.
    pub epoch: u32,
}

/// Identity of a saved state, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Epoch after which the party saved, from 1.
    pub epoch: u32,
    /// The party's random label for the state; it reveals nothing about the content.
    pub tag: [u8; 32],
}

/// Bytes of a key and a signature.
const SIGNED_KEY: u64 = 96;
/// Bytes of a commitment, an unmasking value or a share of an unmasking value.
const UNMASKING: u64 = 32;

impl Request {
    /// Returns the request's name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Join(_) => "Join",
            Self::Link(_) => "Link",
            Self::Answer(_) => "Answer",
            Self::MakeKey => "MakeKey",
            Self::AgreeOnKeys(_) => "AgreeOnKeys",
            Self::KeepKeyShares(_) => "KeepKeyShares",
            Self::Unmask(_) => "Unmask",
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
            Self::Release(_) => "Release",
        }
    }

    /// Returns the round that the request belongs to, if any.
    pub fn round(&self) -> Option<Round> {
        match self {
            Self::Forward(message) => Some(message.round),
            Self::Backward(message) => Some(message.round),
            Self::ShareParameters(message) => Some(message.round),
            Self::LoadParameters(message) => Some(message.round),
            Self::Unmask(message) => Some(message.round),
            Self::Reveal(message) => Some(message.round),
            _ => None,
        }
    }

    /// Returns the payload in bytes: keys, row numbers, gradients, parameters. Control messages (joining,
    /// saving) count as 0.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Link(message) | Self::Predict(message) => message.keys.bytes(),
            Self::Answer(message) => message.bytes().len() as u64,
            Self::Forward(message) => 4 * message.rows.len() as u64,
            Self::Backward(message) => 4 * message.gradient.values().len() as u64,
            Self::AgreeOnKeys(message) => SIGNED_KEY * message.keys.len() as u64,
            Self::KeepKeyShares(message) => {
                (message.key_shares.sealed.len() + message.signatures.len()) as u64
            }
            Self::LoadParameters(message) => 4 * message.parameters.values().len() as u64,
            Self::Release(Some(places)) => places.keys.bytes() + 4 * places.labels.len() as u64,
            _ => 0,
        }
    }
}

impl Reply {
    /// Returns the reply's name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Joined(_) => "Joined",
            Self::Linked(_) => "Linked",
            Self::Challenge(_) => "Challenge",
            Self::Key(_) => "Key",
            Self::Agreed(_) => "Agreed",
            Self::Unmasking(_) => "Unmasking",
            Self::Share(_) => "Share",
            Self::Representation(_) => "Representation",
            Self::Masked(_) => "Masked",
            Self::Parameters(_) => "Parameters",
            Self::MaskedParameters(_) => "MaskedParameters",
            Self::Saved(_) => "Saved",
            Self::Done => "Done",
            Self::Released(_) => "Released",
        }
    }

    /// Returns the payload in bytes.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Representation(block) => 4 * block.values().len() as u64,
            Self::Parameters(parameters) => 4 * parameters.values().len() as u64,
            Self::Linked(message) => {
                message.similarities.as_ref().map_or(0, |similarities| 4 * similarities.values().len() as u64)
            }
            Self::Challenge(message) => message.bytes().len() as u64,
            Self::Masked(message) => {
                (message.words.len() as u64 * u64::from(message.bits)).div_ceil(8) + UNMASKING
            }
            Self::Key(_) => SIGNED_KEY,
            Self::Agreed(message) => (message.key_shares.sealed.len() + message.signature.len()) as u64,
            Self::Unmasking(_) | Self::Share(_) => UNMASKING,
            Self::MaskedParameters(message) => 8 * message.words.len() as u64 + UNMASKING,
            Self::Released(message) => 8 * message.values.len() as u64,
            Self::Joined(_) | Self::Saved(_) | Self::Done => 0,
        }
    }
}
