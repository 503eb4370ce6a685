//! The `Aggregator` slot: combines the active parties' representations into one memory.
//!
//! An aggregator sees representations, never keys, features or links. It has one of two roles: it combines
//! the parts, or it sees only their sum, computed by secure aggregation. Plug-ins are in `aggregators/` of
//! `fet-components`.

use burn::tensor::Tensor;

use crate::registry::{Plugin, SlotKind};

/// Combines the active parties' representations into one memory, and distributes the gradient back.
///
/// Laws, checked by the contract suite for every plug-in:
///
/// - [`Aggregator::spread`] is the adjoint of the function that the role computes.
/// - The order of parties does not matter if the memory is as wide as a part.
/// - The memory has the width that [`Aggregator::width`] promises.
/// - The trainer does not query parties that dropped out.
pub trait Aggregator: Send + Sync {
    /// Returns the width of the memory for `parties` representations of width `hidden`.
    fn width(&self, _parties: usize, hidden: usize) -> usize {
        hidden
    }

    /// Returns true if the aggregator needs the similarities of the neighbours to the primary's records. The
    /// secondaries then reveal the similarities.
    fn uses_similarities(&self) -> bool {
        false
    }

    /// Returns true if the memory keeps the parties' parts separate. The parts are then concatenated in the
    /// parties' order. A part with one position is repeated along the positions of the longest part, and a
    /// party that is left out contributes zeros.
    fn keeps_parts_apart(&self) -> bool {
        false
    }

    /// Returns the role of the aggregator: it sees the parts, or only their sum.
    fn role(&self) -> Role<'_>;

    /// Returns the gradient of the loss with respect to each part, given the gradient with respect to the memory.
    ///
    /// The default differentiates what the role computes. Override it where the adjoint is known: that is faster, and parts with the
    /// same gradient can share one tensor.
    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        adjoint(self.role(), gradient, round)
    }
}

/// Computes the adjoint of a role by automatic differentiation. What a role computes is linear in the parts, so that its derivative is
/// the same at all values; it is taken at zero.
fn adjoint(role: Role<'_>, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
    let device = gradient.device();
    let zeros = |shape: [usize; 3]| Tensor::<3>::zeros(shape, &device).autodiff().require_grad();
    let similarities = round.similarities.iter().map(|similarities| similarities.clone().autodiff());
    let round = Aggregation { similarities: similarities.collect(), ..round.clone() };
    let summed = matches!(role, Role::Sum(_));
    let leaves: Vec<Tensor<3>> = match summed {
        true => vec![zeros(round.shapes[0])],
        false => round.shapes.iter().copied().map(zeros).collect(),
    };
    let memory = match role {
        Role::Combine(combine) => combine.combine(leaves.clone(), &round),
        Role::Sum(sum) => sum.mean(leaves[0].clone(), &round),
    };
    let gradients = (memory * gradient.autodiff()).sum().backward();
    let gradient_of =
        |leaf: &Tensor<3>| leaf.grad(&gradients).unwrap_or_else(|| Tensor::zeros(leaf.dims(), &device));
    match summed {
        true => Gradients::Same(gradient_of(&leaves[0])),
        false => Gradients::Each(leaves.iter().map(gradient_of).collect()),
    }
}

/// Gradients with respect to the active parties' parts.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "only one value exists at a time, and it is unpacked at once")]
pub enum Gradients {
    /// One gradient for all parts; it is copied only once, for any number of parties.
    Same(Tensor<3>),
    /// One gradient for each active party, in their order.
    Each(Vec<Tensor<3>>),
}

impl Gradients {
    /// Returns one gradient for each of `parties` parts.
    ///
    /// # Panics
    /// If the number of gradients differs from `parties`.
    pub fn into_parts(self, parties: usize) -> Vec<Tensor<3>> {
        match self {
            Self::Same(gradient) => vec![gradient; parties],
            Self::Each(gradients) => {
                assert_eq!(gradients.len(), parties, "an aggregator answers with one gradient for each part");
                gradients
            }
        }
    }
}

/// Role of an aggregator: the data that it sees.
pub enum Role<'a> {
    /// The aggregator sees the parts themselves.
    Combine(&'a dyn Combine),
    /// The aggregator sees only the sum of the parts; secure aggregation hides the parts.
    Sum(&'a dyn Sum),
}

impl std::fmt::Debug for Role<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Combine(_) => "Combine",
            Self::Sum(_) => "Sum",
        })
    }
}

/// An aggregator that sees the parts.
pub trait Combine {
    /// Returns the memory that the primary attends to.
    ///
    /// # Shapes
    /// - `parts`: one [B, K, H] for each active party, in the order of `round`; at least one
    /// - result: [B, K, W]
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3>;
}

/// An aggregator that sees only the sum of the parts.
pub trait Sum {
    /// Returns the parameters of the secure aggregation.
    fn form(&self) -> SecureSum;

    /// Returns the memory, given the sum of the parts.
    ///
    /// # Shapes
    /// - `sum`: [B, K, H]
    /// - result: [B, K, W]
    fn mean(&self, sum: Tensor<3>, round: &Aggregation) -> Tensor<3>;
}

/// The participants of one aggregation, and the known properties of their parts.
#[derive(Debug, Clone)]
pub struct Aggregation {
    /// Number of secondaries, active or not.
    pub parties: usize,
    /// Active secondaries, ascending from 0.
    pub active: Vec<usize>,
    /// Shape [B, K, H] of each active party's part.
    pub shapes: Vec<[usize; 3]>,
    /// Similarities of each active party's neighbours to the primary's records, [B, K], standardised; empty
    /// unless the aggregator requests them.
    pub similarities: Vec<Tensor<2>>,
}

impl SlotKind for dyn Aggregator {
    const SLOT: &'static str = "aggregator";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Aggregator>);

/// Parameters of secure aggregation; all parties know them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecureSum {
    /// Number of bits: sums are computed modulo 2^bits.
    pub bits: u32,
    /// Largest absolute value allowed if no mechanism bounds the values.
    pub range: f64,
    /// Number of other parties that each party shares masks with.
    pub degree: usize,
}
