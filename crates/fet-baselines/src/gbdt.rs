//! `gbdt-solo`, `gbdt-top1` and `gbdt-pooled`: gradient-boosted trees, the standard baseline for tables.
//!
//! `gbdt-solo` sees the primary's own keys and features. `gbdt-top1` adds the features of every secondary's nearest record,
//! `gbdt-pooled` those of all K records in several forms. Both send raw columns to the primary and protect no data; they show the
//! value of linked data for a model that is not federated.
//!
//! All trees are grown at once. Epoch e of the report uses the first e/20 of them, so that the validation rows choose the number of
//! trees, as they choose the epoch of every method.

mod forest;
mod pool;

use burn::tensor::Tensor;
use fet_core::aggregator::Aggregator;
use fet_core::encoder::{Encoder, NeighbourBatch};
use fet_core::method::{AtOnce, Method, Neighbours, Plan, Primary, PrimaryContext, SecondaryContext, Slots};
use fet_core::model::Pass;
use fet_core::optimizer::OptimizerSettings;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Recipe, Slot, Violation};
use fet_core::trainable::{Learner, NoParameters};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::forest::Forest;
pub(crate) use self::forest::{activated, input_columns};
pub use self::pool::Pool;
use crate::boosting::{Growth, PORTIONS};

/// Settings of `gbdt-solo`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GbdtSoloSettings(pub Growth);

/// Settings of `gbdt-top1`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GbdtTop1Settings(pub Growth);

/// Settings of `gbdt-pooled`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GbdtPooledSettings {
    /// The form in which the trees see the K linked records of each secondary.
    #[schemars(extend("x-rule" = "a list of at least one form, each named once"))]
    pub columns: Vec<Pool>,
    /// The growth of the trees.
    pub growth: Growth,
}

impl Default for GbdtPooledSettings {
    fn default() -> Self {
        Self {
            columns: vec![Pool::Nearest, Pool::Mean, Pool::Weighted, Pool::Similarity],
            growth: Growth::default(),
        }
    }
}

impl Recipe<dyn Method> for GbdtSoloSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Gbdt { kind: "gbdt-solo", growth: self.0.clone(), pools: Vec::new() }))
    }
}

impl Recipe<dyn Method> for GbdtTop1Settings {
    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        Ok(Box::new(Gbdt { kind: "gbdt-top1", growth: self.0.clone(), pools: vec![Pool::Nearest] }))
    }
}

impl Recipe<dyn Method> for GbdtPooledSettings {
    fn check(&self) -> Result<(), Violation> {
        Pool::check(&self.columns)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Method>, Violation> {
        let (growth, pools) = (self.growth.clone(), self.columns.clone());
        Ok(Box::new(Gbdt { kind: "gbdt-pooled", growth, pools }))
    }
}

inventory::submit! {
    Plugin::<dyn Method>::new::<GbdtSoloSettings>("gbdt-solo", "gradient-boosted trees on the primary's own columns")
}

inventory::submit! {
    Plugin::<dyn Method>::new::<GbdtTop1Settings>(
        "gbdt-top1",
        "gradient-boosted trees on columns pooled by nearest record: a baseline, not federated",
    )
}

inventory::submit! {
    Plugin::<dyn Method>::new::<GbdtPooledSettings>(
        "gbdt-pooled",
        "gradient-boosted trees on columns pooled over the K records: a baseline, not federated",
    )
}

struct Gbdt {
    kind: &'static str,
    growth: Growth,
    /// Forms of the linked records; empty for none.
    pools: Vec<Pool>,
}

impl Method for Gbdt {
    fn plan(&self) -> Plan {
        let all = self.pools.iter().any(|pool| pool.of_all());
        Plan {
            secondaries: !self.pools.is_empty(),
            encoder: "mlp",
            aggregator: "concat",
            width: 1,
            own_width: true,
            neighbours: if all { Neighbours::All } else { Neighbours::First },
            similarities: self.pools.iter().any(|pool| pool.uses_similarities()),
            optimizer: OptimizerSettings {
                learning_rate: self.growth.learning_rate,
                ..OptimizerSettings::default()
            },
            at_once: Some(AtOnce::epochs(PORTIONS)),
            ..Plan::default()
        }
    }

    fn check(&self, slots: &Slots<'_>) -> Result<(), Violation> {
        if self.pools.is_empty() { Ok(()) } else { check_raw_columns(self.kind, slots) }
    }

    fn primary(&self, context: &PrimaryContext<'_>) -> Result<Box<dyn Primary>, Violation> {
        let seed = context.weights.clone().next_u64();
        Ok(Box::new(Forest::new(self.growth.clone(), self.pools.clone(), seed, context.objective)))
    }

    fn secondary(
        &self,
        _encoder: &Slot<dyn Encoder>,
        _context: &SecondaryContext<'_>,
    ) -> Result<Box<dyn Encoder>, Violation> {
        Ok(Box::new(Columns::default()))
    }
}

/// Refuses an aggregator or a mechanism that changes the raw columns which the method `kind` pools.
pub(crate) fn check_raw_columns(kind: &str, slots: &Slots<'_>) -> Result<(), Violation> {
    if !slots.aggregator.keeps_parts_apart() {
        return Err(slots.refuse::<dyn Aggregator>(format!(
            "must keep the parties' parts apart, as \"concat\" does, for the method \"{kind}\": it pools raw columns"
        )));
    }
    if !slots.privacy.is_identity() {
        return Err(slots.refuse::<dyn PrivacyMechanism>(format!(
            "must protect nothing, as \"none\" does, for the method \"{kind}\": it pools raw columns"
        )));
    }
    Ok(())
}

/// Sends a neighbour's features unchanged.
#[derive(Default)]
pub(crate) struct Columns {
    nothing: NoParameters,
}

impl Encoder for Columns {
    fn learner(&self) -> &dyn Learner {
        &self.nothing
    }

    fn learner_mut(&mut self) -> &mut dyn Learner {
        &mut self.nothing
    }

    fn forward(&mut self, batch: &NeighbourBatch, _pass: &mut Pass, _tracked: bool) -> Tensor<3> {
        let width = batch.features.dims()[1];
        let features = batch.features.clone().without_autodiff();
        features.select(0, batch.slots.clone().without_autodiff()).reshape([
            batch.rows,
            batch.neighbours,
            width,
        ])
    }

    fn backward(&mut self, _gradient: Tensor<3>) {}
}
