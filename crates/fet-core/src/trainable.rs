//! A module together with its flat parameters and its optimiser.
//!
//! `Module` is not object-safe, so `dyn Encoder` and `dyn Primary` erase this type instead.

use std::cell::OnceCell;

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::optimizer::{Moments, Optimizer, OptimizerSettings};
use crate::parameters::{FlatGradient, ParameterError, Parameters, gradients_of};

/// Operations of every party's model, except the computation itself.
pub trait Learner: Send {
    /// Returns the current parameters.
    fn parameters(&self) -> &Parameters;

    /// Returns the number of trained parameters.
    fn trained(&self) -> usize {
        self.parameters().values().len()
    }

    /// Returns the gradient of the last backward pass.
    fn gradient(&self) -> &FlatGradient;

    /// Overwrites the parameters named in `parameters`; keeps the optimiser's moments.
    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError>;

    /// Takes one optimiser step along the gradient of the last backward pass.
    fn step(&mut self, learning_rate: f64);

    /// Returns the optimiser's state.
    fn moments(&self) -> &Moments;

    /// Restores an optimiser's state.
    fn restore(&mut self, moments: Moments);
}

/// A model without trainable parameters.
#[derive(Debug, Default)]
pub struct NoParameters {
    parameters: Parameters,
    gradient: FlatGradient,
    moments: Moments,
}

impl NoParameters {
    /// Creates a model that keeps these parameters and never trains them.
    pub fn keeping(parameters: Parameters) -> Self {
        Self { parameters, ..Self::default() }
    }
}

impl Learner for NoParameters {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        self.parameters.overwrite(parameters)
    }

    fn step(&mut self, _learning_rate: f64) {}

    fn moments(&self) -> &Moments {
        &self.moments
    }

    fn restore(&mut self, moments: Moments) {
        self.moments = moments;
    }
}

/// A trained module.
#[derive(Debug)]
pub struct Trainable<M> {
    /// The module with the current parameters, built on first use after they change.
    module: OnceCell<M>,
    /// The previous module.
    earlier: M,
    parameters: Parameters,
    gradient: FlatGradient,
    optimizer: Optimizer,
    device: Device,
}

impl<M: Module> Trainable<M> {
    /// Wraps a module on `device`, which must be an autodiff device.
    pub fn new(module: M, optimizer: OptimizerSettings, device: &Device) -> Self {
        let parameters = Parameters::from_module(&module);
        let optimizer = Optimizer::new(optimizer);
        let (module, earlier) = (OnceCell::from(module.clone()), module);
        let gradient = FlatGradient::default();
        Self { module, earlier, parameters, gradient, optimizer, device: device.clone() }
    }

    /// Returns the module, whose parameters are tracked.
    pub fn module(&self) -> &M {
        self.module.get_or_init(|| self.parameters.write(self.earlier.clone(), &self.device))
    }

    /// Returns the module with untracked parameters, for evaluation.
    pub fn untracked(&self) -> M {
        self.module().valid()
    }

    /// Runs the backward pass from a scalar and keeps the gradients of the module's parameters. `other` is a
    /// further leaf of the graph; the function returns its gradient.
    pub fn backward(&mut self, scalar: &Tensor<1>, other: Option<&Tensor<3>>) -> Option<Tensor<3>> {
        let mut gradients = scalar.backward();
        let wanted = other.and_then(|leaf| leaf.grad_remove(&mut gradients));
        self.gradient = gradients_of(self.module(), gradients);
        wanted
    }

    /// Returns the parameters, like [`Learner::parameters`].
    pub fn flat(&self) -> &Parameters {
        &self.parameters
    }

    /// Discards the gradient of the last backward pass: no parameter has a gradient.
    pub fn forget_gradient(&mut self) {
        let FlatGradient { values, present } = &mut self.gradient;
        values.clear();
        values.resize(self.parameters.values().len(), 0.0);
        present.clear();
        present.resize(self.parameters.segments().len(), false);
    }

    /// Adds a gradient computed outside the graph to the gradient of the parameter `name`.
    ///
    /// # Panics
    /// If there is no such parameter, or its size differs.
    pub fn add_to_gradient(&mut self, name: &str, values: &[f32]) {
        let segments = self.parameters.segments();
        let index = segments.iter().position(|segment| segment.name == name);
        let index = index.unwrap_or_else(|| panic!("the model has the parameter `{name}`"));
        self.gradient.present[index] = true;
        let place = &mut self.gradient.values[segments[index].range.clone()];
        assert_eq!(place.len(), values.len(), "the gradient of `{name}`");
        place.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }

    /// Marks the module as outdated. The next use rebuilds it from the parameters; models that compute on the
    /// host never rebuild it.
    fn refresh(&mut self) {
        if let Some(module) = self.module.take() {
            self.earlier = module;
        }
    }
}

impl<M: Module> Learner for Trainable<M>
where
    M: Send,
{
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn gradient(&self) -> &FlatGradient {
        &self.gradient
    }

    fn load(&mut self, parameters: &Parameters) -> Result<(), ParameterError> {
        // A failed load may already have overwritten some parameters.
        self.refresh();
        self.parameters.overwrite(parameters)
    }

    fn step(&mut self, learning_rate: f64) {
        self.optimizer.step(learning_rate, &mut self.parameters, &self.gradient);
        self.refresh();
    }

    fn moments(&self) -> &Moments {
        self.optimizer.moments()
    }

    fn restore(&mut self, moments: Moments) {
        self.optimizer.restore(moments);
    }
}
