//! `top1`: the nearest key alone; `nearest` with K = 1 and nothing to set but the metric.

use serde::{Deserialize, Serialize};

use crate::nearest::{CLEAR, Metric, Nearest, NearestSettings};
use fet_core::data::Keys;
use fet_core::linker::{LinkError, Linker, Links, Reveals};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `top1`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Top1Settings {
    /// How distance is measured.
    pub metric: Metric,
}

impl Recipe<dyn Linker> for Top1Settings {
    fn check(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Top1(Nearest(NearestSettings { neighbours: 1, pad: false, metric: self.metric }))))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<Top1Settings>("top1", "the nearest key alone")
}

struct Top1(Nearest);

impl Linker for Top1 {
    fn neighbours(&self) -> usize {
        1
    }

    fn reveals(&self) -> Reveals {
        CLEAR
    }

    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError> {
        self.0.link(queries, records, seed)
    }
}
