//! `linear-solo` and `linear-top1`: linear regression and logistic regression, the simplest baselines for tables.
//!
//! `linear-solo` sees the primary's own keys and features. `linear-top1` adds the features of every secondary's nearest
//! record: it sends raw columns to the primary and protects no data.
//!
//! Epoch e of the report uses the e-th of 20 penalties, from the strongest to the weakest, so that the validation rows
//! choose the penalty, as they choose the epoch of every method.

mod fit;

use burn::tensor::Tensor;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Neighbours, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, Slots,
    TrainOutcome,
};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::optimizer::Moments;
use fet_core::parameters::{FlatGradient, ParameterError, Parameters, host};
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::trainable::Learner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::fit::Rows;
use crate::gbdt::{Columns, Pool, activated, check_raw_columns, input_columns};

/// Number of penalties. The run validates each of them.
const PENALTIES: usize = 20;

/// Penalties of a linear model on the squared weights of standardised columns.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Penalties {
    /// The strongest penalty; the weights are then close to 0.
    #[schemars(range(max = 100), extend("exclusiveMinimum" = 0))]
    pub strongest: f64,
    /// The weakest penalty; the weights are then close to those without a penalty.
    #[schemars(range(max = 100), extend("exclusiveMinimum" = 0))]
    pub weakest: f64,
}

impl Default for Penalties {
    fn default() -> Self {
        Self { strongest: 10.0, weakest: 1e-5 }
    }
}

impl Penalties {
    fn check(&self) -> Result<(), Violation> {
        if self.weakest <= self.strongest {
            return Ok(());
        }
        Err(Violation::new(
            "weakest",
            format!("must be at most `strongest`, {}", self.strongest),
            self.weakest,
        ))
    }

    /// Returns the penalty of an epoch, counted from 0.
    fn of_epoch(&self, epoch: usize) -> f64 {
        let part = epoch.min(PENALTIES - 1) as f64 / (PENALTIES - 1) as f64;
        self.strongest * (self.weakest / self.strongest).powf(part)
    }
}

/// Settings of `linear-solo`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LinearSoloSettings(pub Penalties);

/// Settings of `linear-top1`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LinearTop1Settings(pub Penalties);

impl Recipe<dyn Method> for LinearSoloSettings {
    fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Linear { kind: "linear-solo", penalties: self.0.clone(), others: false }))
    }
}

impl Recipe<dyn Method> for LinearTop1Settings {
    fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Linear { kind: "linear-top1", penalties: self.0.clone(), others: true }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<LinearSoloSettings>("linear-solo", "linear or logistic regression on the primary's own columns")
}

inventory::submit! {
    Plugin::<dyn Method>::new::<LinearTop1Settings>(
        "linear-top1",
        "linear or logistic regression on columns pooled by nearest record: a baseline, not federated",
    )
}

struct Linear {
    kind: &'static str,
    penalties: Penalties,
    /// True if the nearest record of every secondary is an input.
    others: bool,
}

impl Method for Linear {
    fn plan(&self) -> Plan {
        Plan {
            secondaries: self.others,
            encoder: "mlp",
            aggregator: "concat",
            width: 1,
            own_width: true,
            neighbours: Neighbours::First,
            at_once: Some(PENALTIES),
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if self.others { check_raw_columns(self.kind, slots) } else { Ok(()) }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        Ok(Box::new(LinearModel {
            penalties: self.penalties.clone(),
            objective: context.objective,
            fitted: Fitted::new(context.objective.outputs),
            epoch: 0,
            rows: None,
            model: Vec::new(),
        }))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Ok(Box::new(Columns::default()))
    }
}

/// Parameter names: mean of each column, inverse of its standard deviation (0 for a constant column), and the weights of each output with the constant last.
const MEAN: &str = "linear.mean";
const FACTOR: &str = "linear.factor";
const WEIGHTS: &str = "linear.weights";

/// Parameters that a fit replaces as a whole, in shapes that the data determine.
struct Fitted {
    /// Outputs of the model.
    outputs: usize,
    parameters: Parameters,
    gradient: FlatGradient,
    moments: Moments,
}

impl Fitted {
    fn new(outputs: usize) -> Self {
        let (parameters, gradient, moments) = Default::default();
        Self { outputs, parameters, gradient, moments }
    }
}

impl Learner for Fitted {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        if let Some(unknown) = parameters
            .segments()
            .iter()
            .find(|segment| ![MEAN, FACTOR, WEIGHTS].contains(&segment.name.as_str()))
        {
            return Err(ParameterError::Unknown { name: unknown.name.clone() });
        }
        let length = |name: &str| parameters.get(name).map_or(0, <[f32]>::len);
        let (columns, factors, weights) = (length(MEAN), length(FACTOR), length(WEIGHTS));
        for (name, expected, found) in [
            (FACTOR, columns, factors),
            (WEIGHTS, self.outputs * (columns + usize::from(columns > 0)), weights),
        ] {
            if expected != found {
                return Err(ParameterError::Shape {
                    name: name.to_string(),
                    expected: vec![expected],
                    found: vec![found],
                });
            }
        }
        self.parameters = parameters.clone();
        Ok(())
    }

