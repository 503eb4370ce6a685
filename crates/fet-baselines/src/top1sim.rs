//! `top1sim`: each primary record joined with the nearest record of every secondary, then SplitNN (paper,
//! section 7.1).
//!
//! Keys are only for linkage: no model sees them. A secondary's local model is the encoder slot.

use burn::module::Module;
use burn::tensor::Tensor;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Neighbours, Plan, Primary, PrimaryBatch, PrimaryContext, PrimaryModel, PrimaryNetwork,
    SecondaryContext,
};
use fet_core::model::Pass;
use fet_core::optimizer::OptimizerSettings;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_train::model::{Init, Perceptron};
use serde::{Deserialize, Serialize};

use crate::split::{Local, secondary};

/// Settings of `top1sim`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Top1SimSettings {
    /// The local models.
    pub local: Local,
    /// Widths of the hidden layers of the primary's aggregation model.
    pub hidden: Vec<usize>,
    /// Dropout rate after each hidden layer.
    pub dropout: f64,
    /// How every half is trained.
    pub optimizer: OptimizerSettings,
}

impl Default for Top1SimSettings {
    fn default() -> Self {
        let optimizer = OptimizerSettings::lamb();
        Self { local: Local::default(), hidden: vec![100], dropout: 0.0, optimizer }
    }
}

impl Recipe<dyn Method> for Top1SimSettings {
    fn check(&self) -> Result<(), Violation> {
        self.local.check()?;
        crate::split::check_widths("hidden", &self.hidden)?;
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(Violation::new("dropout", "must be at least 0 and below 1", self.dropout));
        }
        self.optimizer.check()
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
            learning_rate: self.0.optimizer.learning_rate,
            ..Plan::default()
        }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let Top1SimSettings { local, hidden, dropout, optimizer } = &self.0;
        let mut init = Init::new(context.weights.clone(), context.device);
        let joined = local.width + context.memory_width;
        let model = Joined {
            local: local.model(&mut init, context.feature_columns, *dropout),
            aggregation: Perceptron::new(&mut init, joined, hidden, context.objective.outputs, *dropout),
        };
        Ok(Box::new(PrimaryModel::new(model, optimizer, context)))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        secondary(encoder, context, &self.0.local, self.0.dropout, &self.0.optimizer)
    }
}

#[derive(Module, Debug)]
struct Joined {
    local: Perceptron,
    aggregation: Perceptron,
}

impl PrimaryNetwork for Joined {
    fn forward(&self, batch: &PrimaryBatch, memory: Option<&Memory>, pass: &mut Pass) -> Tensor<2> {
        let memory = memory.expect("the trainer gives a memory to a method with secondaries").tensor.clone();
        let [rows, _, width] = memory.dims();
        let own = self.local.forward(batch.features.clone(), pass);
        self.aggregation.forward(Tensor::cat(vec![own, memory.reshape([rows, width])], 1), pass)
    }
}
