//! The layers of the Federated Transformer (paper, sections 4 and 5).
//!
//! Layers are plain Burn modules. Weights and dropout masks are drawn on the host, so that every backend uses
//! the same random numbers. Layers do not know parties, messages or optimisers.

mod attention;
mod block;
mod decoder;
mod embedding;
mod fourier;
mod gelu;
mod grid;
mod init;
pub(crate) mod kernels;
mod key_encoding;
mod linear;
mod mask;
mod numbers;
mod perceptron;

pub use attention::Attention;
pub use block::{AttentionBlock, BlockChain, FeedForward, Norms};
pub use decoder::{Decoder, DecoderChain, DecoderShape};
pub use embedding::Embedding;
pub use fourier::FourierEncoding;
pub use gelu::Gelu;
pub use grid::{Grid, GridEncoding};
pub use init::Init;
pub use key_encoding::{Inputs, KeyEncoding};
pub use linear::{Linear, apply, linear};
pub use mask::{DynamicMask, padding, padding_mask};
pub use numbers::{NumberEncoding, PeriodicEncoding};
pub use perceptron::Perceptron;
