//! `fet-trees`: boosted trees across parties, without a party's columns leaving it.
//!
//! In each step the primary sends the gradients of its loss, as with a network. Every other party grows small trees on its own
//! columns that fit these gradients, and answers their outputs: its *proposals*. The primary then grows the step's tree on its
//! own columns and the proposals, so that a tree combines columns of several parties.
//!
//! The primary sees a proposal's output of each row, one of at most `proposal_leaves` numbers, and never a column or a threshold
//! of another party. Outputs of two leaves are a column that is compared with a threshold, and many of them tell the order of a
//! column's values. For rows of an evaluation or a prediction, the primary sees the outputs of all trees.
//!
//! The other parties see the gradient of each training row in each step. Without label protection it tells them the labels: the
//! first gradient of a regression is the label, less the output of one tree. Differences of gradients also tell which rows
//! are in one leaf of the primary's tree, and gradients of 0 which rows are outside a region.
//!
//! Several proposals of a step fit the gradients in different rows: the first in all rows, the others in regions that
//! differ by the primary's columns. A proposal can so depend on the primary's columns before the two are combined. With
//! several classes, the first proposals fit the gradients of one class each; classes take turns if there are more of them.

mod columns;
mod grown;
mod primary;
mod proposals;
mod settings;

use fet_core::aggregator::{Aggregator, Role};
use fet_core::encoder::Encoder;
use fet_core::method::{AtOnce, Method, Plan, Primary, PrimaryContext, SecondaryContext, Slots};
use fet_core::optimizer::OptimizerSettings;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use rand::Rng;

use self::primary::GrowingPrimary;
use self::proposals::Proposals;
pub use self::settings::FetTreesSettings;
use crate::boosting::{Growth, PORTIONS};
use crate::gbdt::Pool;

/// Largest number of proposals of a run.
const MOST_PROPOSALS: usize = 1 << 20;

