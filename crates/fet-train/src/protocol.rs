//! The messages: all that ever crosses a party boundary.
//!
//! In one process they carry tensors untouched; turning them into bytes is the duty of a codec, which is
//! not here. `Debug` shows shapes, never values. A message knows how many bytes a deployment would send
//! for it.

use std::fmt;

use burn::tensor::Tensor;

use fet_privacy::secure_sum::{Attempt, PublicKey};

use fet_core::aggregator::SecureSum;
use fet_core::data::{Keys, Matrix, Sealed};
use fet_core::parameters::Parameters;

/// What the primary's side sends to a secondary.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variants are the common ones; boxing them buys nothing"
)]
pub enum Request {
    /// Link these keys, one for each primary record, and keep the links.
    Link(LinkKeys),
    /// What the linker's challenge asked for; linking goes on.
    Answer(Sealed),
    /// Represent the neighbours of these primary records.
    Forward(Forward),
    /// Learn from the gradient of the last training representation.
    Backward(Backward),
    /// Make a key for secret sums, and send its public half.
    MakeKey,
    /// Share keys with these parties, the receiver among them.
    AgreeOnKeys(Vec<PublicKey>),
    /// Send the positional encoding's parameters; where it says how, hidden in a sum.
    ShareEncoding(Option<Hidden>),
    /// Take these as the positional encoding's parameters.
    LoadEncoding(Parameters),
}

/// What a secondary answers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reply {
    /// The keys are linked.
    Linked(Linked),
    /// The linker cannot go on before this is answered.
    Challenge(Sealed),
    /// A representation.
    Representation(Representation),
    /// A representation's share in a secret sum.
    Masked(Masked),
    /// A public key.
    Key(PublicKey),
    /// The positional encoding's share in a secret sum.
    MaskedEncoding(Vec<u64>),
    /// The party is gone; a deployment would see no reply at all.
    Gone,
    /// The positional encoding's parameters.
    Encoding(Parameters),
    /// Done; there is nothing to tell.
    Done,
}

/// What the primary learns of a party's links.
#[derive(Debug, Clone)]
pub struct Linked {
    /// How many of the K neighbours are real.
    pub available: usize,
    /// How similar the neighbours are to each primary record, [n, K]: a leak, and only there where the
    /// experiment's method or aggregator cannot work without.
    pub similarities: Option<Matrix<f32>>,
}

/// The primary's keys: in the clear, or as the linker conceals them.
#[derive(Debug, Clone)]
pub struct LinkKeys {
    /// One for each primary record.
    pub keys: Keys,
}

/// Primary records whose neighbours are to be represented.
#[derive(Clone)]
pub struct Forward {
    /// The step, counted over the whole run; it keys dropout and noise.
    pub round: u64,
    /// Row numbers of primary records.
    pub rows: Vec<usize>,
    /// How many parties take part.
    pub active: usize,
    /// Whether a [`Backward`] will follow.
    pub training: bool,
    /// How to hide the representation in a sum; nothing where it is sent by itself.
    pub hidden: Option<Hidden>,
}

/// How a party is to hide its values in a sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Hidden {
    /// The form of the sum.
    pub sum: SecureSum,
    /// Who takes part, and at which attempt.
    pub attempt: Attempt,
    /// What the masks are for besides: the step, or the epoch.
    pub round: u64,
}

impl fmt::Debug for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Forward(round {}, {} rows, {} parties)", self.round, self.rows.len(), self.active)
    }
}

/// One party's encoded neighbours.
#[derive(Clone)]
pub struct Representation {
    /// [B, K, H].
    pub tensor: Tensor<3>,
}

impl fmt::Debug for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Representation{:?}", self.tensor.dims())
    }
}

/// One party's encoded neighbours as integers under a mask: uniform by themselves.
#[derive(Clone)]
pub struct Masked {
    /// [B, K, H].
    pub shape: [usize; 3],
    /// Modulo 2^bits.
    pub words: Vec<u32>,
    /// Bits of a word.
    pub bits: u32,
}

impl fmt::Debug for Masked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masked{:?}", self.shape)
    }
}

/// The gradient of the loss with respect to a party's representation.
#[derive(Clone)]
pub struct Backward {
    /// [B, K, H].
    pub gradient: Tensor<3>,
    /// The step size of this epoch.
    pub learning_rate: f64,
}

impl fmt::Debug for Backward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backward{:?}", self.gradient.dims())
    }
}

impl Request {
    /// How many bytes of payload a deployment would send.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Link(message) => message.keys.bytes(),
            Self::Answer(message) => message.bytes().len() as u64,
            Self::Forward(message) => 4 * message.rows.len() as u64,
            Self::Backward(message) => tensor_bytes(&message.gradient),
            Self::MakeKey | Self::ShareEncoding(_) => 0,
            Self::AgreeOnKeys(keys) => 32 * keys.len() as u64,
            Self::LoadEncoding(parameters) => 4 * parameters.values().len() as u64,
        }
    }
}

impl Reply {
    /// How many bytes of payload a deployment would send.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Representation(message) => tensor_bytes(&message.tensor),
            Self::Encoding(parameters) => 4 * parameters.values().len() as u64,
            Self::Linked(message) => {
                message.similarities.as_ref().map_or(0, |similarities| 4 * similarities.values().len() as u64)
            }
            Self::Challenge(message) => message.bytes().len() as u64,
            Self::Masked(message) => (message.words.len() as u64 * u64::from(message.bits)).div_ceil(8),
            Self::Key(_) => 32,
            Self::MaskedEncoding(words) => 8 * words.len() as u64,
            Self::Done | Self::Gone => 0,
        }
    }
}

fn tensor_bytes(tensor: &Tensor<3>) -> u64 {
    4 * tensor.dims().iter().map(|&d| d as u64).product::<u64>()
}
