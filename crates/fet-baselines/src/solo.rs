//! `solo`: the primary alone, a multi-layer perceptron on its own keys and features (paper, section 7.1).

use burn::module::Module;
use burn::tensor::Tensor;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext,
};
use fet_core::model::Pass;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_train::model::{Init, Perceptron};
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
        Ok(Box::new(PrimaryModel::new(Alone { network }, &self.0.optimizer, context)))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Err(Violation::new("kind", "has no secondary half", "\"solo\"").within("method"))
    }
}

#[derive(Module, Debug)]
struct Alone {
    network: Perceptron,
}

impl PrimaryNetwork for Alone {
    fn forward(&self, batch: &PrimaryBatch, _memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        self.network.forward(Tensor::cat(vec![batch.keys.clone(), batch.features.clone()], 1), pass)
    }
}
