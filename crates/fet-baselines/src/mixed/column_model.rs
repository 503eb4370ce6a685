//! Contract of the models that another method is averaged with.

use fet_core::method::PrimaryBatch;
use fet_core::parameters::{ParameterError, Parameters};

/// A model of the primary's own columns, fitted once to the training rows.
pub(super) trait ColumnModel: Send {
    /// Returns the parameters. Their names and their number are the same before and after the fit.
    fn parameters(&self) -> &Parameters;

    /// Replaces all parameters.
    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError>;

    /// Returns true if the model was fitted.
    fn is_fitted(&self) -> bool;

    /// Fits the model to the training rows.
    fn fit(&mut self, batch: &PrimaryBatch);

    /// Returns the number of portions of the model, such as groups of trees. The first portions are a model by
    /// themselves.
    fn portions(&self) -> usize {
        1
    }

    /// Returns each output's scores of all rows by the first portions: a scaled label, the logit of class 1, or a logit
    /// of each class.
    fn scores(&self, batch: &PrimaryBatch, portions: usize) -> Vec<Vec<f64>>;

    /// Returns [`ColumnModel::scores`] by the first portion, by the first two and so on.
    fn scores_by_portions(&self, batch: &PrimaryBatch) -> Vec<Vec<Vec<f64>>> {
        (1..=self.portions()).map(|portions| self.scores(batch, portions)).collect()
    }

    /// Returns the name and the value of the setting that gives a model of the first portions; `None` with a single
    /// portion.
    fn setting(&self, _portions: usize) -> Option<(String, f64)> {
        None
    }
}
