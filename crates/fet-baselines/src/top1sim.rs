//! `top1sim`: each primary record joined with the nearest record of every secondary, then SplitNN (paper,
//! section 7.1).
//!
//! Keys serve linkage only, and no model sees them. As a fair control, `key_encoding` makes every party encode its own keys, as `fet`
//! does. The encoder slot is a secondary's local model.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_components::model::{Init, Inputs, KeyEncoding, Perceptron};
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Neighbours, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext,
};
use fet_core::model::MOST_WIDTH;
use fet_core::model::Pass;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::split::{Local, SecondaryModel};

/// Settings of `top1sim` (paper, section 7.1).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Top1SimSettings {
    /// The parties' local models.
    pub local: Local,
    /// The widths of the hidden layers of the primary's model on the joined representations, in order; empty for an affine
    /// model.
    #[schemars(inner(range(min = 1, max = MOST_WIDTH)))]
    pub hidden: Vec<usize>,
    /// The dropout rate after each hidden layer; 0 for none.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub dropout: f64,
    /// The encoding of each party's own keys as input of its local model; none in the paper.
    pub key_encoding: KeyEncoding,
    /// The optimiser of the primary's model and of every secondary's.
    pub optimizer: OptimizerSettings,
}

impl Default for Top1SimSettings {
    fn default() -> Self {
        let (key_encoding, optimizer) = (KeyEncoding::default(), OptimizerSettings::lamb());
        Self { local: Local::default(), hidden: vec![100], dropout: 0.0, key_encoding, optimizer }
    }
}

impl Recipe<dyn Method> for Top1SimSettings {
    fn check(&self) -> Result<(), Violation> {
        self.key_encoding.check()?;
        if self.key_encoding.width > 0 && !self.local.width.is_multiple_of(2) {
            let rule = "must be even where keys are encoded: the encoding of a secondary's key is as wide";
            return Err(Violation::new("local.width", rule, self.local.width));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Top1Sim(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<Top1SimSettings>("top1sim", "the nearest record of each party, joined (SplitNN)")
}

struct Top1Sim(Top1SimSettings);

impl Method for Top1Sim {
    fn plan(&self) -> Plan {
        Plan {
            encoder: "mlp",
            aggregator: "concat",
            width: self.0.local.width,
            neighbours: Neighbours::First,
            optimizer: self.0.optimizer.clone(),
            ..Plan::default()
        }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let Top1SimSettings { local, hidden, dropout, key_encoding, optimizer } = &self.0;
        let mut init = Init::new(context.weights.clone(), context.device);
        let joined = local.width + context.memory_width;
        let own = context.feature_columns + key_encoding.outputs(context.key_columns);
        let model = Joined {
            local: local.model(&mut init, own, *dropout),
            aggregation: Perceptron::new(&mut init, joined, hidden, context.objective.outputs, *dropout),
            inputs: Inputs::new(&mut init, key_encoding, context.key_columns),
        };
        Ok(Box::new(PrimaryModel::new(model, optimizer, context)))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        let Top1SimSettings { local, dropout, key_encoding, optimizer, .. } = &self.0;
        SecondaryModel { width: local.width, dropout: *dropout, key_encoding, optimizer }
            .build(encoder, context)
    }
}

#[derive(Module, Debug)]
struct Joined {
    local: Perceptron,
    aggregation: Perceptron,
    inputs: Inputs,
}

impl PrimaryNetwork for Joined {
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let memory = memory.expect("the trainer gives a memory to a method with secondaries").tensor.clone();
        let [rows, _, width] = memory.dims();
        let own = self.inputs.join(batch.keys.clone(), batch.features.clone());
        let own = self.local.forward(own, pass);
        self.aggregation.forward(Tensor::cat(vec![own, memory.reshape([rows, width])], 1), pass)
    }
}