    fn step(&mut self, _learning_rate: f64) {}

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn restore(&mut self, moments: Moments) {
        self.moments = moments;
    }
}

/// Standardised training rows.
struct Standardised {
    columns: Vec<Vec<f64>>,
    weights: Vec<f64>,
    labels: Vec<f64>,
    mean: Vec<f32>,
    factor: Vec<f32>,
}

impl Standardised {
    fn new(columns: &[Vec<f32>], labels: &[f32], weights: &[f32]) -> Self {
        let mut columns: Vec<Vec<f64>> =
            columns.iter().map(|column| column.iter().map(|&x| f64::from(x)).collect()).collect();
        let mut weights: Vec<f64> = match weights.is_empty() {
            true => vec![1.0; labels.len()],
            false => weights.iter().map(|&weight| f64::from(weight)).collect(),
        };
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let (mut means, mut factors) = (Vec::new(), Vec::new());
        for column in &mut columns {
            let moment = |value: &dyn Fn(f64) -> f64| {
                column.iter().zip(&weights).map(|(&x, weight)| weight * value(x)).sum::<f64>()
            };
            let mean = moment(&|x| x);
            let deviation = moment(&|x| (x - mean).powi(2)).sqrt();
            // In single precision, as the model stores both. A constant column has no effect.
            let (mean, factor) = (
                mean as f32,
                if deviation > (4.0 * f64::from(f32::EPSILON) * mean.abs()).max(1e-30) {
                    (1.0 / deviation) as f32
                } else {
                    0.0
                },
            );
            column.iter_mut().for_each(|x| *x = (*x - f64::from(mean)) * f64::from(factor));
            means.push(mean);
            factors.push(factor);
        }
        let labels = labels.iter().map(|&label| f64::from(label)).collect();
        Self { columns, weights, labels, mean: means, factor: factors }
    }
}

/// The primary's model.
struct LinearModel {
    penalties: Penalties,
    objective: Objective,
    fitted: Fitted,
    /// Number of penalties that were fitted.
    epoch: usize,
    /// Training rows, kept from the first epoch on.
    rows: Option<Standardised>,
    /// Weights of the last penalty, where the fit of the next begins.
    model: Vec<f64>,
}

impl LinearModel {
    /// Computes the activated output of every row; without a fit the output is 0.
    fn output(&self, columns: &[Vec<f32>], batch: &PrimaryBatch) -> Tensor<2> {
        let (rows, outputs) = (columns[0].len(), self.objective.outputs);
        let mut scores = vec![vec![0.0f64; rows]; outputs];
        let parameters = &self.fitted.parameters;
        if let (Some(mean), Some(factor), Some(weights)) =
            (parameters.get(MEAN), parameters.get(FACTOR), parameters.get(WEIGHTS))
            && mean.len() == columns.len()
            && factor.len() == columns.len()
            && weights.len() == outputs * (columns.len() + 1)
        {
            for (scores, weights) in scores.iter_mut().zip(weights.chunks(columns.len() + 1)) {
                scores.fill(f64::from(weights[columns.len()]));
                for (column, values) in columns.iter().enumerate() {
                    let [mean, factor, weight] =
                        [mean[column], factor[column], weights[column]].map(f64::from);
                    scores
                        .iter_mut()
                        .zip(values)
                        .for_each(|(score, &x)| *score += weight * ((f64::from(x) - mean) * factor));
                }
            }
        }
        activated(self.objective.task, &scores, &batch.keys.device().without_autodiff())
    }
}

impl Primary for LinearModel {
    fn learner(&self) -> &dyn Learner {
        &self.fitted
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.fitted
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, _pass: &mut Pass) -> TrainOutcome {
        let columns = input_columns(batch, memory, &[Pool::Nearest]);
        let rows =
            self.rows.get_or_insert_with(|| Standardised::new(&columns, &batch.labels, &batch.weights));
        let size = rows.columns.len() + 1;
        self.model.resize(self.objective.outputs * size, 0.0);
        let data = Rows {
            columns: &rows.columns,
            weights: &rows.weights,
            labels: &rows.labels,
            task: self.objective.task,
            outputs: self.objective.outputs,
        };
        data.fit(&mut self.model, self.penalties.of_epoch(self.epoch));
        self.epoch += 1;
        let weights: Vec<f32> = self.model.iter().map(|&weight| weight as f32).collect();
        let mut parameters = Parameters::default();
        parameters.push(MEAN, &[rows.mean.len()], &rows.mean);
        parameters.push(FACTOR, &[rows.factor.len()], &rows.factor);
        parameters.push(WEIGHTS, &[self.objective.outputs, size], &weights);
        self.fitted.parameters = parameters;
        let output = self.output(&columns, batch);
        let loss = f64::from(host(self.objective.loss(output.clone(), &batch.labels, &batch.weights))[0]);
        TrainOutcome { loss, memory_gradient: None, output }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        self.output(&input_columns(batch, memory, &[Pool::Nearest]), batch)
    }
}
