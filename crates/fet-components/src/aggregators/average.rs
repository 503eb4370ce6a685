//! `average`: the mean of the active parties' representations, position by position (SplitAvg without
//! protection).
//!
//! It divides by the number of active parties, not by the number of all parties.

use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::aggregator::{Aggregation, Aggregator, Combine, Gradients, Role};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `average`, which has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AverageSettings {}

impl Recipe<dyn Aggregator> for AverageSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(Average))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<AverageSettings>("average", "the mean of the active parties, in the clear")
}

struct Average;

impl Aggregator for Average {
    fn role(&self) -> Role<'_> {
        Role::Combine(self)
    }

    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        let parties = round.active.len();
        Gradients::Same(if parties == 1 { gradient } else { gradient.div_scalar(parties as f64) })
    }
}

impl Combine for Average {
    fn combine(&self, parts: Vec<Tensor<3>>, _round: &Aggregation) -> Tensor<3> {
        let count = parts.len();
        let sum = parts.into_iter().reduce(|a, b| a + b).expect("at least one party stays active");
        if count == 1 { sum } else { sum.div_scalar(count as f64) }
    }
}
