//! Sizes that all parts of a chain or a decoder share.

/// The sizes of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// H.
    pub width: usize,
    /// Attention heads; they divide H.
    pub heads: usize,
    /// K, the length of a sequence.
    pub positions: usize,
}
