//! Boosters as the primary's part of a method.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::data::Task;
use fet_core::method::{Memory, Primary, PrimaryBatch, TrainOutcome};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::parameters::{Parameters, host};
use fet_core::trainable::{Learner, NoParameters};
use forust_ml::{GradientBooster, Matrix};

use super::{Growth, PORTIONS, Pool};

/// Parameter name of the number of parts in use.
const IN_USE: &str = "portions";

/// One booster for a regression or two classes, otherwise one per class.
pub(super) struct Forest {
    growth: Growth,
    /// Forms of the neighbours' columns.
    pools: Vec<Pool>,
    seed: u64,
    objective: Objective,
    /// Columns that vary on the training rows; the library refuses constant columns.
    varying: Vec<usize>,
    boosters: Vec<GradientBooster>,
    /// Output of the trees in use on the training rows, and their number; each epoch adds its trees.
    trained: (Vec<Vec<f64>>, usize),
    /// Number of parts of the trees in use; after loading, of the best epoch.
    portions: NoParameters,
}

impl Forest {
    pub(super) fn new(growth: Growth, pools: Vec<Pool>, seed: u64, objective: Objective) -> Self {
        let mut portions = Parameters::default();
        portions.push(IN_USE, &[1], &[0.0]);
        let (varying, boosters, trained) = (Vec::new(), Vec::new(), (Vec::new(), 0));
        let portions = NoParameters::keeping(portions);
        Self { growth, pools, seed, objective, varying, boosters, trained, portions }
    }

    /// Columns: keys, features, and the secondaries' pooled columns.
    fn columns(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Vec<Vec<f64>> {
        let mut parts = vec![batch.keys.clone(), batch.features.clone()];
        if let Some(memory) = memory {
            parts.extend(self.pools.iter().flat_map(|pool| pool.columns(&memory)));
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

    fn fit(&mut self, columns: &[Vec<f64>], labels: &[f32], weights: &[f32]) {
        (self.varying, self.boosters) =
            train_boosters(&self.growth, self.objective, self.seed, &Examples { columns, labels, weights });
        let begin = |booster: &GradientBooster| vec![booster.base_score; labels.len()];
        self.trained = (self.boosters.iter().map(begin).collect(), 0);
    }

    fn flat(&self, columns: &[Vec<f64>]) -> Vec<f64> {
        self.varying.iter().flat_map(|&index| &columns[index]).copied().collect()
    }

    /// Activated output of the trees in use.
    fn output(&self, columns: &[Vec<f64>], device: &Device) -> Tensor<2> {
        let flat = self.flat(columns);
        let rows = columns[0].len();
        let data = Matrix::new(&flat, rows, self.varying.len());
        let begin = |booster: &GradientBooster| vec![booster.base_score; rows];
        let mut scores: Vec<Vec<f64>> = self.boosters.iter().map(begin).collect();
        self.add(&mut scores, &data, 0..self.in_use());
        self.activated(&scores, device)
    }

    /// Number of trees of each booster in use.
    fn in_use(&self) -> usize {
        self.growth.trees * self.portions.parameters().values()[0] as usize / PORTIONS
    }

    /// Adds the output of these trees of each booster.
    fn add(&self, scores: &mut [Vec<f64>], data: &Matrix<'_, f64>, trees: Range<usize>) {
        for (booster, scores) in self.boosters.iter().zip(scores) {
            for tree in
                &booster.trees[trees.start.min(booster.trees.len())..trees.end.min(booster.trees.len())]
            {
                let outputs = tree.predict(data, true, &booster.missing);
                scores.iter_mut().zip(outputs).for_each(|(score, value)| *score += value);
            }
        }
    }

    /// The boosters' scores as activated outputs.
    fn activated(&self, outputs: &[Vec<f64>], device: &Device) -> Tensor<2> {
        let rows = outputs[0].len();
        let regression = self.objective.task == Task::Regression;
        let activate = |score: f64| if regression { score } else { 1.0 / (1.0 + (-score).exp()) };
        let values: Vec<f32> = (0..rows)
            .flat_map(|row| outputs.iter().map(move |output| activate(output[row]) as f32))
            .collect();
        let output = Tensor::from_data(TensorData::new(values, [rows, outputs.len()]), device);
        // The loss of several classes is the cross-entropy of these log-probabilities.
        if self.objective.task == Task::Multiclass { output.clamp_min(1e-7).log() } else { output }
    }
}

/// Training rows of boosters.
pub(crate) struct Examples<'a> {
    pub(crate) columns: &'a [Vec<f64>],
    pub(crate) labels: &'a [f32],
    /// Weights of the rows; empty if all rows have the same weight.
    pub(crate) weights: &'a [f32],
}

/// Trains one booster per output; returns the columns that vary and the boosters.
pub(crate) fn train_boosters(
    growth: &Growth,
    objective: Objective,
    seed: u64,
    examples: &Examples<'_>,
) -> (Vec<usize>, Vec<GradientBooster>) {
    let &Examples { columns, labels, weights } = examples;
    let varies = |column: &Vec<f64>| column.iter().any(|&x| x != column[0]);
    let varying: Vec<usize> = (0..columns.len()).filter(|&index| varies(&columns[index])).collect();
    let flat: Vec<f64> = varying.iter().flat_map(|&index| &columns[index]).copied().collect();
    let data = Matrix::new(&flat, labels.len(), varying.len());
    let fit = |target: Vec<f64>| {
        let mut booster = growth.booster(objective.task, seed);
        let fitted = if weights.is_empty() {
            booster.fit_unweighted(&data, &target, None)
        } else {
            let weights: Vec<f64> = weights.iter().map(|&weight| f64::from(weight)).collect();
            booster.fit(&data, &target, &weights, None)
        };
        fitted.expect("every column is finite and varies");
        booster
    };
    (varying, targets(objective, labels).into_iter().map(fit).collect())
}

/// One target for each booster.
fn targets(objective: Objective, labels: &[f32]) -> Vec<Vec<f64>> {
    match objective.task {
        Task::Regression | Task::Binary => vec![labels.iter().map(|&y| f64::from(y)).collect()],
        Task::Multiclass => (0..objective.outputs)
            .map(|class| labels.iter().map(|&y| f64::from(u8::from(y as usize == class))).collect())
            .collect(),
    }
}

impl Primary for Forest {
    fn learner(&self) -> &dyn Learner {
        &self.portions
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.portions
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, _pass: &mut Pass) -> TrainOutcome {
        let columns = self.columns(batch, memory);
        if self.boosters.is_empty() {
            self.fit(&columns, &batch.labels, &batch.weights);
        }
        let mut portions = self.portions.parameters().clone();
        portions.split_mut().1[0] += 1.0;
        self.portions.load(&portions).expect("they are its own");
        let flat = self.flat(&columns);
        let data = Matrix::new(&flat, batch.labels.len(), self.varying.len());
        let (mut scores, before) = std::mem::take(&mut self.trained);
        self.add(&mut scores, &data, before..self.in_use());
        let output = self.activated(&scores, &batch.keys.device().without_autodiff());
        self.trained = (scores, self.in_use());
        let loss = f64::from(host(self.objective.loss(output.clone(), &batch.labels, &batch.weights))[0]);
        TrainOutcome { loss, memory_gradient: None, output }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        self.output(&self.columns(batch, memory), &batch.keys.device())
    }
}
