//! `solo`: a multi-layer perceptron on the primary's own keys and features (paper, section 7.1). With `key_encoding` it also sees the
//! positional encoding of `fet`, as a fair control.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_components::model::{Init, Inputs, KeyEncoding, Perceptron};
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext,
};
use fet_core::model::MOST_WIDTH;
use fet_core::model::Pass;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
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
    /// The encoding of the key as additional input; none in the paper.
    pub key_encoding: KeyEncoding,
    /// The optimiser of the model.
    pub optimizer: OptimizerSettings,
}

impl Default for SoloSettings {
    fn default() -> Self {
        let (key_encoding, optimizer) = (KeyEncoding::default(), OptimizerSettings::adam());
        Self { hidden: vec![400, 400], dropout: 0.0, key_encoding, optimizer }
    }
}

impl Recipe<dyn Method> for SoloSettings {
    fn check(&self) -> Result<(), Violation> {
        self.key_encoding.check()
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
        Plan { secondaries: false, optimizer: self.0.optimizer.clone(), ..Plan::default() }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let SoloSettings { hidden, dropout, key_encoding, optimizer } = &self.0;
        let mut init = Init::new(context.weights.clone(), context.device);
        let inputs =
            context.key_columns + context.feature_columns + key_encoding.outputs(context.key_columns);
        let network = Perceptron::new(&mut init, inputs, hidden, context.objective.outputs, *dropout);
        let inputs = Inputs::new(&mut init, key_encoding, context.key_columns);
        Ok(Box::new(PrimaryModel::new(SoloNetwork { network, inputs }, optimizer, context)))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Err(Violation::new("kind", "does not have a secondary part", "\"solo\"").within("method"))
    }
}

#[derive(Module, Debug)]
struct SoloNetwork {
    network: Perceptron,
    inputs: Inputs,
}

impl PrimaryNetwork for SoloNetwork {
    fn forward(&self, batch: &PrimaryBatch, _memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let own = Tensor::cat(vec![batch.keys.clone(), batch.features.clone()], 1);
        self.network.forward(self.inputs.join(batch.keys.clone(), own), pass)
    }
}
