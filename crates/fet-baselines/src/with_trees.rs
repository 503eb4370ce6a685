//! `with-trees`: averages the predictions of another method with boosted trees on the primary's own columns.
//!
//! A network and trees make different errors, and their mean has a smaller error than either. The trees are grown once, on the training
//! rows, before the method's first step. They use the primary's data only and never leave it. They belong to the model: a run saves,
//! restores and uses them with it.

mod trees;

use std::cell::OnceCell;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::data::Task;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, Slots, TrainOutcome,
};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::optimizer::Moments;
use fet_core::parameters::{FlatGradient, ParameterError, Parameters, host};
use fet_core::registry::{Plugin, Recipe, Slot, Violation, schema_of_inner};
use fet_core::trainable::Learner;
use rand::Rng;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use self::trees::{Trees, check_size};
use crate::boosting::Growth;

/// Settings of `with-trees`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WithTreesSettings {
    /// The other method.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Method>,
    /// The share of the trees in a prediction.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// The growth of the trees.
    pub growth: Growth,
}

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner::<dyn Method>("The other method; its settings follow its kind.", |kind| {
        kind != KIND && !kind.starts_with("gbdt-") && !kind.starts_with("linear-")
    })
}

impl Default for WithTreesSettings {
    fn default() -> Self {
        let inner = Slot::with_defaults("fet-pool").expect("a crate that this one is built on registers it");
        Self { inner, share: 0.5, growth: Growth { trees: 500, leaves: 31, ..Growth::default() } }
    }
}

const KIND: &str = "with-trees";

