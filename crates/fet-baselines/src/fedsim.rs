//! `fedsim`: SplitNN on each pair of a primary record and a neighbour, weighted and sorted by similarity
//! (Wu, Li, He; NeurIPS 2022).
//!
//! The primary learns the similarity of each neighbour to each of its records: a leak that the method needs and the
//! Federated Transformer avoids. With more than two parties one secondary is linked softly and the others join by their
//! nearest record, as in the paper's comparison. The layers are in `fedsim/model.rs`.

mod model;
mod settings;

use fet_components::model::{Init, KeyEncoding};
use fet_core::aggregator::Aggregator;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Method, Neighbours, Plan, Primary, PrimaryContext, PrimaryModel, SecondaryContext, Slots,
};
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};

use crate::split::SecondaryModel;
use model::{Pairs, PairsShape};

pub use settings::{FedSimSettings, Merge};

impl Recipe<dyn Method> for FedSimSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(FedSim(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<FedSimSettings>(
        "fedsim",
        "pairs of records weighed and sorted by similarity, which the parties reveal",
    )
}

struct FedSim(FedSimSettings);

impl Method for FedSim {
    fn plan(&self) -> Plan {
        Plan {
            encoder: "mlp",
            aggregator: "concat",
            width: self.0.local.width,
            neighbours: Neighbours::FirstBut(self.0.soft_party),
            similarities: true,
            optimizer: self.0.optimizer.clone(),
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if !slots.aggregator.keeps_parts_apart() {
            let rule = "must keep the parties' parts separate, like \"concat\", for the method \"fedsim\": it joins the \
                        parties' records to pairs";
            return Err(slots.refuse::<dyn Aggregator>(rule));
        }
        if !slots.privacy.is_identity() {
            let rule = "must be a mechanism without protection, such as \"none\", for the method \"fedsim\": it reveals similarities \
                        unprotected";
            return Err(slots.refuse::<dyn PrivacyMechanism>(rule));
        }
        Ok(())
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let settings = &self.0;
        if settings.soft_party > context.parties {
            let rule = format!("must not exceed the {} secondary parties", context.parties);
            return Err(Violation::new("method.soft_party", rule, settings.soft_party));
        }
        let mut init = Init::new(context.weights.clone(), context.device);
        let shape = PairsShape {
            features: context.feature_columns,
            positions: context.positions,
            memory_width: context.memory_width,
            objective: context.objective,
        };
        let pairs = Pairs::new(&mut init, settings, &shape);
        Ok(Box::new(PrimaryModel::new(pairs, &settings.optimizer, context)))
    }

    fn secondary(
        &self,
        encoder: &Slot<dyn Encoder>,
        context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        let FedSimSettings { local, optimizer, .. } = &self.0;
        let key_encoding = &KeyEncoding::default();
        SecondaryModel { width: local.width, dropout: 0.0, key_encoding, optimizer }.build(encoder, context)
    }
}
