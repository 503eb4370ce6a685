//! Linear or logistic regression as the model that another method is averaged with.

use fet_core::method::PrimaryBatch;
use fet_core::objective::Objective;
use fet_core::parameters::{ParameterError, Parameters};

use super::column_model::ColumnModel;
use crate::gbdt::input_columns;
use crate::linear::{Standardised, Weights};

/// A penalised regression, fitted or not yet.
pub(super) struct Regression {
    penalty: f64,
    objective: Objective,
    weights: Weights,
}

impl Regression {
    pub(super) fn new(penalty: f64, objective: Objective) -> Self {
        Self { penalty, objective, weights: Weights::new(objective.outputs) }
    }
}

impl ColumnModel for Regression {
    fn parameters(&self) -> &Parameters {
        self.weights.parameters()
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.weights.load(parameters)
    }

    fn is_fitted(&self) -> bool {
        self.weights.is_fitted()
    }

    fn fit(&mut self, batch: &PrimaryBatch) {
        let columns = input_columns(batch, None, &[]);
        let rows = Standardised::new(&columns, &batch.labels, &batch.weights);
        let mut model = Vec::new();
        rows.fit(self.objective, &mut model, self.penalty);
        self.weights.set(&rows, &model);
    }

    fn scores(&self, batch: &PrimaryBatch, _portions: usize) -> Vec<Vec<f64>> {
        self.weights.scores(&input_columns(batch, None, &[]))
    }
}
