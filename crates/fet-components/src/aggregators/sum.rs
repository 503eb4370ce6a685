//! `sum`: the sum of the active parties' representations, position by position.
//!
//! Under party dropout its scale depends on the number of active parties; `average` avoids this.

use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::aggregator::{Aggregation, Aggregator, Combine, Gradients, Role};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `sum`, which has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SumSettings {}

impl Recipe<dyn Aggregator> for SumSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(Sum))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<SumSettings>("sum", "the sum of the active parties, in the clear")
}

struct Sum;

impl Aggregator for Sum {
    fn role(&self) -> Role<'_> {
        Role::Combine(self)
    }

    fn spread(&self, gradient: Tensor<3>, _round: &Aggregation) -> Gradients {
        Gradients::Same(gradient)
    }
}

impl Combine for Sum {
    fn combine(&self, parts: Vec<Tensor<3>>, _round: &Aggregation) -> Tensor<3> {
        parts.into_iter().reduce(|a, b| a + b).expect("at least one party stays active")
    }
}
