//! `with-trees` and `with-linear`: the predictions of another method, averaged with those of a model on the primary's own columns.
//!
//! A network and trees make different errors, and their mean has a smaller error than either. The model is fitted once, to the
//! training rows, before the method's first step. It uses the primary's data only and never leaves it. It belongs to the run's
//! model: a run saves, restores and uses it with the method.

mod column_model;
mod linear;
mod share;
mod trees;

use std::cell::OnceCell;
use std::collections::BTreeMap;

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

use self::column_model::ColumnModel;
use self::linear::Regression;
use self::share::CurrentShare;
pub use self::share::Share;
use self::trees::{Trees, check_size};
use crate::boosting::Growth;

/// Settings of `with-trees`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WithTreesSettings {
    /// The other method.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Method>,
    /// The share of the trees in a prediction: a number, or "fitted" for the share and the number of trees, in steps of a
    /// twentieth, that fit the validation rows best, after every epoch. Few validation rows leave the share near one half.
    /// The validation rows then choose the epoch, the share and the number, so that their scores are slightly too good;
    /// the test rows take no part.
    pub share: Share,
    /// The growth of the trees.
    pub growth: Growth,
}

/// Settings of `with-linear`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WithLinearSettings {
    /// The other method.
    #[schemars(schema_with = "inner")]
    pub inner: Slot<dyn Method>,
    /// The share of the linear model in a prediction: a number, or "fitted" for the share that fits the validation rows
    /// best, after every epoch. Few validation rows leave the share near one half. The validation rows then choose the
    /// epoch and the share, so that their scores are slightly too good; the test rows take no part.
    pub share: Share,
    /// The penalty on the squared weights of standardised columns, as in `linear-solo`.
    #[schemars(range(max = 100), extend("exclusiveMinimum" = 0))]
    pub penalty: f64,
}

fn inner(_: &mut SchemaGenerator) -> Schema {
    schema_of_inner::<dyn Method>("The other method; its settings follow its kind.", |kind| {
        let at_once = kind == "fet-trees" || kind.starts_with("gbdt-") || kind.starts_with("linear-");
        !KINDS.contains(&kind) && !at_once
    })
}

fn default_inner() -> Slot<dyn Method> {
    Slot::with_defaults("fet-pool").expect("a crate that this one is built on registers it")
}

impl Default for WithTreesSettings {
    fn default() -> Self {
        let growth = Growth { trees: 500, leaves: 31, ..Growth::default() };
        Self { inner: default_inner(), share: Share::default(), growth }
    }
}

impl Default for WithLinearSettings {
    fn default() -> Self {
        Self { inner: default_inner(), share: Share::default(), penalty: 1e-3 }
    }
}

const KINDS: [&str; 2] = ["with-trees", "with-linear"];

impl Recipe<dyn Method> for WithTreesSettings {
    fn check(&self) -> Result<(), Violation> {
        check_size(&self.growth, 1)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Mixed::build(&self.inner, self.share, Partner::Trees(self.growth.clone()))
    }
}

impl Recipe<dyn Method> for WithLinearSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Mixed::build(&self.inner, self.share, Partner::Linear { penalty: self.penalty })
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<WithTreesSettings>(
        KINDS[0],
        "another method, averaged with boosted trees on the primary's own columns",
    )
}

inventory::submit! {
    Plugin::<dyn Method>::new::<WithLinearSettings>(
        KINDS[1],
        "another method, averaged with linear or logistic regression on the primary's own columns",
    )
}

/// Settings of the model that the other method is averaged with.
#[derive(Debug, Clone)]
enum Partner {
    Trees(Growth),
    Linear { penalty: f64 },
}

impl Partner {
    /// Makes the model, not yet fitted; `seed` draws its samples of rows and columns.
    fn model(&self, objective: Objective, seed: u64) -> Result<Box<dyn ColumnModel>, Violation> {
        Ok(match self {
            Self::Trees(growth) => {
                check_size(growth, objective.outputs).map_err(|violation| violation.within("method"))?;
                Box::new(Trees::new(growth.clone(), objective, seed))
            }
            Self::Linear { penalty } => Box::new(Regression::new(*penalty, objective)),
        })
    }
}

