//! `gbdt-solo` and `gbdt-top1`: gradient-boosted trees, the standard baseline for tables.
//!
//! `gbdt-solo` sees the primary's own keys and features. `gbdt-top1` also sees the features of the nearest record of
//! every secondary: it pools raw columns at the primary, so it protects nothing, and shows what linked data are worth
//! to a model that is not federated.
//!
//! All trees are grown at once; epoch e of the report uses the first e/20 of them, so that the validation rows choose
//! the number of trees, as they choose the epoch of every method. Trees are not tensors: the run's `model.safetensors`
//! is empty.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::aggregator::Aggregator;
use fet_core::data::Task;
use fet_core::encoder::{Encoder, NeighbourBatch};
use fet_core::method::{
    Memory, Method, Neighbours, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, Slots,
    TrainOutcome,
};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::host;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::trainable::{Learner, Nothing};
use forust_ml::objective::ObjectiveType;
use forust_ml::{GradientBooster, Matrix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How gradient-boosted trees are grown: level by level, from histograms.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Growth {
    /// The number of trees; with several classes, of each class.
    #[schemars(range(min = PORTIONS))]
    pub trees: usize,
    /// The learning rate (shrinkage): each tree's output is multiplied by it.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub learning_rate: f64,
    /// The largest number of splits between the root of a tree and a leaf.
    #[schemars(range(min = 1, max = 16))]
    pub depth: usize,
    /// The smallest sum of second derivatives of the loss in a leaf: for a squared loss, the smallest number of rows. For
    /// classes a twentieth of it applies.
    #[schemars(range(min = 0))]
    pub leaf_weight: f64,
}

/// Settings of `gbdt-solo`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GbdtSoloSettings(pub Growth);

/// Settings of `gbdt-top1`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GbdtTop1Settings(pub Growth);

/// The number of portions in which the trees are validated.
const PORTIONS: usize = 20;

impl Default for Growth {
    fn default() -> Self {
        Self { trees: 500, learning_rate: 0.1, depth: 10, leaf_weight: 20.0 }
    }
}

impl Growth {
    fn booster(&self, task: Task) -> GradientBooster {
        let loss = if task == Task::Regression { ObjectiveType::SquaredLoss } else { ObjectiveType::LogLoss };
        // The sum of second derivatives of a log loss is a quarter of the rows at the most.
        let leaf_weight = if task == Task::Regression { self.leaf_weight } else { self.leaf_weight / 20.0 };
        GradientBooster::default()
            .set_objective_type(loss)
            .set_iterations(self.trees)
            .set_learning_rate(self.learning_rate as f32)
            .set_max_depth(self.depth)
            .set_min_leaf_weight(leaf_weight as f32)
            .set_l2(0.0)
    }
}

impl Recipe<dyn Method> for GbdtSoloSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Gbdt { growth: self.0.clone(), joined: false }))
    }
}

impl Recipe<dyn Method> for GbdtTop1Settings {
    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Gbdt { growth: self.0.clone(), joined: true }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<GbdtSoloSettings>("gbdt-solo", "gradient-boosted trees on the primary's own columns")
}

inventory::submit! {
    Plugin::<dyn Method>::new::<GbdtTop1Settings>(
        "gbdt-top1",
        "gradient-boosted trees on columns pooled by nearest record: a yardstick, not federated",
    )
}

struct Gbdt {
    growth: Growth,
    joined: bool,
}

impl Method for Gbdt {
    fn plan(&self) -> Plan {
        Plan {
            secondaries: self.joined,
            encoder: "mlp",
            aggregator: "concat",
            width: 1,
            own_width: true,
            neighbours: Neighbours::First,
            learning_rate: self.growth.learning_rate,
            at_once: Some(PORTIONS),
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if self.joined && !slots.aggregator.keeps_parts_apart() {
            let rule = "must keep the parties' parts apart, as \"concat\" does, for the method \"gbdt-top1\": it pools raw \
                        columns";
            return Err(slots.refuse::<dyn Aggregator>(rule));
        }
        if self.joined && !slots.privacy.is_identity() {
            let rule =
                "must protect nothing, as \"none\" does, for the method \"gbdt-top1\": it pools raw columns";
            return Err(slots.refuse::<dyn PrivacyMechanism>(rule));
        }
        Ok(())
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        Ok(Box::new(Forest {
            growth: self.growth.clone(),
            objective: context.objective,
            varying: Vec::new(),
            boosters: Vec::new(),
            portions: 0,
            nothing: Nothing::default(),
        }))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Ok(Box::new(Columns { nothing: Nothing::default() }))
    }
}

/// Sends a neighbour's features unchanged.
struct Columns {
    nothing: Nothing,
}

impl Encoder for Columns {
    fn learner(&self) -> &dyn Learner {
        &self.nothing
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.nothing
    }

