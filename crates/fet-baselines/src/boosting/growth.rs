//! Settings of the growth of boosted trees.

use fet_core::data::Task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of equal parts of the trees after which a run validates.
pub(crate) const PORTIONS: usize = 20;

/// Growth of gradient-boosted trees: from histograms, leaf by leaf, the best leaf first. The defaults work well on tables of some ten
/// thousand rows (docs/results/accuracy.md, "Boosted trees and LightGBM").
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Growth {
    /// The number of trees; with several classes, of each class.
    #[schemars(range(min = PORTIONS, max = 100_000))]
    pub trees: usize,
    /// The learning rate (shrinkage), a factor on each tree's output.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub learning_rate: f64,
    /// The largest number of leaves of a tree.
    #[schemars(range(min = 2, max = 65_536))]
    pub leaves: usize,
    /// The largest number of splits between the root of a tree and a leaf.
    #[schemars(range(min = 1, max = 64))]
    pub depth: usize,
    /// The smallest sum of second derivatives of the loss in a leaf: for a squared loss, the smallest number of rows. For
    /// classes a twentieth of it applies.
    #[schemars(range(min = 0))]
    pub leaf_weight: f64,
    /// The share of the training rows, drawn by seed, that each tree is grown on.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub row_share: f64,
    /// The share of the columns, drawn by seed, that each tree is grown on.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub column_share: f64,
}

impl Default for Growth {
    fn default() -> Self {
        Self {
            trees: 2000,
            learning_rate: 0.05,
            leaves: 127,
            depth: 64,
            leaf_weight: 10.0,
            row_share: 0.8,
            column_share: 0.5,
        }
    }
}

impl Growth {
    /// Returns the growth with the smallest sum of a leaf for a task: the second derivative of a log loss is at most a
    /// quarter.
    pub(crate) fn for_task(&self, task: Task) -> Self {
        let factor = if task == Task::Regression { 1.0 } else { 0.05 };
        Self { leaf_weight: factor * self.leaf_weight, ..self.clone() }
    }
}