struct Mixed {
    inner: Box<dyn Method>,
    share: Share,
    partner: Partner,
}

impl Mixed {
    fn build(inner: &Slot<dyn Method>, share: Share, partner: Partner) -> Result<Box<dyn Method>, Violation> {
        let method = inner.build_inner(&())?;
        if method.plan().at_once.is_some() || KINDS.contains(&inner.kind()) {
            let rule = "must be a method that trains step by step and is not averaged with a model itself";
            return Err(Violation::new("inner.kind", rule, format!("\"{}\"", inner.kind())));
        }
        Ok(Box::new(Self { inner: method, share, partner }))
    }
}

impl Method for Mixed {
    fn plan(&self) -> Plan {
        self.inner.plan()
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        self.inner.check(slots)
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let objective = context.objective;
        let partner = self.partner.model(objective, context.weights.clone().next_u64())?;
        let inner = self.inner.primary(&PrimaryContext { weights: context.weights.clone(), ..*context })?;
        let share = CurrentShare::new(self.share, partner.portions());
        Ok(Box::new(MixedPrimary { inner, partner, share, objective, combined: CombinedState::default() }))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        self.inner.secondary(encoder, context)
    }
}

/// The other method's part, with the model on the primary's columns.
struct MixedPrimary {
    inner: Box<dyn Primary>,
    partner: Box<dyn ColumnModel>,
    share: CurrentShare,
    objective: Objective,
    combined: CombinedState,
}

/// Parameters of all parts for training and saving; recomputed after a change.
#[derive(Default)]
struct CombinedState {
    parameters: OnceCell<Parameters>,
    gradient: OnceCell<FlatGradient>,
    moments: OnceCell<Moments>,
}

impl MixedPrimary {
    /// Returns the numbers of values and of segments that the optimiser does not train.
    fn untrained(&self) -> (usize, usize) {
        let parts = [self.partner.parameters(), self.share.parameters()];
        let sum = |count: fn(&Parameters) -> usize| parts.into_iter().map(count).sum();
        (sum(|part| part.values().len()), sum(|part| part.segments().len()))
    }

    /// Returns the means of the method's activated outputs and the fitted model's, [n, outputs].
    fn mix(&self, outputs: Tensor<2>, scores: &[Vec<f64>]) -> Tensor<2> {
        let ([rows, width], device): ([usize; 2], Device) = (outputs.dims(), outputs.device());
        let (outputs, share) = (host(outputs), self.share.value());
        let mean = |one: f64, other: f64| (1.0 - share) * one + share * other;
        let mut values = Vec::with_capacity(outputs.len());
        for (row, output) in outputs.chunks(width).enumerate() {
            let one = probabilities(self.objective.task, output.iter().map(|&x| f64::from(x)).collect());
            let other = self.partner_output(scores, row);
            values.extend(one.into_iter().zip(other).map(|(one, other)| match self.objective.task {
                Task::Regression | Task::Binary => mean(one, other) as f32,
                Task::Multiclass => mean(one, other).max(SMALLEST).ln() as f32,
            }));
        }
        Tensor::from_data(TensorData::new(values, [rows, width]), &device)
    }

    /// Returns the fitted model's prediction for a row: a scaled label, the probability of class 1, or one of each class.
    fn partner_output(&self, scores: &[Vec<f64>], row: usize) -> Vec<f64> {
        let of_row = || scores.iter().map(|scores| scores[row]);
        match self.objective.task {
            Task::Binary => of_row().map(|score| 1.0 / (1.0 + (-score).exp())).collect(),
            task => probabilities(task, of_row().collect()),
        }
    }
}

/// Smallest probability of a class in a mean.
const SMALLEST: f64 = 1e-30;

