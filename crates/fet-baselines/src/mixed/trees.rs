//! Boosted trees as parameters of a model.

use fet_core::method::PrimaryBatch;
use fet_core::objective::Objective;
use fet_core::parameters::{ParameterError, Parameters};
use fet_core::registry::Violation;

use super::column_model::ColumnModel;
use crate::boosting::{Ensemble, Examples, Growth, PORTIONS, Table};
use crate::gbdt::input_columns;

/// Largest number of nodes of all trees; each node has three parameters.
const MOST_NODES: usize = 8_000_000;

/// Refuses more trees than a model with this number of outputs can hold.
pub(super) fn check_size(growth: &Growth, outputs: usize) -> Result<(), Violation> {
    let nodes = (2 * growth.leaves).saturating_sub(1);
    if growth.trees.saturating_mul(nodes).saturating_mul(outputs) <= MOST_NODES {
        return Ok(());
    }
    let each = if outputs > 1 { format!(" for each of {outputs} classes") } else { String::new() };
    let rule = format!("must make at most {MOST_NODES} nodes with `leaves`: 2 · leaves - 1 per tree{each}");
    Err(Violation::new("growth.trees", rule, growth.trees))
}

/// Trees of each output, grown or not yet.
pub(super) struct Trees {
    ensemble: Ensemble,
    parameters: Parameters,
    growth: Growth,
    objective: Objective,
    seed: u64,
}

impl Trees {
    pub(super) fn new(growth: Growth, objective: Objective, seed: u64) -> Self {
        let ensemble = Ensemble::default();
        let parameters = ensemble.parameters();
        Self { ensemble, parameters, growth, objective, seed }
    }

    /// Returns the number of trees of each output in the first portions.
    fn trees(&self, portions: usize) -> usize {
        self.growth.trees * portions / PORTIONS
    }

    fn set(&mut self, ensemble: Ensemble) {
        self.parameters = ensemble.parameters();
        self.ensemble = ensemble;
    }
}

impl ColumnModel for Trees {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.set(Ensemble::from_parameters(parameters, self.objective.outputs)?);
        Ok(())
    }

    fn is_fitted(&self) -> bool {
        self.ensemble.is_grown()
    }

    fn fit(&mut self, batch: &PrimaryBatch) {
        let columns = input_columns(batch, None, &[]);
        let examples = Examples { columns: &columns, labels: &batch.labels, weights: &batch.weights };
        let grown = Ensemble::grow(&self.growth, self.objective, self.seed, &examples);
        self.set(grown);
    }

    fn portions(&self) -> usize {
        PORTIONS
    }

    fn scores(&self, batch: &PrimaryBatch, portions: usize) -> Vec<Vec<f64>> {
        let columns = input_columns(batch, None, &[]);
        let mut scores = self.ensemble.base_scores(columns.first().map_or(0, Vec::len));
        self.ensemble.add(&mut scores, &Table::from_columns(&columns), 0..self.trees(portions));
        scores
    }

    fn scores_by_portions(&self, batch: &PrimaryBatch) -> Vec<Vec<Vec<f64>>> {
        let columns = input_columns(batch, None, &[]);
        let table = Table::from_columns(&columns);
        let mut scores = self.ensemble.base_scores(columns.first().map_or(0, Vec::len));
        let mut with_next = |portions: usize| {
            self.ensemble.add(&mut scores, &table, self.trees(portions - 1)..self.trees(portions));
            scores.clone()
        };
        (1..=PORTIONS).map(&mut with_next).collect()
    }

    fn setting(&self, portions: usize) -> Option<(String, f64)> {
        Some(("growth.trees".to_string(), self.trees(portions) as f64))
    }
}