impl Recipe<dyn Method> for WithTreesSettings {
    fn check(&self) -> Result<(), Violation> {
        check_size(&self.growth, 1)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        let inner = self.inner.build_inner(&())?;
        if inner.plan().at_once.is_some() || self.inner.kind() == KIND {
            let rule = "must be a method that trains step by step and does not have trees";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", self.inner.kind())));
        }
        Ok(Box::new(WithTrees { inner, share: self.share, growth: self.growth.clone() }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<WithTreesSettings>(
        KIND,
        "another method, averaged with boosted trees on the primary's own columns",
    )
}

struct WithTrees {
    inner: Box<dyn Method>,
    share: f64,
    growth: Growth,
}

impl Method for WithTrees {
    fn plan(&self) -> Plan {
        self.inner.plan()
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        self.inner.check(slots)
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let outputs = context.objective.outputs;
        check_size(&self.growth, outputs).map_err(|violation| violation.within("method"))?;
        let inner = self.inner.primary(&PrimaryContext { weights: context.weights.clone(), ..*context })?;
        let seed = context.weights.clone().next_u64();
        let trees = Trees::new(self.growth.clone(), context.objective, seed);
        Ok(Box::new(PrimaryWithTrees {
            inner,
            trees,
            share: self.share,
            objective: context.objective,
            combined: CombinedState::default(),
        }))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        self.inner.secondary(encoder, context)
    }
}

/// The other method's part, with trees.
struct PrimaryWithTrees {
    inner: Box<dyn Primary>,
    trees: Trees,
    share: f64,
    objective: Objective,
    combined: CombinedState,
}

/// Parameters of both parts for training and saving; recomputed after a change.
#[derive(Default)]
struct CombinedState {
    parameters: OnceCell<Parameters>,
    gradient: OnceCell<FlatGradient>,
    moments: OnceCell<Moments>,
}

impl PrimaryWithTrees {
    /// Mean of the activated outputs of the method and the trees.
    fn mean(&self, said: &[f32], scores: &[f64]) -> Vec<f32> {
        let share = self.share;
        let mean = |one: f64, other: f64| (1.0 - share) * one + share * other;
        let probability = |score: f64| 1.0 / (1.0 + (-score).exp());
        match self.objective.task {
            Task::Regression => vec![mean(f64::from(said[0]), scores[0]) as f32],
            Task::Binary => vec![mean(f64::from(said[0]), probability(scores[0])) as f32],
            Task::Multiclass => {
                let logits: Vec<f64> = said.iter().map(|&logit| f64::from(logit)).collect();
                let both = softmax(&logits).into_iter().zip(softmax(scores));
                both.map(|(one, other)| mean(one, other).max(1e-30).ln() as f32).collect()
            }
        }
    }
}

/// Returns the probabilities of logits.
fn softmax(logits: &[f64]) -> Vec<f64> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|logit| (logit - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

impl Learner for PrimaryWithTrees {
    fn parameters(&self) -> &Parameters {
        self.combined.parameters.get_or_init(|| {
            let mut all = self.inner.learner().parameters().clone();
            for segment in self.trees.parameters().segments() {
                all.push(
                    &segment.name,
                    &segment.shape,
                    &self.trees.parameters().values()[segment.range.clone()],
                );
            }
            all
        })
    }

    fn trained(&self) -> usize {
        self.inner.learner().trained()
    }

    fn gradient(&self) -> &FlatGradient {
        self.combined.gradient.get_or_init(|| {
            let mut gradient = self.inner.learner().gradient().clone();
            let (values, segments) = self.trees.sizes();
            if !gradient.present.is_empty() {
                gradient.values.extend(vec![0.0; values]);
                gradient.present.extend(vec![false; segments]);
            }
            gradient
        })
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        let (mut trees, mut others) = (Parameters::default(), Parameters::default());
        for segment in parameters.segments() {
            let part = if Trees::owns_parameter(&segment.name) { &mut trees } else { &mut others };
            part.push(&segment.name, &segment.shape, &parameters.values()[segment.range.clone()]);
        }
        self.combined = CombinedState::default();
        // Averaged parameters do not name the trees.
        if !trees.segments().is_empty() {
            self.trees.load(&trees)?;
        }
        self.inner.learner_mut().load(&others)
    }

    fn step(&mut self, learning_rate: f64) {
        self.combined = CombinedState::default();
        self.inner.learner_mut().step(learning_rate);
    }

    fn moments(&self) -> &Moments {
        self.combined.moments.get_or_init(|| {
            let mut moments = self.inner.learner().moments().clone();
            let (values, segments) = self.trees.sizes();
            if !moments.first.is_empty() {
                moments.first.extend(vec![0.0; values]);
                moments.second.extend(vec![0.0; values]);
                moments.steps.extend(vec![0; segments]);
            }
            moments
        })
    }

    fn restore(&mut self, mut moments: Moments) {
        let own = self.inner.learner().parameters();
        let (values, segments) = (own.values().len(), own.segments().len());
        moments.first.truncate(values);
        moments.second.truncate(values);
        moments.steps.truncate(segments);
        self.combined = CombinedState::default();
        self.inner.learner_mut().restore(moments);
    }
}

impl Primary for PrimaryWithTrees {
    fn learner(&self) -> &dyn Learner {
        self
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        self
    }

    fn begin(&mut self, all: &mut dyn FnMut() -> PrimaryBatch) {
        self.inner.begin(all);
        self.trees.grow(&all());
        self.combined = CombinedState::default();
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        self.combined = CombinedState::default();
        self.inner.train(batch, memory, pass)
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        let said = self.inner.predict(batch, memory);
        if !self.trees.are_grown() {
            return said;
        }
        let ([rows, outputs], device): ([usize; 2], Device) = (said.dims(), said.device());
        let said = host(said);
        let scores = self.trees.scores(batch);
        let mean = |(said, scores): (&[f32], &Vec<f64>)| self.mean(said, scores);
        let values: Vec<f32> = said.chunks(outputs).zip(&scores).flat_map(mean).collect();
        Tensor::from_data(TensorData::new(values, [rows, outputs]), &device)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use fet_core::encoder::Computation;
    use fet_core::rng::{Purpose, stream};
    use rand::RngExt;

    use super::*;
    use crate::boosting::{Ensemble, Examples, Table};
    use crate::gbdt::input_columns;

    fn with_trees(task: Task, device: &Device) -> Box<dyn Primary> {
        let text = "kind = 'with-trees'\nshare = 0.25\ngrowth = { trees = 40, leaves = 7 }\ninner = { kind = 'solo' }";
        let slot = Slot::<dyn Method>::from_table(text.parse().expect("TOML")).expect("settings");
        let outputs = if task == Task::Multiclass { 3 } else { 1 };
        let context = PrimaryContext {
            device: &device.clone().autodiff(),
            weights: stream(7, 0, Purpose::Weights, 0),
            key_columns: 1,
            feature_columns: 2,
            objective: Objective { task, outputs, minimum: 0.0, range: 1.0 },
            parties: 0,
            positions: 0,
            memory_width: 0,
            computation: Computation { fused: false, recompute: false },
        };
        slot.build(&()).expect("sound").primary(&context).expect("it fits")
    }

    /// Labels that follow from the first feature; the last column is constant.
    fn batch(task: Task, device: &Device) -> PrimaryBatch {
        let mut rng = stream(8, 0, Purpose::Linking, 0);
        let values: Vec<[f32; 2]> = (0..300).map(|_| [rng.random(), 1.0]).collect();
        let keys: Vec<f32> = (0..300).map(|_| rng.random()).collect();
        let label = |[x, _]: &[f32; 2]| match task {
            Task::Regression => 0.3 + 0.5 * x,
            Task::Binary => f32::from(u8::from(*x > 0.6)),
            Task::Multiclass => (3.0 * x).floor().min(2.0),
        };
        PrimaryBatch {
            labels: values.iter().map(label).collect(),
            weights: Vec::new(),
            keys: Tensor::from_data(TensorData::new(keys, [300, 1]), device),
            features: Tensor::from_data(TensorData::new(values.concat(), [300, 2]), device),
        }
    }

    /// A quarter of a prediction comes from the trees and the rest from the method.
    #[test]
    fn a_prediction_is_the_mean_of_both() {
        let device = Device::flex();
        let rows = batch(Task::Regression, &device);
        let mut primary = with_trees(Task::Regression, &device);
        let alone = host(primary.predict(&rows, None));
        primary.begin(&mut || rows.clone());
        let both = host(primary.predict(&rows, None));
        let growth = Growth { trees: 40, leaves: 7, ..Growth::default() };
        let objective = Objective { task: Task::Regression, outputs: 1, minimum: 0.0, range: 1.0 };
        let seed = stream(7, 0, Purpose::Weights, 0).next_u64();
        let columns = input_columns(&rows, None, &[]);
        let examples = Examples { columns: &columns, labels: &rows.labels, weights: &[] };
        let trees = Ensemble::grow(&growth, objective, seed, &examples);
        let mut scores = trees.base_scores(rows.labels.len());
        trees.add(&mut scores, &Table::from_columns(&columns), 0..growth.trees);
        let mut most = 0.0f64;
        for ((both, alone), score) in both.iter().zip(&alone).zip(&scores[0]) {
            let wanted = 0.75 * f64::from(*alone) + 0.25 * score;
            assert!((f64::from(*both) - wanted).abs() < 1e-6, "{both} {wanted}");
            most = most.max((f64::from(*alone) - score).abs());
        }
        assert!(most > 0.05, "trees and method predict different values");
    }

    #[test]
    fn trees_are_a_part_of_the_model() {
        let device = Device::flex();
        for task in [Task::Regression, Task::Binary, Task::Multiclass] {
            let of = batch(task, &device);
            let mut primary = with_trees(task, &device);
            primary.begin(&mut || of.clone());
            let outcome = primary.train(
                &PrimaryBatch {
                    keys: of.keys.clone().autodiff(),
                    features: of.features.clone().autodiff(),
                    ..of.clone()
                },
                None,
                &mut Pass::evaluation(),
            );
            assert!(outcome.loss.is_finite());
            primary.learner_mut().step(0.01);
            let said = host(primary.predict(&of, None));
            let (all, moments) =
                (primary.learner().parameters().clone(), primary.learner().moments().clone());
            assert_eq!(all.values().len(), primary.learner().gradient().values.len());
            assert_eq!(
                (moments.first.len(), moments.steps.len()),
                (all.values().len(), all.segments().len())
            );
            let mut other = with_trees(task, &device);
            assert_ne!(host(other.predict(&of, None)), said, "{task:?}");
            other.learner_mut().load(&all).expect("the same model");
            other.learner_mut().restore(moments.clone());
            assert_eq!(host(other.predict(&of, None)), said, "{task:?}");
            assert!(
                *other.learner().parameters() == all && *other.learner().moments() == moments,
                "{task:?}"
            );
        }
    }

    /// Averaging over the parties loads some parameters of the method alone.
    #[test]
    fn loads_a_part_of_the_parameters() {
        let device = Device::flex();
        let mut primary = with_trees(Task::Regression, &device);
        let rows = batch(Task::Regression, &device);
        primary.begin(&mut || rows.clone());
        let before = primary.learner().parameters().clone();
        let mut part = Parameters::default();
        let first = &before.segments()[0];
        part.push(&first.name, &first.shape, &before.values()[first.range.clone()]);
        primary.learner_mut().load(&part).expect("a part");
        assert!(*primary.learner().parameters() == before);
    }

    #[test]
    fn a_method_of_one_step_is_refused() {
        let inner = Slot::with_defaults("gbdt-solo").expect("a method");
        let refused = WithTreesSettings { inner, ..WithTreesSettings::default() }.build(&());
        let refused = refused.err().expect("refused").to_string();
        assert!(refused.contains("inner.kind") && refused.contains("gbdt-solo"), "{refused}");
    }
}