/// Returns the prediction of activated outputs: probabilities of classes, or the outputs of another task.
fn probabilities(task: Task, outputs: Vec<f64>) -> Vec<f64> {
    if task != Task::Multiclass {
        return outputs;
    }
    let most = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = outputs.iter().map(|logit| (logit - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// Appends all parameters of `part` to `all`.
fn append(all: &mut Parameters, part: &Parameters) {
    for segment in part.segments() {
        all.push(&segment.name, &segment.shape, &part.values()[segment.range.clone()]);
    }
}

impl Learner for MixedPrimary {
    fn parameters(&self) -> &Parameters {
        self.combined.parameters.get_or_init(|| {
            let mut all = self.inner.learner().parameters().clone();
            append(&mut all, self.partner.parameters());
            append(&mut all, self.share.parameters());
            all
        })
    }

    fn trained(&self) -> usize {
        self.inner.learner().trained()
    }

    fn gradient(&self) -> &FlatGradient {
        self.combined.gradient.get_or_init(|| {
            let mut gradient = self.inner.learner().gradient().clone();
            let (values, segments) = self.untrained();
            if !gradient.present.is_empty() {
                gradient.values.extend(vec![0.0; values]);
                gradient.present.extend(vec![false; segments]);
            }
            gradient
        })
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        let mut parts = [Parameters::default(), Parameters::default(), Parameters::default()];
        let [partner, share, inner] = &mut parts;
        for segment in parameters.segments() {
            let has = |part: &Parameters| part.get(&segment.name).is_some();
            let part = match (has(self.partner.parameters()), has(self.share.parameters())) {
                (true, _) => &mut *partner,
                (_, true) => &mut *share,
                _ => &mut *inner,
            };
            part.push(&segment.name, &segment.shape, &parameters.values()[segment.range.clone()]);
        }
        self.combined = CombinedState::default();
        // Averaged parameters name neither the fitted model nor its share.
        if !partner.segments().is_empty() {
            self.partner.load(partner)?;
        }
        self.share.load(share)?;
        self.inner.learner_mut().load(inner)
    }

    fn step(&mut self, learning_rate: f64) {
        self.combined = CombinedState::default();
        self.inner.learner_mut().step(learning_rate);
    }

    fn moments(&self) -> &Moments {
        self.combined.moments.get_or_init(|| {
            let mut moments = self.inner.learner().moments().clone();
            let (values, segments) = self.untrained();
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

impl Primary for MixedPrimary {
    fn learner(&self) -> &dyn Learner {
        self
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        self
    }

    fn begin(&mut self, all: &mut dyn FnMut() -> PrimaryBatch) {
        self.inner.begin(all);
        self.partner.fit(&all());
        self.combined = CombinedState::default();
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        self.combined = CombinedState::default();
        self.inner.train(batch, memory, pass)
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        let output = self.inner.predict(batch, memory);
        if !self.partner.is_fitted() {
            return output;
        }
        self.mix(output, &self.partner.scores(batch, self.share.portions()))
    }

    fn predict_for_fit(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        if self.share.is_fitted() { self.inner.predict(batch, memory) } else { self.predict(batch, memory) }
    }

    fn fit_to_validation(&mut self, all: &mut dyn FnMut() -> PrimaryBatch, output: Tensor<2>) -> Tensor<2> {
        if !self.share.is_fitted() || !self.partner.is_fitted() {
            return output;
        }
        let rows = all();
        let mut scores = self.partner.scores_by_portions(&rows);
        let width = output.dims()[1];
        let outputs = host(output.clone());
        let of_class = |prediction: &[f64], label: f32| match self.objective.task {
            Task::Regression => prediction[0] - f64::from(label),
            Task::Binary if label < 0.5 => 1.0 - prediction[0],
            Task::Binary => prediction[0],
            Task::Multiclass => prediction[label as usize],
        };
        let own: Vec<f64> = outputs
            .chunks(width)
            .zip(&rows.labels)
            .map(|(output, &label)| {
                let outputs = output.iter().map(|&x| f64::from(x)).collect();
                of_class(&probabilities(self.objective.task, outputs), label)
            })
            .collect();
        let pairs = |scores: &Vec<Vec<f64>>| {
            let both = own.iter().zip(&rows.labels).enumerate();
            both.map(|(row, (own, &label))| [*own, of_class(&self.partner_output(scores, row), label)])
                .collect()
        };
        let by_portions: Vec<Vec<[f64; 2]>> = scores.iter().map(pairs).collect();
        self.share.fit(self.objective.task, &by_portions, &rows.weights);
        self.combined = CombinedState::default();
        let scores = scores.swap_remove(self.share.portions() - 1);
        self.mix(output, &scores)
    }

    fn fitted_settings(&self, parameters: &Parameters) -> BTreeMap<String, f64> {
        let portions = self.share.fitted_portions(parameters);
        let of_partner = portions.and_then(|portions| self.partner.setting(portions));
        self.share.setting(parameters).into_iter().chain(of_partner).collect()
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
    use crate::linear::{Standardised, Weights};

    const TREES: &str =
        "kind = 'with-trees'\ngrowth = { trees = 40, leaves = 7 }\ninner = { kind = 'solo' }\n";
    const LINEAR: &str = "kind = 'with-linear'\npenalty = 0.01\ninner = { kind = 'solo' }\n";
    const SHARES: [&str; 2] = ["share = 0.25", "share = 'fitted'"];
    const TASKS: [Task; 3] = [Task::Regression, Task::Binary, Task::Multiclass];

    fn objective(task: Task) -> Objective {
        Objective { task, outputs: if task == Task::Multiclass { 3 } else { 1 }, minimum: 0.0, range: 1.0 }
    }

    fn mixed(kind: &str, share: &str, task: Task, device: &Device) -> Box<dyn Primary> {
        let table = format!("{share}\n{kind}").parse().expect("TOML");
        let slot = Slot::<dyn Method>::from_table(table).expect("settings");
        let context = PrimaryContext {
            device: &device.clone().autodiff(),
            weights: stream(7, 0, Purpose::Weights, 0),
            key_columns: 1,
            feature_columns: 2,
            objective: objective(task),
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

    /// The first 200 rows of a batch, or the others.
    fn half(of: &PrimaryBatch, first: bool) -> PrimaryBatch {
        let range = if first { 0..200 } else { 200..300 };
        PrimaryBatch {
            labels: of.labels[range.clone()].to_vec(),
            weights: Vec::new(),
            keys: of.keys.clone().slice([range.clone(), 0..1]),
            features: of.features.clone().slice([range, 0..2]),
        }
    }

    /// A quarter of a prediction comes from the fitted model and the rest from the method.
    #[test]
    fn prediction_is_the_mean_of_both() {
        let device = Device::flex();
        let rows = batch(Task::Regression, &device);
        let columns = input_columns(&rows, None, &[]);
        let of_trees = || {
            let growth = Growth { trees: 40, leaves: 7, ..Growth::default() };
            let seed = stream(7, 0, Purpose::Weights, 0).next_u64();
            let examples = Examples { columns: &columns, labels: &rows.labels, weights: &[] };
            let trees = Ensemble::grow(&growth, objective(Task::Regression), seed, &examples);
            let mut scores = trees.base_scores(rows.labels.len());
            trees.add(&mut scores, &Table::from_columns(&columns), 0..growth.trees);
            scores
        };
        let of_regression = || {
            let (mut model, mut weights) = (Vec::new(), Weights::new(1));
            let standardised = Standardised::new(&columns, &rows.labels, &[]);
            standardised.fit(objective(Task::Regression), &mut model, 0.01);
            weights.set(&standardised, &model);
            weights.scores(&columns)
        };
        for (kind, scores) in [(TREES, of_trees()), (LINEAR, of_regression())] {
            let mut primary = mixed(kind, SHARES[0], Task::Regression, &device);
            let alone = host(primary.predict(&rows, None));
            primary.begin(&mut || rows.clone());
            let both = host(primary.predict(&rows, None));
            let mut most = 0.0f64;
            for ((both, alone), score) in both.iter().zip(&alone).zip(&scores[0]) {
                let wanted = 0.75 * f64::from(*alone) + 0.25 * score;
                assert!((f64::from(*both) - wanted).abs() < 1e-6, "{kind}: {both} {wanted}");
                most = most.max((f64::from(*alone) - score).abs());
            }
            assert!(most > 0.05, "{kind}: both predict different values");
        }
    }

    #[test]
    fn fitted_model_is_a_part_of_the_model() {
        let device = Device::flex();
        let cases = [TREES, LINEAR].into_iter().flat_map(|kind| SHARES.map(|share| (kind, share)));
        for ((kind, share), task) in cases.flat_map(|case| TASKS.map(|task| (case, task))) {
            let name = format!("{kind}{share} {task:?}");
            let of = batch(task, &device);
            let mut primary = mixed(kind, share, task, &device);
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
            let for_fit = primary.predict_for_fit(&of, None);
            let fitted = host(primary.fit_to_validation(&mut || of.clone(), for_fit));
            let outputs = host(primary.predict(&of, None));
            assert_eq!(fitted, outputs, "{name}");
            let (all, moments) =
                (primary.learner().parameters().clone(), primary.learner().moments().clone());
            assert_eq!(all.values().len(), primary.learner().gradient().values.len());
            assert_eq!(
                (moments.first.len(), moments.steps.len()),
                (all.values().len(), all.segments().len())
            );
            let mut other = mixed(kind, share, task, &device);
            assert_eq!(other.learner().parameters().segments().len(), all.segments().len(), "{name}");
            assert_ne!(host(other.predict(&of, None)), outputs, "{name}");
            other.learner_mut().load(&all).expect("the same model");
            other.learner_mut().restore(moments.clone());
            assert_eq!(host(other.predict(&of, None)), outputs, "{name}");
            assert!(*other.learner().parameters() == all && *other.learner().moments() == moments, "{name}");
        }
    }

    /// The loss on the validation rows is at most that of the method, of the fitted model and of their mean.
    #[test]
    fn fitted_share_has_the_smallest_loss_on_the_validation_rows() {
        let device = Device::flex();
        for (kind, task) in [TREES, LINEAR].into_iter().flat_map(|kind| TASKS.map(|task| (kind, task))) {
            let all = batch(task, &device);
            let (training, validation) = (half(&all, true), half(&all, false));
            let loss = |output: Tensor<2>| {
                host(objective(task).loss(output, &validation.labels, &[]).without_autodiff())[0]
            };
            let mut primary = mixed(kind, SHARES[1], task, &device);
            primary.begin(&mut || training.clone());
            let for_fit = primary.predict_for_fit(&validation, None);
            let fitted = loss(primary.fit_to_validation(&mut || validation.clone(), for_fit));
            let parameters = primary.learner().parameters().clone();
            let share = primary.fitted_settings(&parameters)["share"];
            assert!((0.0..=1.0).contains(&share) && share != 0.5, "{kind} {task:?}: {share}");
            for given in ["share = 0", "share = 0.5", "share = 1", "share = 0.9"] {
                let mut other = mixed(kind, given, task, &device);
                other.begin(&mut || training.clone());
                let found = loss(other.predict(&validation, None));
                assert!(
                    fitted <= found + 1e-6,
                    "{kind} {task:?}: {fitted} with {share}, {found} with {given}"
                );
                assert!(other.fitted_settings(other.learner().parameters()).is_empty());
            }
        }
    }

    /// Averaging over the parties loads some parameters of the method alone.
    #[test]
    fn loads_a_part_of_the_parameters() {
        let device = Device::flex();
        for kind in [TREES, LINEAR] {
            let mut primary = mixed(kind, SHARES[1], Task::Regression, &device);
            let rows = batch(Task::Regression, &device);
            primary.begin(&mut || rows.clone());
            let before = primary.learner().parameters().clone();
            let mut part = Parameters::default();
            let first = &before.segments()[0];
            part.push(&first.name, &first.shape, &before.values()[first.range.clone()]);
            primary.learner_mut().load(&part).expect("a part");
            assert!(*primary.learner().parameters() == before, "{kind}");
        }
    }

    #[test]
    fn method_of_one_step_is_refused() {
        let inner = || Slot::with_defaults("gbdt-solo").expect("a method");
        let trees = WithTreesSettings { inner: inner(), ..WithTreesSettings::default() }.build(&());
        let linear = WithLinearSettings { inner: inner(), ..WithLinearSettings::default() }.build(&());
        for refused in [trees, linear] {
            let refused = refused.err().expect("refused").to_string();
            assert!(refused.contains("inner.kind") && refused.contains("gbdt-solo"), "{refused}");
        }
    }
}
