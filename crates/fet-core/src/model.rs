//! Settings shared by a method's models, and the difference between a training and an evaluation pass.

mod pass;

pub use pass::Pass;

/// Maximum width of a layer that settings may ask for: its square does not overflow, and is then compared with the free memory.
pub const MOST_WIDTH: usize = 1 << 20;
/// Maximum number of blocks or layers of one kind that settings may ask for.
pub const MOST_BLOCKS: usize = 1_000;

/// Settings shared by all parties' models of one method.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelShape {
    /// H, the width of every representation.
    pub hidden: usize,
    /// Number of attention heads; it divides H.
    pub heads: usize,
    /// Dropout rate within blocks.
    pub dropout: f64,
    /// True if keys are encoded by learnable Fourier features and added to the embedding.
    pub positional_encoding: bool,
    /// Standard deviation of the initial frequencies of the positional encoding.
    pub frequency_std: f64,
    /// True if the blocks of a chain share their layer norms, as in the authors' program.
    pub shared_norm: bool,
}
