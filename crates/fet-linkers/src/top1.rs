//! `top1`: only the nearest key; `nearest` with K = 1, where only the metric can be set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::{Metric, NearestSettings};
use fet_core::linker::Linker;
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `top1`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Top1Settings {
    /// How the distance between keys is measured.
    pub metric: Metric,
}

impl Recipe<dyn Linker> for Top1Settings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        NearestSettings { neighbours: 1, pad: false, metric: self.metric }.build(&())
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<Top1Settings>("top1", "the nearest key alone")
}
