//! The `Aggregator` slot: how the active parties' representations become one.
//!
//! An aggregator sees representations, never keys, features or links. Plug-ins are in `aggregator/`.

mod average;

use burn::tensor::Tensor;

use crate::registry::{Plugin, SlotKind};

pub use average::AverageSettings;

/// Combines the representations of the active parties, and spreads the gradient back.
///
/// Laws, held by the contract suite for every plug-in: the order of parties does not matter where the
/// aggregator is symmetric; [`Aggregator::spread`] is the adjoint of [`Aggregator::combine`]; a party that
/// was dropped is not asked for.
pub trait Aggregator: Send + Sync {
    /// The memory that the primary decodes against.
    ///
    /// # Shapes
    /// - `parts`: one [B, K, H] for each active party; at least one
    /// - result: [B, K, H]
    fn combine(&self, parts: Vec<Tensor<3>>) -> Tensor<3>;

    /// The gradient of the loss with respect to each of `parties` representations, given the gradient with
    /// respect to the memory.
    fn spread(&self, gradient: Tensor<3>, parties: usize) -> Vec<Tensor<3>>;
}

impl SlotKind for dyn Aggregator {
    const SLOT: &'static str = "aggregator";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Aggregator>);
