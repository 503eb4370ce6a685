//! `similarity-weighted`: a mean with higher weights for parties with more similar neighbours.
//!
//! At each position the weights are a softmax, over the active parties, of the neighbours' standardised
//! similarities. The primary must know these similarities, which leak how close the parties' records are;
//! `average` avoids this leak.

use burn::tensor::{Tensor, activation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fet_core::aggregator::{Aggregation, Aggregator, Combine, Gradients, Role};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `similarity-weighted`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimilarityWeightedSettings {
    /// Factor on standardised similarities before the softmax over parties. A larger factor gives the nearest
    /// party more weight; 0 gives the plain mean.
    #[schemars(range(min = 0))]
    pub sharpness: f64,
}

impl Default for SimilarityWeightedSettings {
    fn default() -> Self {
        Self { sharpness: 1.0 }
    }
}

impl Recipe<dyn Aggregator> for SimilarityWeightedSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Aggregator>, Violation> {
        Ok(Box::new(SimilarityWeighted { sharpness: self.sharpness }))
    }
}

inventory::submit! {
    Plugin::<dyn Aggregator>::new::<SimilarityWeightedSettings>(
        "similarity-weighted",
        "a mean weighted by the neighbours' similarities, which the parties reveal",
    )
}

struct SimilarityWeighted {
    sharpness: f64,
}

impl SimilarityWeighted {
    /// Returns the weights of each active party, [B, K, 1].
    fn weights(&self, round: &Aggregation) -> Vec<Tensor<3>> {
        let columns = round.similarities.iter().map(|similarities| {
            let [rows, positions] = similarities.dims();
            similarities.clone().reshape([rows, positions, 1])
        });
        let logits = Tensor::cat(columns.collect(), 2).mul_scalar(self.sharpness);
        let weights = activation::softmax(logits, 2);
        (0..round.active.len()).map(|party| weights.clone().narrow(2, party, 1)).collect()
    }
}

impl Aggregator for SimilarityWeighted {
    fn uses_similarities(&self) -> bool {
        true
    }

    fn role(&self) -> Role<'_> {
        Role::Combine(self)
    }

    fn spread(&self, gradient: Tensor<3>, round: &Aggregation) -> Gradients {
        let weighted = self.weights(round).into_iter().map(|weights| gradient.clone() * weights);
        Gradients::Each(weighted.collect())
    }
}

impl Combine for SimilarityWeighted {
    fn combine(&self, parts: Vec<Tensor<3>>, round: &Aggregation) -> Tensor<3> {
        let weighted = parts.into_iter().zip(self.weights(round)).map(|(part, weights)| part * weights);
        weighted.reduce(|a, b| a + b).expect("at least one party stays active")
    }
}
