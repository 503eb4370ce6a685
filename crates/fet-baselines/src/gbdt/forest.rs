//! Boosted trees as the primary's part of a method.

use burn::tensor::{Device, Tensor, TensorData};
use fet_core::data::Task;
use fet_core::method::{Memory, Primary, PrimaryBatch, TrainOutcome};
use fet_core::model::Pass;
use fet_core::objective::Objective;
use fet_core::optimizer::Moments;
use fet_core::parameters::{FlatGradient, ParameterError, Parameters, host};
use fet_core::trainable::Learner;

use super::Pool;
use crate::boosting::{Ensemble, Examples, Growth, PORTIONS, Table};

/// Parameter name of the number of parts in use.
const IN_USE: &str = "trees.portions";

/// Trees on the primary's columns and the secondaries' pooled columns.
pub(super) struct Forest {
    growth: Growth,
    /// Forms of the neighbours' columns.
    pools: Vec<Pool>,
    seed: u64,
    objective: Objective,
    trees: SavedTrees,
    /// Scores of the training rows by the trees in use. Each epoch adds the scores of its trees.
    trained: Vec<Vec<f64>>,
}

impl Forest {
    pub(super) fn new(growth: Growth, pools: Vec<Pool>, seed: u64, objective: Objective) -> Self {
        let trees = SavedTrees::new(objective.outputs);
        Self { growth, pools, seed, objective, trees, trained: Vec::new() }
    }

    /// Returns the number of trees of each output after this number of parts.
    fn trees_of(&self, portions: usize) -> usize {
        self.growth.trees * portions / PORTIONS
    }
}

impl Primary for Forest {
    fn learner(&self) -> &dyn Learner {
        &self.trees
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trees
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, _pass: &mut Pass) -> TrainOutcome {
        let columns = input_columns(batch, memory, &self.pools);
        if self.trained.is_empty() {
            let examples = Examples { columns: &columns, labels: &batch.labels, weights: &batch.weights };
            let ensemble = Ensemble::grow(&self.growth, self.objective, self.seed, &examples);
            self.trained = ensemble.base_scores(batch.labels.len());
            self.trees.set(ensemble, 0);
        }
        let before = self.trees.portions;
        self.trees.use_portions(before + 1);
        let trees = self.trees_of(before)..self.trees_of(before + 1);
        self.trees.ensemble.add(&mut self.trained, &Table::from_columns(&columns), trees);
        let output = activated(self.objective.task, &self.trained, &batch.keys.device().without_autodiff());
        let loss = f64::from(host(self.objective.loss(output.clone(), &batch.labels, &batch.weights))[0]);
        TrainOutcome { loss, memory_gradient: None, output }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        let columns = input_columns(batch, memory, &self.pools);
        let rows = columns.first().map_or(0, Vec::len);
        let mut scores = match self.trees.ensemble.is_grown() {
            true => self.trees.ensemble.base_scores(rows),
            false => vec![vec![0.0; rows]; self.objective.outputs],
        };
        let trees = 0..self.trees_of(self.trees.portions);
        self.trees.ensemble.add(&mut scores, &Table::from_columns(&columns), trees);
        activated(self.objective.task, &scores, &batch.keys.device())
    }
}

/// Trees as a model that is saved, loaded and never trained by gradients.
struct SavedTrees {
    ensemble: Ensemble,
    outputs: usize,
    /// Number of parts of the trees in use; after loading, of the best epoch.
    portions: usize,
    parameters: Parameters,
    gradient: FlatGradient,
    moments: Moments,
}

impl SavedTrees {
    fn new(outputs: usize) -> Self {
        let (gradient, moments) = Default::default();
        let mut trees = Self {
            ensemble: Ensemble::default(),
            outputs,
            portions: 0,
            parameters: Parameters::default(),
            gradient,
            moments,
        };
        trees.set(Ensemble::default(), 0);
        trees
    }

    fn set(&mut self, ensemble: Ensemble, portions: usize) {
        self.parameters = ensemble.parameters();
        self.parameters.push(IN_USE, &[1], &[portions as f32]);
        (self.ensemble, self.portions) = (ensemble, portions);
    }

    fn use_portions(&mut self, portions: usize) {
        self.portions = portions;
        if let Some(last) = self.parameters.split_mut().1.last_mut() {
            *last = portions as f32;
        }
    }
}

impl Learner for SavedTrees {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Gradients do not train trees.
    fn trained(&self) -> usize {
        0
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        let portions = parameters.get(IN_USE).and_then(|values| values.first());
        let portions = portions.ok_or_else(|| ParameterError::Missing { name: IN_USE.to_string() })?;
        self.set(Ensemble::from_parameters(parameters, self.outputs)?, (*portions as usize).min(PORTIONS));
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

/// Returns each output's scores of all rows as activated outputs: probabilities of a binary task, logits of several classes.
pub(crate) fn activated(task: Task, scores: &[Vec<f64>], device: &Device) -> Tensor<2> {
    let rows = scores.first().map_or(0, Vec::len);
    let activate = |score: f64| if task == Task::Binary { 1.0 / (1.0 + (-score).exp()) } else { score };
    let values: Vec<f32> =
        (0..rows).flat_map(|row| scores.iter().map(move |scores| activate(scores[row]) as f32)).collect();
    Tensor::from_data(TensorData::new(values, [rows, scores.len()]), device)
}

/// Returns the columns of a batch: keys, features, and the secondaries' pooled columns.
pub(crate) fn input_columns(batch: &PrimaryBatch, memory: Option<Memory>, pools: &[Pool]) -> Vec<Vec<f32>> {
    let mut parts = vec![batch.keys.clone(), batch.features.clone()];
    if let Some(memory) = memory {
        parts.extend(pools.iter().flat_map(|pool| pool.columns(&memory)));
    }
    let columns = parts.into_iter().flat_map(|part| {
        let rows = part.dims()[0];
        let values = host(part.without_autodiff().transpose());
        values.chunks(rows.max(1)).map(<[f32]>::to_vec).collect::<Vec<_>>()
    });
    columns.collect()
}
