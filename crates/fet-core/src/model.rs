//! The layers of the Federated Transformer (SPEC of the model: paper, section 4 and 5).
//!
//! Layers are plain Burn modules. Weights and dropout masks are drawn on the host, so that every backend
//! computes with the same numbers. Parties, messages and optimisers are not known here.

mod attention;
mod block;
mod decoder;
mod embedding;
mod fourier;
mod gelu;
mod init;
pub(crate) mod kernels;
mod linear;
mod mask;
mod pass;
mod perceptron;

pub use attention::Attention;
pub use block::{AttentionBlock, BlockChain, FeedForward, Norms};
pub use decoder::{Decoder, DecoderChain, DecoderShape};
pub use embedding::Embedding;
pub use fourier::FourierEncoding;
pub use gelu::Gelu;
pub use init::Init;
pub use linear::{Linear, linear};
pub use mask::{DynamicMask, padding_mask};
pub use pass::Pass;
pub use perceptron::Perceptron;

/// What all parties' models of one method have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelShape {
    /// H, the width of every representation.
    pub hidden: usize,
    /// Attention heads; they divide H.
    pub heads: usize,
    /// Dropout rate within blocks.
    pub dropout: f64,
    /// Whether keys are encoded by learnable Fourier features and added to the embedding.
    pub positional_encoding: bool,
    /// Standard deviation of the initial frequencies of that encoding.
    pub frequency_std: f64,
    /// Whether the blocks of a chain share their layer norms, as the authors' program has it.
    pub shared_norm: bool,
}
