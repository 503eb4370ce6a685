//! `concat`: the parties' representations concatenated, as in SplitNN.
//!
//! The memory is as wide as all parties together, and shows the primary each party separately, so that secure
//! aggregation cannot protect it. An inactive party's part is zeros. A part of one position is repeated along
//! the positions of the longest part.

use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::aggregator::{Aggregation, Aggregator, Combine, Gradients, Role};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `concat`, which has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConcatSettings {}

impl Recipe<dyn Aggregator> for ConcatSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(Concat))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<ConcatSettings>("concat", "all parties concatenated, in the clear (SplitNN)")
}

struct Concat;

/// Returns the number of positions of the longest part.
fn positions(round: &Aggregation) -> usize {
    round.shapes.iter().map(|shape| shape[1]).max().expect("at least one party stays active")
}

impl Aggregator for Concat {
    fn width(&self, parties: usize, hidden: usize) -> usize {
        parties * hidden
    }

    fn keeps_parts_apart(&self) -> bool {
        true
    }

    fn role(&self) -> Role<'_> {
        Role::Combine(self)
    }

    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        let positions = positions(round);
        // The part of an inactive party gets the width of the first active party's part.
        let absent = round.shapes[0][2];
        let mut shapes = round.active.iter().zip(&round.shapes).peekable();
        let mut start = 0;
        let mut shares = Vec::with_capacity(round.active.len());
        for party in 0..round.parties {
            let shape = shapes.next_if(|(own, _)| **own == party).map(|(_, shape)| shape);
            let width = shape.map_or(absent, |shape| shape[2]);
            if let Some(shape) = shape {
                let share = gradient.clone().narrow(2, start, width);
                shares.push(if shape[1] == positions { share } else { share.sum_dim(1) });
            }
            start += width;
        }
        Gradients::Each(shares)
    }
}

impl Combine for Concat {
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
        let positions = positions(round);
        let device = parts[0].device();
        let absent = || {
            let [rows, _, width] = round.shapes[0];
            Tensor::zeros([rows, positions, width], &device)
        };
        let mut parts = parts.into_iter().zip(&round.active).peekable();
        let side_by_side = (0..round.parties).map(|party| match parts.next_if(|(_, own)| **own == party) {
            Some((part, _)) if part.dims()[1] == positions => part,
            Some((part, _)) => part.repeat_dim(1, positions),
            None => absent(),
        });
        Tensor::cat(side_by_side.collect(), 2)
    }
}
