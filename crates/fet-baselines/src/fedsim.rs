//! `fedsim`: SplitNN on each pair of a primary record and a neighbour, weighted and sorted by similarity
//! (Wu, Li, He; NeurIPS 2022).
//!
//! The primary learns the similarity of each neighbour to each of its records: a leak that the method needs and the
//! Federated Transformer avoids. With more than two parties one secondary is linked softly and the others join by their
//! nearest record, as in the paper's comparison. The layers are in `fedsim/model.rs`.

mod model;

use fet_core::aggregator::Aggregator;
use fet_core::encoder::Encoder;
use fet_core::method::{
    Method, Neighbours, Plan, Primary, PrimaryContext, PrimaryModel, SecondaryContext, Slots,
};
use fet_core::optimizer::OptimizerSettings;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_train::model::Init;
use serde::{Deserialize, Serialize};

use crate::split::{Local, check_widths, secondary};
use model::{Pairs, PairsShape};

/// Settings of `fedsim`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FedSimSettings {
    /// The local models.
    pub local: Local,
    /// Widths of the hidden layers of the model that each pair goes through.
    pub pair_hidden: Vec<usize>,
    /// Its output width for each pair.
    pub pair_outputs: usize,
    /// Whether a learned gate turns a similarity into a weight; otherwise the similarity itself is the weight.
    pub weight_gate: bool,
    /// Width of the hidden layer of that gate.
    pub gate_hidden: usize,
    /// Whether pairs are sorted by ascending similarity before they merge.
    pub sort_gate: bool,
    /// How pairs merge.
    pub merge: Merge,
    /// Channels of the convolution over the pairs.
    pub conv_channels: usize,
    /// The kernel size of the convolution, in pairs.
    pub conv_kernel: usize,
    /// Widths of the hidden layers after the convolution.
    pub conv_hidden: Vec<usize>,
    /// Widths of the hidden layers without a convolution.
    pub mlp_hidden: Vec<usize>,
    /// Dropout rate before each layer of the merge.
    pub dropout: f64,
    /// The secondary that is linked softly, from 1; the others join by their nearest record.
    pub soft_party: usize,
    /// How every half is trained.
    pub optimizer: OptimizerSettings,
}

/// How the K pairs of a record are merged into one prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// A convolution over neighbouring pairs, then a perceptron.
    Conv,
    /// A perceptron on all pairs at once.
    Mlp,
}

impl Default for FedSimSettings {
    fn default() -> Self {
        Self {
            local: Local::default(),
            pair_hidden: vec![100],
            pair_outputs: 10,
            weight_gate: true,
            gate_hidden: 10,
            sort_gate: true,
            merge: Merge::Conv,
            conv_channels: 8,
            conv_kernel: 7,
            conv_hidden: vec![400],
            mlp_hidden: vec![1600, 1000, 400],
            dropout: 0.3,
            soft_party: 1,
            optimizer: OptimizerSettings::lamb(),
        }
    }
}

impl Recipe<dyn Method> for FedSimSettings {
    fn check(&self) -> Result<(), Violation> {
        self.local.check()?;
        check_widths("pair_hidden", &self.pair_hidden)?;
        check_widths("conv_hidden", &self.conv_hidden)?;
        check_widths("mlp_hidden", &self.mlp_hidden)?;
        let counts = [
            ("pair_outputs", self.pair_outputs),
            ("gate_hidden", self.gate_hidden),
            ("conv_channels", self.conv_channels),
            ("conv_kernel", self.conv_kernel),
            ("soft_party", self.soft_party),
        ];
        if let Some((field, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(Violation::new(field, "must be at least 1", 0));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(Violation::new("dropout", "must be at least 0 and below 1", self.dropout));
        }
        self.optimizer.check()
    }

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
            learning_rate: self.0.optimizer.learning_rate,
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if !slots.aggregator.keeps_parts_apart() {
            let rule = "must keep the parties' parts apart, as \"concat\" does, for the method \"fedsim\": it joins the \
                        parties' records to pairs";
            return Err(slots.refuse::<dyn Aggregator>(rule));
        }
        if !slots.privacy.is_identity() {
            let rule = "must protect nothing, as \"none\" does, for the method \"fedsim\": it reveals similarities \
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
        secondary(encoder, context, &self.0.local, 0.0, &self.0.optimizer)
    }
}
