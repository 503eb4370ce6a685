//! `solo`: the primary alone, a multi-layer perceptron on its own keys and features (paper, section 7.1).

use burn::module::Module;
use burn::tensor::Tensor;
use fet_core::encoder::Encoder;
use fet_core::memory::MOST_WIDTH;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext,
};
use fet_core::model::Pass;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_train::model::{Init, Perceptron};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `solo` (paper, section 7.1).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SoloSettings {
    /// The widths of the perceptron's hidden layers, in order; empty for an affine model.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub hidden: Vec<usize>,
    /// The dropout rate after each hidden layer; 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f64,
    /// The optimiser of the model.
    pub optimizer: OptimizerSettings,
}

impl Default for SoloSettings {
    fn default() -> Self {
        Self { hidden: vec![400, 400], dropout: 0.0, optimizer: OptimizerSettings::adam() }
    }
}

impl Recipe<dyn Method> for SoloSettings {
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
