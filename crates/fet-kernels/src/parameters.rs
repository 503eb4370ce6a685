//! The parameters of attention and of a feed-forward layer, each with the norm before it, and their gradients.
//!
//! Matrices are [inputs, outputs], row by row. This module does not know their place in a model.

use std::ops::Range;

use crate::buffer::Buffer;
use crate::rows::add;

macro_rules! parameters {
    ($(#[$doc:meta])* $weights:ident, $gradient:ident; $($(#[$field:meta])* $name:ident: $size:expr;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $weights<'a> { $($(#[$field])* pub $name: &'a [f32],)* }

        /// The gradients of their namesakes.
        #[derive(Debug, Clone, PartialEq)]
        pub struct $gradient { $($(#[$field])* pub $name: Buffer,)* }

        impl $weights<'_> {
            /// # Panics
            /// If a parameter does not have its size.
            pub(crate) fn check(&self, width: usize) {
                $(assert_eq!(self.$name.len(), $size(width), stringify!($name));)*
            }
        }

        impl $gradient {
            pub(crate) fn zeros(width: usize) -> Self {
                Self { $($name: Buffer::zeros($size(width)),)* }
            }

            pub(crate) fn add(&mut self, other: &Self) {
                $(add(&mut self.$name, &other.$name);)*
            }
        }
    };
}

parameters! {
    /// A layer norm and the attention after it.
    AttentionWeights, AttentionGradient;
    /// Parameter of the norm, H values.
    gain: |h| h;
    /// Parameter of the norm, H values.
    bias: |h| h;
    /// Queries, keys and values, [H, 3H].
    projection: |h| 3 * h * h;
    /// Queries, keys and values, 3H values.
    projection_bias: |h| 3 * h;
    /// Weights of the output projection, [H, H].
    output: |h| h * h;
    /// Bias of the output projection, H values.
    output_bias: |h| h;
}

parameters! {
    /// A layer norm and the feed-forward layer after it.
    FeedForwardWeights, FeedForwardGradient;
    /// Parameter of the norm, H values.
    gain: |h| h;
    /// Parameter of the norm, H values.
    bias: |h| h;
    /// [H, 2H].
    hidden: |h| 2 * h * h;
    /// 2H values.
    hidden_bias: |h| 2 * h;
    /// [2H, H].
    contraction: |h| 2 * h * h;
    /// H values.
    contraction_bias: |h| h;
}

/// Queries, keys or values: a part of the stacked projection of attention.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Qkv {
    Queries,
    Keys,
    Values,
}

impl Qkv {
    /// Returns the place of the part in a row of 3H values.
    pub(crate) fn columns(self, width: usize) -> Range<usize> {
        let start = self as usize * width;
        start..start + width
    }
}
