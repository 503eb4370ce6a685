//! Settings of `fet-trees`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boosting::Growth;
use crate::gbdt::Pool;

/// Settings of `fet-trees`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FetTreesSettings {
    /// True if the primary queries the other parties. With false, the method is its own control variant: the
    /// difference is the contribution of the other parties.
    pub others: bool,
    /// Number of trees that each other party grows in a step. With fewer than the number of classes, the classes take
    /// turns.
    #[schemars(range(min = 1, max = 1024))]
    pub proposals: usize,
    /// The largest number of leaves of another party's tree.
    #[schemars(range(min = 2, max = 65_536))]
    pub proposal_leaves: usize,
    /// The share of the training rows that each tree of another party is grown on, drawn for each tree. With a lower
    /// share the trees fit less noise, because the primary's trees see their outputs for the other rows.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub proposal_rows: f64,
    /// The forms of another party's K linked records as columns of its trees.
    #[schemars(extend("x-rule" = "a list of at least one form, each named once"))]
    pub columns: Vec<Pool>,
    /// The growth of the primary's trees, one in each step and for each class. The share of columns, the depth and the
    /// weight of a leaf apply to the other parties' trees, too.
    pub growth: Growth,
}

impl Default for FetTreesSettings {
    fn default() -> Self {
        Self {
            others: true,
            proposals: 4,
            proposal_leaves: 16,
            proposal_rows: 0.4,
            columns: vec![Pool::Nearest, Pool::Weighted, Pool::Similarity],
            growth: Growth {
                trees: 800,
                learning_rate: 0.03,
                leaves: 31,
                column_share: 1.0,
                ..Growth::default()
            },
        }
    }
}
