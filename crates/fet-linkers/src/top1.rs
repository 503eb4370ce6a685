//! `top1`: finds only the nearest key. It is `nearest` with K = 1, and its only setting is the metric.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::{Metric, NearestSettings};
use fet_core::linker::Linker;
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `top1`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Top1Settings {
    /// Measure of the distance between keys.
    pub metric: Metric,
}

impl Recipe<dyn Linker> for Top1Settings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        NearestSettings { neighbours: 1, metric: self.metric, ..NearestSettings::default() }.build(&())
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<Top1Settings>("top1", "only the nearest key")
}
