//! The `Aggregator` slot: how the active parties' representations become one.
//!
//! An aggregator sees representations, never keys, features or links. Plug-ins are in `aggregator/`.

use burn::tensor::Tensor;

use crate::registry::{Plugin, SlotKind};

/// Combines the representations of the active parties, and spreads the gradient back.
///
/// Laws, held by the contract suite for every plug-in: [`Aggregator::spread`] is the adjoint of
/// [`Aggregator::combine`]; the order of parties does not matter where the memory is as wide as a part; the
/// memory has the width that [`Aggregator::width`] promises; a party that was dropped is not asked for.
pub trait Aggregator: Send + Sync {
    /// The width of the memory, for `parties` representations of width `hidden`.
    fn width(&self, _parties: usize, hidden: usize) -> usize {
        hidden
    }

    /// Whether it must know how similar the neighbours are to the primary's records. The secondaries then
    /// reveal it.
    fn uses_similarities(&self) -> bool {
        false
    }

    /// The memory that the primary decodes against.
    ///
    /// # Shapes
    /// - `parts`: one [B, K, H] for each active party, in the order of `round`; at least one
    /// - result: [B, K, W]
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3>;

    /// How the parties are to hide their parts in a sum; nothing where the parts themselves are needed.
    fn secure(&self) -> Option<SecureSum> {
        None
    }

    /// The memory, given the sum of the parts alone; asked for only where [`Aggregator::secure`] says so.
    ///
    /// # Panics
    /// If the aggregator needs the parts themselves.
    fn mean(&self, _sum: Tensor<3>, _round: &Aggregation) -> Tensor<3> {
        unreachable!("an aggregator that hides its parts in a sum says what to do with the sum")
    }

    /// The gradient of the loss with respect to each part, given the gradient with respect to the memory.
    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Vec<Tensor<3>>;
}

/// Who takes part in one aggregation, and what is known of the parts besides their values.
#[derive(Debug, Clone)]
pub struct Aggregation {
    /// How many secondaries there are, whether they take part or not.
    pub parties: usize,
    /// Those that take part, ascending from 0.
    pub active: Vec<usize>,
    /// The shape [B, K, H] of each active party's part.
    pub shapes: Vec<[usize; 3]>,
    /// How similar the neighbours of each active party are to the primary's records, [B, K], standardised;
    /// empty where nobody asked for it.
    pub similarities: Vec<Tensor<2>>,
}

impl SlotKind for dyn Aggregator {
    const SLOT: &'static str = "aggregator";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Aggregator>);

/// How secret sums are formed; all parties know it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecureSum {
    /// Sums are taken modulo 2^bits.
    pub bits: u32,
    /// The largest absolute value of what no mechanism bounds.
    pub range: f64,
    /// With how many others a party shares masks.
    pub degree: usize,
}
