//! Parameters of a model in Python: the program holds them, and its optimiser trains them.

use std::collections::BTreeMap;

use fet_core::optimizer::{Moments, Optimizer, OptimizerSettings};
use fet_core::parameters::{FlatGradient, ParameterError, Parameters};
use fet_core::trainable::Learner;

use crate::plugin::{bytes, floats};

/// Parameters of a new model: name, shape and values.
pub(crate) type Described = Vec<(String, Vec<usize>, Vec<u8>)>;

/// Gradients of some parameters by name.
pub(crate) type Gradients = BTreeMap<String, Vec<u8>>;

pub(crate) struct PythonLearner {
    parameters: Parameters,
    gradient: FlatGradient,
    optimizer: Optimizer,
}

impl PythonLearner {
    pub(crate) fn new(described: Described, optimizer: OptimizerSettings) -> Self {
        let mut parameters = Parameters::default();
        for (name, shape, values) in described {
            parameters.push(&name, &shape, &floats(&values));
        }
        Self { parameters, gradient: FlatGradient::default(), optimizer: Optimizer::new(optimizer) }
    }

    /// Returns the values of all parameters.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        bytes(self.parameters.values())
    }

    /// Keeps the gradients of a backward pass.
    pub(crate) fn learn(&mut self, found: &Gradients) {
        self.gradient = FlatGradient::default();
        for segment in self.parameters.segments() {
            let values = found.get(&segment.name).map(|bytes| floats(bytes));
            self.gradient.present.push(values.is_some());
            let values = values.unwrap_or_else(|| vec![0.0; segment.range.len()]);
            self.gradient.values.extend(values);
        }
    }
}

impl Learner for PythonLearner {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.parameters.overwrite(parameters)
    }

    fn step(&mut self, learning_rate: f64) {
        self.optimizer.step(learning_rate, &mut self.parameters, &self.gradient);
    }

    fn moments(&self) -> &Moments {
        self.optimizer.moments()
    }

    fn restore(&mut self, moments: Moments) {
        self.optimizer.restore(moments);
    }
}
