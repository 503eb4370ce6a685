//! The `Aggregator` slot: combines the active parties' representations into one.
//!
//! An aggregator sees representations, never keys, features or links. It has one of two roles: it combines the parts,
//! or it sees only their secure sum. Plug-ins are in `aggregators/` of `fet-components`.

use burn::tensor::Tensor;

use crate::registry::{Plugin, SlotKind};

/// Combines the active parties' representations into one memory, and distributes the gradient back.
///
/// Laws, checked by the contract suite for every plug-in: [`Aggregator::spread`] is the adjoint of what its role
/// computes; the order of parties does not matter where the memory is as wide as a part; the memory has the width that
/// [`Aggregator::width`] promises; dropped parties are not queried.
pub trait Aggregator: Send + Sync {
    /// The width of the memory, for `parties` representations of width `hidden`.
    fn width(&self, _parties: usize, hidden: usize) -> usize {
        hidden
    }

    /// Whether it needs the similarities of the neighbours to the primary's records. The secondaries then reveal them.
    fn uses_similarities(&self) -> bool {
        false
    }

    /// Whether the memory keeps the parties' parts separate: concatenated in the parties' order, a part of one position
    /// repeated along those of the longest, zeros for a party that is left out.
    fn keeps_parts_apart(&self) -> bool {
        false
    }

    /// What it sees: the parts, or a sum of them.
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
    let of = |leaf: &Tensor<3>| leaf.grad(&gradients).unwrap_or_else(|| Tensor::zeros(leaf.dims(), &device));
    match summed {
        true => Gradients::Same(of(&leaves[0])),
        false => Gradients::Each(leaves.iter().map(of).collect()),
    }
}

/// The gradients with respect to the active parties' parts.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
pub enum Gradients {
    /// All parts have this one: it is copied once, however many parties there are.
    Same(Tensor<3>),
    /// One for each active party, in their order.
    Each(Vec<Tensor<3>>),
}

impl Gradients {
    /// One gradient for each of `parties` parts.
    ///
    /// # Panics
    /// If there is one for each part and they are not as many.
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

/// What an aggregator sees.
pub enum Role<'a> {
    /// The parts themselves.
    Combine(&'a dyn Combine),
    /// Only their sum; secure aggregation hides the parts.
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
    /// The memory that the primary attends to.
    ///
    /// # Shapes
    /// - `parts`: one [B, K, H] for each active party, in the order of `round`; at least one
    /// - result: [B, K, W]
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3>;
}

/// An aggregator that sees only the sum of the parts.
pub trait Sum {
    /// How the secure sum of the parts is formed.
    fn form(&self) -> SecureSum;

    /// The memory, given the sum of the parts.
    ///
    /// # Shapes
    /// - `sum`: [B, K, H]
    /// - result: [B, K, W]
    fn mean(&self, sum: Tensor<3>, round: &Aggregation) -> Tensor<3>;
}

/// The participants of one aggregation, and what is known of the parts besides their values.
#[derive(Debug, Clone)]
pub struct Aggregation {
    /// The number of secondaries, active or not.
    pub parties: usize,
    /// The active ones, ascending from 0.
    pub active: Vec<usize>,
    /// The shape [B, K, H] of each active party's part.
    pub shapes: Vec<[usize; 3]>,
    /// Similarities of each active party's neighbours to the primary's records, [B, K], standardised; empty unless
    /// requested.
    pub similarities: Vec<Tensor<2>>,
}

impl SlotKind for dyn Aggregator {
    const SLOT: &'static str = "aggregator";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Aggregator>);

/// How secure sums are formed; all parties know it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SecureSum {
    /// Sums are taken modulo 2^bits.
    pub bits: u32,
    /// The largest absolute value allowed where no mechanism bounds it.
    pub range: f64,
    /// The number of other parties that a party shares masks with.
    pub degree: usize,
}
