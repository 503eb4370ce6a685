//! `fet-trees`: boosted trees across parties, without a party's columns leaving it.
//!
//! In each step the primary sends the gradients of its loss, as with a network. Every other party grows small trees on its own
//! columns that fit these gradients, and answers their outputs: its *proposals*. The primary then grows the step's tree on its
//! own columns and the proposals, so that a tree combines columns of several parties.
//!
//! The primary sees a proposal's output of each row, one of at most `proposal_leaves` numbers, and never a column or a threshold
//! of another party. The other parties see the gradient of each training row. Without label protection it tells them the
//! labels: the first gradient of a regression is the label itself, up to a constant.
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
    /// The forms of another party's K linked records as columns of its trees.
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

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Int, Tensor, TensorData};
    use fet_core::data::Task;
    use fet_core::encoder::{Computation, NeighbourBatch};
    use fet_core::method::{Memory, PrimaryBatch};
    use fet_core::model::Pass;
    use fet_core::objective::Objective;
    use fet_core::parameters::host;
    use fet_core::rng::{Purpose, stream};
    use rand::RngExt;

    use super::*;

    const ROWS: usize = 1500;
    const TRAINING: usize = 1000;

    /// Random columns of the primary and of one other party, row by row.
    fn random(columns: usize, party: usize) -> Vec<f32> {
        let mut rng = stream(3, party, Purpose::Source, 0);
        (0..ROWS * columns).map(|_| rng.random::<f32>() - 0.5).collect()
    }

    fn tensor(values: &[f32], width: usize) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len() / width, width]), &Device::flex())
    }

    /// Each row is linked with the record of its number.
    fn linked(features: &[f32]) -> NeighbourBatch {
        let rows = features.len() / 2;
        let device = Device::flex();
        NeighbourBatch {
            keys: Tensor::zeros([rows, 1], &device),
            features: tensor(features, 2),
            slots: Tensor::<1, Int>::arange(0..rows as i64, &device),
            rows,
            neighbours: 1,
            available: 1,
            similarities: None,
            listed: None,
        }
    }

    fn batch(features: &[f32], labels: &[f32]) -> PrimaryBatch {
        let rows = features.len() / 2;
        let (labels, weights) = (labels.to_vec(), Vec::new());
        PrimaryBatch {
            keys: Tensor::zeros([rows, 1], &Device::flex()),
            features: tensor(features, 2),
            labels,
            weights,
        }
    }

    /// Trains on a label that follows from columns of both parties together, and returns the outputs of the other rows
    /// with the parties' memory and without it.
    fn trained(task: Task, outputs: usize, settings: &FetTreesSettings, labels: &[f32]) -> [Vec<f32>; 2] {
        let [own, theirs] = [random(2, 0), random(2, 1)];
        let method = settings.build(&()).expect("sound settings");
        let device = &Device::flex().autodiff();
        let computation = Computation { fused: false, recompute: false };
        let mut primary = method
            .primary(&PrimaryContext {
                device,
                weights: stream(3, 0, Purpose::Weights, 0),
                key_columns: 1,
                feature_columns: 2,
                objective: Objective { task, outputs, minimum: 0.0, range: 1.0 },
                parties: 1,
                positions: 1,
                memory_width: settings.proposals,
                computation,
            })
            .expect("it fits");
        let encoder = Slot::<dyn Encoder>::with_defaults("mlp").expect("a plug-in");
        let context = SecondaryContext {
            device,
            weights: stream(3, 1, Purpose::Weights, 0),
            neighbours: 1,
            key_columns: 1,
            feature_columns: 2,
            computation,
        };
        let mut secondary = method.secondary(&encoder, &context).expect("it fits");
        let training = batch(&own[..2 * TRAINING], &labels[..TRAINING]);
        let steps = settings.growth.trees;
        for _ in 0..steps {
            let tensor = secondary.forward(&linked(&theirs[..2 * TRAINING]), &mut Pass::evaluation(), true);
            assert_eq!(tensor.dims(), [TRAINING, 1, settings.proposals]);
            let memory = Memory { tensor, available: 1, similarities: Vec::new() };
            let outcome = primary.train(&training, Some(memory), &mut Pass::evaluation());
            secondary.backward(outcome.memory_gradient.expect("there was a memory"));
        }
        let plan = method.plan();
        assert_eq!(plan.at_once.map(|at_once| at_once.epochs * at_once.steps), Some(steps));
        // A saved model predicts the same bits.
        let saved = [primary.learner().parameters().clone(), secondary.learner().parameters().clone()];
        primary.learner_mut().load(&saved[0]).expect("its own parameters");
        secondary.learner_mut().load(&saved[1]).expect("its own parameters");
        let new = batch(&own[2 * TRAINING..], &[]);
        let tensor = secondary.forward(&linked(&theirs[2 * TRAINING..]), &mut Pass::evaluation(), false);
        assert_eq!(Some(tensor.dims()[2]), plan.evaluation_width);
        let memory = Memory { tensor, available: 1, similarities: Vec::new() };
        [Some(memory), None].map(|memory| host(primary.predict(&new, memory)))
    }

    fn settings() -> FetTreesSettings {
        let growth = Growth { trees: 100, learning_rate: 0.1, ..FetTreesSettings::default().growth };
        FetTreesSettings { growth, ..FetTreesSettings::default() }
    }

    /// The label is a product of columns of two parties, so that neither column alone says anything about it. A model of
    /// sums over parties has the error of a constant, 1/12 · 16 · 1/12, whose root is 0.33.
    #[test]
    fn trees_combine_columns_of_two_parties() {
        let [own, theirs] = [random(2, 0), random(2, 1)];
        let label = |row: usize| 4.0 * own[2 * row] * theirs[2 * row + 1];
        let labels: Vec<f32> = (0..ROWS).map(label).collect();
        let error = |found: &[f32]| {
            let squares = found.iter().zip(&labels[TRAINING..]).map(|(a, b)| (a - b).powi(2));
            (squares.sum::<f32>() / found.len() as f32).sqrt()
        };
        let [together, without] =
            trained(Task::Regression, 1, &settings(), &labels).map(|found| error(&found));
        assert!(together < 0.17, "{together}");
        assert!(without > 0.3, "{without}");
    }

    /// With fewer proposals than classes, the classes take turns.
    #[test]
    fn classes_are_learned_with_any_number_of_proposals() {
        let [own, theirs] = [random(2, 0), random(2, 1)];
        let label = |row: usize| f32::from(u8::from(own[2 * row] > 0.0) + u8::from(theirs[2 * row] > 0.0));
        let labels: Vec<f32> = (0..ROWS).map(label).collect();
        for proposals in [1, 2, 4] {
            let settings = FetTreesSettings { proposals, ..settings() };
            let [found, _] = trained(Task::Multiclass, 3, &settings, &labels);
            let right = found.chunks_exact(3).zip(&labels[TRAINING..]).filter(|(scores, label)| {
                let best = (0..3).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("three classes");
                best == **label as usize
            });
            let share = right.count() as f64 / (ROWS - TRAINING) as f64;
            assert!(share > 0.95, "{proposals}: {share}");
        }
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let growth = |trees| Growth { trees, ..FetTreesSettings::default().growth };
        for (settings, field) in [
            (FetTreesSettings { columns: Vec::new(), ..settings() }, "columns"),
            (FetTreesSettings { growth: growth(30), ..settings() }, "growth.trees"),
            (FetTreesSettings { growth: growth(100_000), proposals: 11, ..settings() }, "proposals"),
        ] {
            let violation = settings.check().expect_err("it does not fit");
            assert!(violation.to_string().contains(field), "{violation}");
        }
    }
}
