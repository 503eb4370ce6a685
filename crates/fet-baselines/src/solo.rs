//! `solo`: the primary alone, a multi-layer perceptron on its own keys and features (paper, section 7.1).

use burn::tensor::Tensor;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, TrainOutcome,
};
use fet_core::model::{Init, Pass, Perceptron};
use fet_core::objective::Objective;
use fet_core::optimizer::OptimizerSettings;
use fet_core::parameters::host;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::trainable::{Learner, Trainable};
use serde::{Deserialize, Serialize};

/// Settings of `solo`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SoloSettings {
    /// Widths of the hidden layers.
    pub hidden: Vec<usize>,
    /// Dropout rate after each hidden layer.
    pub dropout: f64,
    /// How it is trained.
    pub optimizer: OptimizerSettings,
}

impl Default for SoloSettings {
    fn default() -> Self {
        Self { hidden: vec![400, 400], dropout: 0.0, optimizer: OptimizerSettings::adam() }
    }
}

impl Recipe<dyn Method> for SoloSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.hidden.contains(&0) {
            return Err(Violation::new(
                "hidden",
                "must name widths of at least 1",
                format!("{:?}", self.hidden),
            ));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(Violation::new("dropout", "must be at least 0 and below 1", self.dropout));
        }
        self.optimizer.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Solo(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<SoloSettings>("solo", "the primary party alone, a multi-layer perceptron")
}

struct Solo(SoloSettings);

impl Method for Solo {
    fn plan(&self) -> Plan {
        Plan { secondaries: false, learning_rate: self.0.optimizer.learning_rate, ..Plan::default() }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let mut init = Init::new(context.weights.clone(), context.device);
        let inputs = context.key_columns + context.feature_columns;
        let outputs = context.objective.outputs;
        let network = Perceptron::new(&mut init, inputs, &self.0.hidden, outputs, self.0.dropout);
        let trainable = Trainable::new(network, self.0.optimizer.clone(), context.device);
        Ok(Box::new(SoloPrimary { trainable, objective: context.objective }))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Err(Violation::new("kind", "has no secondary half", "\"solo\"").within("method"))
    }
}

struct SoloPrimary {
    trainable: Trainable<Perceptron>,
    objective: Objective,
}

impl SoloPrimary {
    fn forward(&self, model: &Perceptron, batch: &PrimaryBatch, pass: &mut Pass) -> Tensor<2> {
        let inputs = Tensor::cat(vec![batch.keys.clone(), batch.features.clone()], 1);
        self.objective.activate(model.forward(inputs, pass))
    }
}

impl Primary for SoloPrimary {
    fn learner(&self) -> &dyn Learner {
        &self.trainable
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.trainable
    }

    fn train(&mut self, batch: &PrimaryBatch, _memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        let output = self.forward(self.trainable.module(), batch, pass);
        let loss = self.objective.loss(output.clone(), &batch.labels);
        self.trainable.backward(&loss, None);
        let loss = f64::from(host(loss.without_autodiff())[0]);
        TrainOutcome { loss, memory_gradient: None, output: output.without_autodiff() }
    }

    fn predict(&self, batch: &PrimaryBatch, _memory: Option<Memory>) -> Tensor<2> {
        self.forward(&self.trainable.untracked(), batch, &mut Pass::evaluation())
    }
}
