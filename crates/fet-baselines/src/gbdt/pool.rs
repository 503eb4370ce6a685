//! Linked records as columns for trees.

use burn::tensor::{Tensor, activation};
use fet_core::method::Memory;
use fet_core::registry::Violation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Form of the K linked records of a secondary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// The columns of the most similar record.
    Nearest,
    /// The mean of the records' columns.
    Mean,
    /// The mean of the records' columns, weighted by the exponential of the similarity.
    Weighted,
    /// The largest and the mean similarity, standardised; a similarity is one minus a distance, for example.
    Similarity,
}

impl Pool {
    /// Refuses an empty list of forms, and a form that is named twice.
    pub(crate) fn check(columns: &[Self]) -> Result<(), Violation> {
        let twice = columns.iter().enumerate().any(|(place, pool)| columns[..place].contains(pool));
        if columns.is_empty() || twice {
            let rule = "must name at least one form, and each form once";
            return Err(Violation::new("columns", rule, format!("{columns:?}")));
        }
        Ok(())
    }

    /// True if the form needs all K records.
    pub(super) fn of_all(self) -> bool {
        self != Self::Nearest
    }

    pub(super) fn uses_similarities(self) -> bool {
        matches!(self, Self::Weighted | Self::Similarity)
    }

    /// Turns the neighbours' columns [B, K, W] into columns of the primary's rows, [B, n]; the first `available` neighbours are real.
    pub(super) fn columns(self, memory: &Memory) -> Vec<Tensor<2>> {
        let [rows, positions, width] = memory.tensor.dims();
        let real = memory.available.clamp(1, positions);
        let parts = || memory.tensor.clone().narrow(1, 0, real);
        let flat = |pooled: Tensor<3>| pooled.reshape([rows, width]);
        match self {
            Self::Nearest => vec![flat(parts().narrow(1, 0, 1))],
            Self::Mean => vec![flat(parts().mean_dim(1))],
            // The columns of several parties are adjacent, so the mean of the parties' similarities weights all of them.
            Self::Weighted => {
                let weights = activation::softmax(mean(&memory.similarities).narrow(1, 0, real), 1);
                vec![flat((parts() * weights.reshape([rows, real, 1])).sum_dim(1))]
            }
            Self::Similarity => {
                let nearest_and_mean = |similar: &Tensor<2>| {
                    let similar = similar.clone().narrow(1, 0, real);
                    Tensor::cat(vec![similar.clone().narrow(1, 0, 1), similar.mean_dim(1)], 1)
                };
                memory.similarities.iter().map(nearest_and_mean).collect()
            }
        }
    }
}

/// The mean of the parties' similarities.
fn mean(all: &[Tensor<2>]) -> Tensor<2> {
    let sum = all.iter().skip(1).fold(all[0].clone(), |sum, one| sum + one.clone());
    sum.div_scalar(all.len() as f64)
}
