//! Chains of pre-norm transformer blocks over many short sequences, forward and backward, computed on the host.
//!
//! A tensor library runs a block as some forty operations, and each of them streams the whole batch through memory.
//! This crate takes one sequence through all operations while it stays in cache, so that multipliers and not memory limit the
//! speed. The mathematics equals `fet_core::model`, which remains the definition; a test compares the two, dropout included.
//!
//! The crate knows no parties, losses or optimisers, and links no tensor library.
//!
//! # Determinism
//! Sums over sequences have fixed parts and a fixed order that do not depend on the number of threads, so that a run repeats
//! bit for bit on the same processor type.

mod attention;
mod block;
mod buffer;
mod chain;
mod decoder;

mod dropout;
mod embedding;
mod feed_forward;
mod keystream;
mod linear;
mod mask;
mod math;
mod matrix;
mod parameters;
mod peak;
mod perceptron;
mod product;
mod rows;
mod scratch;
mod shape;
mod transpose;

pub use block::{BlockGradient, BlockWeights};
pub use buffer::{Buffer, collect, copy, give_back};
pub use chain::{ChainGradient, ChainInput, Forward, Tape, backward, forward};
pub use decoder::{
    DecoderBlockGradient, DecoderBlockWeights, DecoderForward, DecoderGradient, DecoderInput, DecoderTape,
    decode, decode_back,
};
pub use dropout::Dropout;
pub use embedding::{
    EmbeddingGradient, EmbeddingTape, EmbeddingWeights, PositionWeights, Records, embed, embed_back,
};
pub use linear::{linear, linear_back};
pub use mask::{MaskInput, MaskTape, mask, mask_back};
pub use parameters::{AttentionGradient, AttentionWeights, FeedForwardGradient, FeedForwardWeights};
pub use peak::{peak, products};
pub use perceptron::{PerceptronGradient, PerceptronWeights};
pub use shape::Shape;
