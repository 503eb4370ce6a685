//! Growth of boosted trees.

use fet_core::data::Task;
use forust_ml::GradientBooster;
use forust_ml::gradientbooster::GrowPolicy;
use forust_ml::objective::ObjectiveType;
use forust_ml::sampler::SampleMethod;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PORTIONS;

/// Growth of gradient-boosted trees: from histograms, leaf by leaf, the best leaf first. The defaults work well on tables of some ten
/// thousand rows (docs/results/accuracy.md, "Boosted trees and LightGBM").
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Growth {
    /// The number of trees; with several classes, of each class.
    #[schemars(range(min = PORTIONS))]
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
    pub(super) fn booster(&self, task: Task, seed: u64) -> GradientBooster {
        let loss = if task == Task::Regression { ObjectiveType::SquaredLoss } else { ObjectiveType::LogLoss };
        // The sum of second derivatives of a log loss is at most a quarter of the rows.
        let leaf_weight = if task == Task::Regression { self.leaf_weight } else { self.leaf_weight / 20.0 };
        let mut booster = GradientBooster::default()
            .set_objective_type(loss)
            .set_iterations(self.trees)
            .set_learning_rate(self.learning_rate as f32)
            .set_max_depth(self.depth)
            .set_max_leaves(self.leaves)
            .set_min_leaf_weight(leaf_weight as f32)
            .set_l2(0.0)
            .set_colsample_bytree(self.column_share)
            .set_seed(seed);
        booster.grow_policy = GrowPolicy::LossGuide;
        match self.row_share < 1.0 {
            true => booster.set_subsample(self.row_share as f32).set_sample_method(SampleMethod::Random),
            false => booster,
        }
    }
}
