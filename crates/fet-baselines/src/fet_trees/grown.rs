//! Trees that grow step by step, as a model that is saved and loaded.

use std::cell::OnceCell;

use fet_core::optimizer::Moments;
use fet_core::parameters::{FlatGradient, ParameterError, Parameters};
use fet_core::trainable::Learner;

use crate::boosting::{Ensemble, Node};

/// Trees that grow step by step.
pub(super) struct GrownTrees {
    ensemble: Ensemble,
    outputs: usize,
    parameters: OnceCell<Parameters>,
    gradient: FlatGradient,
    moments: Moments,
}

impl GrownTrees {
    /// Creates a model without trees for this number of outputs.
    pub(super) fn new(outputs: usize) -> Self {
        let (parameters, gradient, moments) = Default::default();
        Self { ensemble: Ensemble::default(), outputs, parameters, gradient, moments }
    }

    /// Replaces the trees.
    pub(super) fn set(&mut self, ensemble: Ensemble) {
        (self.ensemble, self.parameters) = (ensemble, OnceCell::new());
    }

    /// Adds the next tree.
    pub(super) fn push(&mut self, nodes: Vec<Node>) {
        self.parameters = OnceCell::new();
        self.ensemble.push(nodes);
    }

    /// Returns the trees.
    pub(super) fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }
}

impl Learner for GrownTrees {
    fn parameters(&self) -> &Parameters {
        self.parameters.get_or_init(|| self.ensemble.parameters())
    }

    /// Gradients do not train trees.
    fn trained(&self) -> usize {
        0
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.set(Ensemble::from_parameters(parameters, self.outputs)?);
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
