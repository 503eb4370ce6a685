//! `linear-solo` and `linear-top1`: linear regression and logistic regression, the simplest baselines for tables.
//!
//! `linear-solo` sees the primary's own keys and features. `linear-top1` adds the features of every secondary's nearest
//! record: it sends raw columns to the primary and protects no data.
//!
//! Epoch e of the report uses the e-th of 20 penalties, from the strongest to the weakest, so that the validation rows
//! choose the penalty, as they choose the epoch of every method.

mod fit;
mod weights;

use burn::tensor::Tensor;
use fet_core::encoder::Encoder;
use fet_core::method::{
    AtOnce, Memory, Method, Neighbours, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, Slots,
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

pub(crate) use self::weights::{Standardised, Weights};
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
            at_once: Some(AtOnce::epochs(PENALTIES)),
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

/// Weights that a fit replaces as a whole, as a model that gradients do not train.
struct Fitted {
    weights: Weights,
    gradient: FlatGradient,
    moments: Moments,
}

impl Fitted {
    fn new(outputs: usize) -> Self {
        let (gradient, moments) = Default::default();
        Self { weights: Weights::new(outputs), gradient, moments }
    }
}

impl Learner for Fitted {
    fn parameters(&self) -> &Parameters {
        self.weights.parameters()
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.weights.load(parameters)
    }

    fn step(&mut self, _learning_rate: f64) {}

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn restore(&mut self, moments: Moments) {
        self.moments = moments;
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
        let scores = self.fitted.weights.scores(columns);
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
        rows.fit(self.objective, &mut self.model, self.penalties.of_epoch(self.epoch));
        self.epoch += 1;
        self.fitted.weights.set(rows, &self.model);
        let output = self.output(&columns, batch);
        let loss = f64::from(host(self.objective.loss(output.clone(), &batch.labels, &batch.weights))[0]);
        TrainOutcome { loss, memory_gradient: None, output }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        self.output(&input_columns(batch, memory, &[Pool::Nearest]), batch)
    }
}