/// Largest number of columns: single precision holds these whole numbers.
const MOST_COLUMNS: usize = 1 << 24;

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
            optimizer: OptimizerSettings {
                learning_rate: growth.learning_rate,
                ..OptimizerSettings::default()
            },
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
        let FetTreesSettings { proposals, growth, .. } = &self.0;
        let own = context.key_columns + context.feature_columns;
        if context.parties * proposals * growth.trees + own > MOST_COLUMNS {
            let rule = format!(
                "must have a product with `growth.trees` and the {} other parties of at most {MOST_COLUMNS}, the number of \
                 columns that a tree can tell apart",
                context.parties
            );
            return Err(Violation::new("method.proposals", rule, proposals));
        }
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

    /// Random columns of a party, row by row; the primary is party 0.
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

    /// A primary and its other parties, without messages.
    struct Run {
        settings: FetTreesSettings,
        primary: Box<dyn Primary>,
        secondaries: Vec<Box<dyn Encoder>>,
        /// True if the memory is the parties' mean, as with `average`.
        averaged: bool,
        /// Output of the last step for the training rows.
        last: Vec<f32>,
    }

    impl Run {
        fn new(
            task: Task,
            outputs: usize,
            settings: &FetTreesSettings,
            parties: usize,
            averaged: bool,
        ) -> Self {
            let method = settings.build(&()).expect("sound settings");
            let device = &Device::flex().autodiff();
            let computation = Computation { fused: false, recompute: false };
            let encoder = Slot::<dyn Encoder>::with_defaults("mlp").expect("a plug-in");
            let primary = method.primary(&PrimaryContext {
                device,
                weights: stream(3, 0, Purpose::Weights, 0),
                key_columns: 1,
                feature_columns: 2,
                objective: Objective { task, outputs, minimum: 0.0, range: 1.0 },
                parties,
                positions: 1,
                memory_width: settings.proposals * if averaged { 1 } else { parties },
                computation,
            });
            let secondary = |party| {
                let context = SecondaryContext {
                    device,
                    weights: stream(3, party, Purpose::Weights, 0),
                    neighbours: 1,
                    key_columns: 1,
                    feature_columns: 2,
                    computation,
                };
                method.secondary(&encoder, &context).expect("it fits")
            };
            Self {
                settings: settings.clone(),
                primary: primary.expect("it fits"),
                secondaries: (1..=parties).map(secondary).collect(),
                averaged,
                last: Vec::new(),
            }
        }

        /// Returns the memory of these rows.
        fn memory(&mut self, rows: std::ops::Range<usize>, tracked: bool) -> Memory {
            let parties = self.secondaries.len();
            let parts = (1..).zip(&mut self.secondaries).map(|(party, secondary)| {
                let theirs = random(2, party);
                let batch = linked(&theirs[2 * rows.start..2 * rows.end]);
                secondary.forward(&batch, &mut Pass::evaluation(), tracked)
            });
            let parts: Vec<Tensor<3>> = parts.collect();
            let tensor = match self.averaged {
                true => Tensor::cat(parts, 1).sum_dim(1).div_scalar(parties as f64),
                false => Tensor::cat(parts, 2),
            };
            Memory { tensor, available: 1, similarities: Vec::new() }
        }

        fn train(&mut self, labels: &[f32]) {
            let own = random(2, 0);
            let training = batch(&own[..2 * TRAINING], &labels[..TRAINING]);
            let (steps, width) = (self.settings.growth.trees, self.settings.proposals);
            for step in 0..steps {
                let memory = self.memory(0..TRAINING, true);
                let outcome = self.primary.train(&training, Some(memory), &mut Pass::evaluation());
                assert_eq!(outcome.memory_gradient.is_some(), step + 1 < steps);
                if let Some(gradient) = outcome.memory_gradient {
                    for (party, secondary) in self.secondaries.iter_mut().enumerate() {
                        let part = if self.averaged { 0 } else { party };
                        secondary.backward(gradient.clone().narrow(2, part * width, width));
                    }
                }
                self.last = host(outcome.output);
            }
        }

        /// Returns the outputs of these rows by the saved model, with the parties' memory.
        fn predict(&mut self, rows: std::ops::Range<usize>) -> Vec<f32> {
            let saved = self.primary.learner().parameters().clone();
            self.primary.learner_mut().load(&saved).expect("its own parameters");
            for secondary in &mut self.secondaries {
                let saved = secondary.learner().parameters().clone();
                secondary.learner_mut().load(&saved).expect("its own parameters");
            }
            let own = random(2, 0);
            let new = batch(&own[2 * rows.start..2 * rows.end], &[]);
            let memory = self.memory(rows, false);
            host(self.primary.predict(&new, Some(memory)))
        }

        /// Returns the outputs of the rows outside the training rows, without the parties' memory.
        fn predict_without(&self) -> Vec<f32> {
            host(self.primary.predict(&batch(&random(2, 0)[2 * TRAINING..], &[]), None))
        }
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
        let mut run = Run::new(Task::Regression, 1, &settings(), 1, false);
        run.train(&labels);
        let [together, without] =
            [run.predict(TRAINING..ROWS), run.predict_without()].map(|found| error(&found));
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
            let mut run = Run::new(Task::Multiclass, 3, &settings, 1, false);
            run.train(&labels);
            let found = run.predict(TRAINING..ROWS);
            let right = found.chunks_exact(3).zip(&labels[TRAINING..]).filter(|(scores, label)| {
                let best = (0..3).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("three classes");
                best == **label as usize
            });
            let share = right.count() as f64 / (ROWS - TRAINING) as f64;
            assert!(share > 0.95, "{proposals}: {share}");
        }
    }

    /// A saved model gives the training rows the scores of the last step: the trees find the proposals of their step and
    /// party among those of all steps and parties.
    #[test]
    fn an_evaluation_of_the_training_rows_has_the_scores_of_training() {
        let label = |row: usize, task: Task| {
            let sum: f32 = (0..4).map(|party| random(2, party)[2 * row]).sum();
            if task == Task::Multiclass { (sum + 1.5).clamp(0.0, 2.0).floor() } else { sum }
        };
        for (task, outputs) in [(Task::Regression, 1), (Task::Multiclass, 3)] {
            let labels: Vec<f32> = (0..TRAINING).map(|row| label(row, task)).collect();
            for (parties, averaged) in [(1, false), (2, false), (3, false), (3, true)] {
                let growth = Growth { trees: 20, leaves: 8, ..settings().growth };
                let settings = FetTreesSettings { growth, ..settings() };
                let mut run = Run::new(task, outputs, &settings, parties, averaged);
                run.train(&labels);
                let found = run.predict(0..TRAINING);
                let wrong = found.iter().zip(&run.last).filter(|(a, b)| (*a - *b).abs() > 1e-5).count();
                assert_eq!(wrong, 0, "{task:?}, {parties} parties, averaged: {averaged}");
                assert!(
                    found.len() == outputs * TRAINING && found.iter().any(|&x| (x - found[0]).abs() > 0.01)
                );
            }
        }
    }

    /// The proposals after those of the outputs get the gradients of some rows, and no row is in two regions.
    #[test]
    fn a_region_has_gradients_of_its_rows_only() {
        let [own, theirs] = [random(2, 0), random(2, 1)];
        let labels: Vec<f32> = (0..ROWS).map(|row| own[2 * row] * theirs[2 * row + 1]).collect();
        for (proposals, regions) in [(1, 0), (2, 1), (4, 3)] {
            let settings = FetTreesSettings { proposals, ..settings() };
            let mut run = Run::new(Task::Regression, 1, &settings, 1, false);
            let memory = run.memory(0..TRAINING, true);
            let training = batch(&own[..2 * TRAINING], &labels[..TRAINING]);
            let outcome = run.primary.train(&training, Some(memory), &mut Pass::evaluation());
            let gradient = host(outcome.memory_gradient.expect("not the last step"));
            let rows = gradient.chunks_exact(proposals);
            assert!(rows.clone().all(|row| row[0] != 0.0), "the first proposal fits all rows");
            assert!(rows.clone().all(|row| row[1..].iter().all(|&value| value == 0.0 || value == row[0])));
            assert!(rows.clone().all(|row| row[1..].iter().filter(|&&value| value != 0.0).count() <= 1));
            let used = (1..proposals).filter(|&region| rows.clone().any(|row| row[region] != 0.0)).count();
            assert_eq!(used, regions, "{proposals} proposals");
        }
    }

    /// A gradient of -1 in half of the rows gives an output of 1: the other rows, with a gradient of 0, do not lower the mean.
    #[test]
    fn a_proposal_fits_the_rows_with_a_gradient() {
        let settings = FetTreesSettings { proposals: 1, ..settings() };
        let mut run = Run::new(Task::Regression, 1, &settings, 1, false);
        let first = host(run.memory(0..TRAINING, true).tensor);
        assert!(first.iter().all(|&output| output == 0.0), "there is no tree before the first gradient");
        let gradient: Vec<f32> = (0..TRAINING).map(|row| if row % 2 == 0 { -1.0 } else { 0.0 }).collect();
        let gradient = Tensor::from_data(TensorData::new(gradient, [TRAINING, 1, 1]), &Device::flex());
        run.secondaries[0].backward(gradient);
        let found = host(run.memory(0..TRAINING, true).tensor);
        assert!(found.iter().all(|&output| output == 1.0), "{:?}", &found[..4]);
    }

    /// Two proposals that fit the same gradients differ if each has its own sample of the rows, and only then.
    #[test]
    fn each_proposal_has_its_own_sample_of_the_rows() {
        for (proposal_rows, differ) in [(0.4, true), (1.0, false)] {
            let settings = FetTreesSettings { proposals: 2, proposal_rows, ..settings() };
            let mut run = Run::new(Task::Regression, 1, &settings, 1, false);
            run.memory(0..TRAINING, true);
            let noise = random(2, 5);
            let gradient: Vec<f32> = (0..TRAINING).flat_map(|row| [noise[row]; 2]).collect();
            let gradient = Tensor::from_data(TensorData::new(gradient, [TRAINING, 1, 2]), &Device::flex());
            run.secondaries[0].backward(gradient);
            let found = host(run.memory(0..TRAINING, true).tensor);
            assert_eq!(found.chunks_exact(2).any(|pair| pair[0] != pair[1]), differ, "{proposal_rows}");
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
