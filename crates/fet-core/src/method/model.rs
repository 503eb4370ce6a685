//! The adapter that makes a module the primary's half of a method.

use burn::module::Module;
use burn::tensor::Tensor;

use super::{Memory, Primary, PrimaryBatch, PrimaryContext, TrainOutcome};
use crate::model::Pass;
use crate::objective::Objective;
use crate::optimizer::OptimizerSettings;
use crate::parameters::host;
use crate::trainable::{Learner, Trainable};

/// A module that predicts from the primary's records and the memory.
pub trait PrimaryNetwork: Module {
    /// Returns the output of a batch.
    ///
    /// # Shapes
    /// - result: [B, outputs], before the task's output activation
    ///
    /// # Panics
    /// If the memory is missing although the method's plan has secondaries: the trainer passes one.
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2>;
}

/// Adapter that makes a [`PrimaryNetwork`] a [`Primary`].
#[derive(Debug)]
pub struct PrimaryModel<N> {
    trainable: Trainable<N>,
    objective: Objective,
}

impl<N: PrimaryNetwork> PrimaryModel<N> {
    /// Wraps `network`, built in `context`, for training.
    pub fn new(network: N, optimizer: &OptimizerSettings, context: &PrimaryContext<'_>) -> Self {
        let trainable = Trainable::new(network, optimizer.clone(), context.device);
        Self { trainable, objective: context.objective }
    }
}

impl<N: PrimaryNetwork + Send> Primary for PrimaryModel<N> {
    fn learner(&self) -> &dyn Learner {
        &self.trainable
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trainable
    }

    fn train(&mut self, batch: &PrimaryBatch, memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        // The graph ends at the memory: it is a leaf here, and a message carries its gradient back.
        let memory =
            memory.map(|memory| Memory { tensor: memory.tensor.clone().autodiff().require_grad(), ..memory });
        let leaf = memory.as_ref().map(|memory| memory.tensor.clone());
        let output = self.trainable.module().forward(batch, memory.as_ref(), pass);
        let output = self.objective.activate(output);
        let loss = self.objective.loss(output.clone(), &batch.labels, &batch.weights);
        let memory_gradient = self.trainable.backward(&loss, leaf.as_ref());
        let loss = f64::from(host(loss.without_autodiff())[0]);
        TrainOutcome { loss, memory_gradient, output: output.without_autodiff() }
    }

    fn predict(&self, batch: &PrimaryBatch, memory: Option<Memory>) -> Tensor<2> {
        let output = self.trainable.untracked().forward(batch, memory.as_ref(), &mut Pass::evaluation());
        self.objective.activate(output)
    }
}