    fn forward(&mut self, batch: &NeighbourBatch, _pass: &mut Pass, _tracked: bool) -> Tensor<3> {
        let width = batch.features.dims()[1];
        let features = batch.features.clone().without_autodiff();
        features.select(0, batch.slots.clone().without_autodiff()).reshape([
            batch.rows,
            batch.neighbours,
            width,
        ])
    }

    fn backward(&mut self, _gradient: Tensor<3>) {}
}

/// One booster for a number or two classes, one for each of more classes.
struct Forest {
    growth: Growth,
    objective: Objective,
    /// The columns that are not constant on the training rows: the library refuses the others.
    varying: Vec<usize>,
    boosters: Vec<GradientBooster>,
    /// The number of portions of the trees in use.
    portions: usize,
    nothing: Nothing,
}

impl Forest {
    /// Columns: keys, features, and those that the secondaries pooled.
    fn columns(batch: &PrimaryBatch, memory: Option<Memory>) -> Vec<Vec<f64>> {
        let mut parts = vec![batch.keys.clone(), batch.features.clone()];
        if let Some(memory) = memory {
            let [rows, positions, width] = memory.tensor.dims();
            parts.push(memory.tensor.reshape([rows, positions * width]));
        }
        let columns = parts.into_iter().flat_map(|part| {
            let rows = part.dims()[0];
            let values = host(part.without_autodiff().transpose());
            values
                .chunks(rows)
                .map(|column| column.iter().map(|&x| f64::from(x)).collect())
                .collect::<Vec<_>>()
        });
        columns.collect()
    }

    /// One target for each booster.
    fn targets(&self, labels: &[f32]) -> Vec<Vec<f64>> {
        match self.objective.task {
            Task::Regression | Task::Binary => vec![labels.iter().map(|&y| f64::from(y)).collect()],
            Task::Multiclass => (0..self.objective.outputs)
                .map(|class| labels.iter().map(|&y| f64::from(u8::from(y as usize == class))).collect())
                .collect(),
        }
    }

    fn fit(&mut self, columns: &[Vec<f64>], labels: &[f32], weights: &[f32]) {
        let varies = |column: &Vec<f64>| column.iter().any(|&x| x != column[0]);
        self.varying = (0..columns.len()).filter(|&index| varies(&columns[index])).collect();
        let flat = self.flat(columns);
        let data = Matrix::new(&flat, labels.len(), self.varying.len());
        let fit = |target: Vec<f64>| {
            let mut booster = self.growth.booster(self.objective.task);
            let fitted = if weights.is_empty() {
                booster.fit_unweighted(&data, &target, None)
            } else {
                let weights: Vec<f64> = weights.iter().map(|&weight| f64::from(weight)).collect();
                booster.fit(&data, &target, &weights, None)
            };
            fitted.expect("every column is finite and varies");
            booster
        };
        self.boosters = self.targets(labels).into_iter().map(fit).collect();
    }

    fn flat(&self, columns: &[Vec<f64>]) -> Vec<f64> {
        self.varying.iter().flat_map(|&index| &columns[index]).copied().collect()
    }

    /// The activated output of the portions in use.
    fn output(&self, columns: &[Vec<f64>], device: &Device) -> Tensor<2> {
        let flat = self.flat(columns);
        let rows = columns[0].len();
        let data = Matrix::new(&flat, rows, self.varying.len());
        let regression = self.objective.task == Task::Regression;
        let outputs: Vec<Vec<f64>> =
            self.boosters.iter().map(|booster| booster.predict(&data, true)).collect();
        let activate = |score: f64| if regression { score } else { 1.0 / (1.0 + (-score).exp()) };
        let values: Vec<f32> = (0..rows)
            .flat_map(|row| outputs.iter().map(move |output| activate(output[row]) as f32))
            .collect();
        let output = Tensor::from_data(TensorData::new(values, [rows, outputs.len()]), device);
        // The loss of several classes is the cross-entropy of what has these logarithms.
        if self.objective.task == Task::Multiclass { output.clamp_min(1e-7).log() } else { output }
    }
}

impl Primary for Forest {
    fn learner(&self) -> &dyn Learner {
        &self.nothing
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.nothing
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, _pass: &mut Pass) -> TrainOutcome {
        let columns = Self::columns(batch, memory);
        if self.boosters.is_empty() {
            self.fit(&columns, &batch.labels, &batch.weights);
        }
        self.portions += 1;
        let count = self.growth.trees * self.portions / PORTIONS;
        for booster in &mut self.boosters {
            booster.prediction_iteration = Some(count);
        }
        let output = self.output(&columns, &batch.keys.device().without_autodiff());
        let loss = f64::from(host(self.objective.loss(output.clone(), &batch.labels, &batch.weights))[0]);
        TrainOutcome { loss, memory_gradient: None, output }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        self.output(&Self::columns(batch, memory), &batch.keys.device())
    }
}
