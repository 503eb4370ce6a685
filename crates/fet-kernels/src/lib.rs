//! Chains of pre-norm transformer blocks over many short sequences, forward and backward, computed on the host.
//!
//! A tensor library runs a block as some forty operations, each of which streams the whole batch through memory.
//! Here one sequence goes through all of them while it lies in cache: two threads then work at the speed of their
//! multipliers instead of that of the memory. The mathematics is that of `fet_core::model`, which remains the
//! definition; a test there holds the two against each other, dropout included.
//!
//! Nothing here knows of parties, embeddings, losses or optimisers, and no tensor library is linked.
//!
//! # Determinism
//! Sums over sequences are made in fixed portions and in a fixed order, whatever the number of threads, so that a
//! run repeats bit for bit on the same processor type.

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
mod room;
mod rows;
mod shape;
mod turn;

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
