//! `fet-trees`: boosted trees across parties, without a party's columns leaving it.
//!
//! In each step the primary sends the gradients of its loss, as with a network. Every other party grows small trees on its own
//! columns that fit these gradients, and answers their outputs: its *proposals*. The primary then grows the step's tree on its
//! own columns and the proposals, so that a tree combines columns of several parties.
//!
//! The primary sees a proposal's output of each row, a number of at most `proposal_leaves` different ones, and never a column or
//! a threshold of another party. The other parties see gradients, as in `fet` and `fet-pool`.
//!
//! Several proposals of a step fit the gradients in different rows: the first in all rows, the others in regions that
//! differ by the primary's columns. A proposal can so depend on the primary's columns before the two are combined. With
//! several classes each proposal fits the gradient of another class.

mod columns;
mod grown;
mod primary;
mod proposals;

use fet_core::aggregator::{Aggregator, Role};
use fet_core::encoder::Encoder;
use fet_core::method::{AtOnce, Method, Plan, Primary, PrimaryContext, SecondaryContext, Slots};
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::primary::GrowingPrimary;
use self::proposals::Proposals;
use crate::boosting::{Growth, PORTIONS};
use crate::gbdt::Pool;

/// Largest number of proposals of a run.
const MOST_PROPOSALS: usize = 1 << 20;

/// Settings of `fet-trees`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FetTreesSettings {
    /// True if the primary queries the other parties. With false, the method is its own control variant: the
    /// difference is the contribution of the other parties.
    pub others: bool,
    /// Number of trees that each other party grows in a step. With classes the number of classes is a good choice;
    /// with fewer, the classes take turns.
    #[schemars(range(min = 1, max = 1024))]
    pub proposals: usize,
    /// The largest number of leaves of another party's tree.
    #[schemars(range(min = 2, max = 65_536))]
    pub proposal_leaves: usize,
    /// The forms in which another party's trees see its K linked records.
    #[schemars(extend("x-rule" = "a list of at least one form, each named once"))]
    pub columns: Vec<Pool>,
    /// The growth of the primary's trees, one in each step. Shares and the weight of a leaf apply to the other parties'
    /// trees, too.
    pub growth: Growth,
}

impl Default for FetTreesSettings {
    fn default() -> Self {
        Self {
            others: true,
            proposals: 4,
            proposal_leaves: 16,
            columns: vec![Pool::Nearest, Pool::Weighted, Pool::Similarity],
            growth: Growth { trees: 500, leaves: 31, column_share: 1.0, ..Growth::default() },
        }
    }
}

impl Recipe<dyn Method> for FetTreesSettings {
    fn check(&self) -> Result<(), Violation> {
        Pool::check(&self.columns)?;
        let Growth { trees, .. } = self.growth;
        if !trees.is_multiple_of(PORTIONS) {
            let rule = format!("must be a multiple of {PORTIONS}, the number of evaluations");
            return Err(Violation::new("growth.trees", rule, trees));
        }
        if trees * self.proposals > MOST_PROPOSALS {
            let rule = format!("must have a product with `growth.trees` of at most {MOST_PROPOSALS}");
            return Err(Violation::new("proposals", rule, self.proposals));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(FetTrees(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<FetTreesSettings>(
        "fet-trees",
        "boosted trees of all parties: the primary's trees combine its columns with the outputs of the others' trees",
    )
}

struct FetTrees(FetTreesSettings);

impl Method for FetTrees {
    fn plan(&self) -> Plan {
        let FetTreesSettings { others, proposals, growth, .. } = &self.0;
        Plan {
            secondaries: *others,
            encoder: "mlp",
            aggregator: "concat",
            width: *proposals,
            evaluation_width: Some(proposals * growth.trees),
            pooled: true,
            learning_rate: growth.learning_rate,
            at_once: Some(AtOnce { epochs: PORTIONS, steps: growth.trees / PORTIONS }),
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if slots.aggregator.uses_similarities() || matches!(slots.aggregator.role(), Role::Sum(_)) {
            let rule = "must combine the parties' numbers without their similarities, as \"concat\" and \"average\" do, for \
                        the method \"fet-trees\"";
            return Err(slots.refuse::<dyn Aggregator>(rule));
        }
        if !slots.privacy.is_identity() {
            let rule = "must be \"none\" for the method \"fet-trees\": its many small releases would need much noise";
            return Err(slots.refuse::<dyn PrivacyMechanism>(rule));
        }
        Ok(())
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        Ok(Box::new(GrowingPrimary::new(&self.0, context)))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Ok(Box::new(Proposals::new(&self.0, context.weights.clone().next_u64())))
    }
}
