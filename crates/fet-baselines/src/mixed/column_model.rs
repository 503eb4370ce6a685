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

    /// Returns each output's scores of all rows: a scaled label, the logit of class 1, or a logit of each class.
    fn scores(&self, batch: &PrimaryBatch) -> Vec<Vec<f64>>;
}
