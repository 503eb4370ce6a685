//! `fet-alone`: the Federated Transformer's decoder with an empty memory, the control of `fet`.
//!
//! It has every layer of `fet` at the primary, including the encoding of the primary's own key, but no data from others. The difference
//! between `fet` and `fet-alone` is the contribution of the other parties.

use burn::tensor::{Device, Tensor};
use fet_components::methods::FetSettings;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Memory, Method, Plan, Primary, PrimaryBatch, PrimaryContext, SecondaryContext, TrainOutcome,
};
use fet_core::model::Pass;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::trainable::Learner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `fet-alone`: those of `fet`, except the ones about other parties.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FetAloneSettings(pub FetSettings);

impl Recipe<dyn Method> for FetAloneSettings {
    fn check(&self) -> Result<(), Violation> {
        let FetSettings { party_dropout, pe_average_every, .. } = self.0;
        let rule = "must be 0: there are no other parties";
        if party_dropout != 0.0 {
            return Err(Violation::new("party_dropout", rule, party_dropout));
        }
        if pe_average_every != 0 {
            return Err(Violation::new("pe_average_every", rule, pe_average_every));
        }
        self.0.check()
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(FetAlone { whole: self.0.build(&())?, settings: self.0.clone() }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<FetAloneSettings>("fet-alone", "the decoder of `fet` without other parties: its control")
}

struct FetAlone {
    whole: Box<dyn Method>,
    settings: FetSettings,
}

impl Method for FetAlone {
    fn plan(&self) -> Plan {
        Plan { secondaries: false, optimizer: self.settings.optimizer.clone(), ..Plan::default() }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let width = self.settings.hidden;
        let weights = context.weights.clone();
        let decoder =
            self.whole.primary(&PrimaryContext { memory_width: width, positions: 1, weights, ..*context })?;
        Ok(Box::new(MemorylessPrimary { decoder, width, device: context.device.clone().without_autodiff() }))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Err(Violation::new("kind", "does not have a secondary part", "\"fet-alone\"").within("method"))
    }
}

/// A decoder with a memory of zeros.
struct MemorylessPrimary {
    decoder: Box<dyn Primary>,
    width: usize,
    device: Device,
}

impl MemorylessPrimary {
    fn nothing(&self, batch: &PrimaryBatch) -> Option<Memory> {
        let tensor = Tensor::zeros([batch.keys.dims()[0], 1, self.width], &self.device);
        Some(Memory { tensor, available: 1, similarities: Vec::new() })
    }
}

impl Primary for MemorylessPrimary {
    fn learner(&self) -> &dyn Learner {
        self.decoder.learner()
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        self.decoder.learner_mut()
    }

    fn train(&mut self, batch: &PrimaryBatch, _memory: Option<Memory>, pass: &mut Pass) -> TrainOutcome {
        let memory = self.nothing(batch);
        TrainOutcome { memory_gradient: None, ..self.decoder.train(batch, memory, pass) }
    }

    fn predict(&self, batch: &PrimaryBatch, _memory: Option<Memory>) -> Tensor<2> {
        self.decoder.predict(batch, self.nothing(batch))
    }
}
