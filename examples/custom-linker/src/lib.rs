//! An example of a plug-in in a separate crate: the linker `grid`, which rounds keys to a grid before it
//! searches for the nearest. A party could use it if it may only reveal coarse coordinates.
//!
//! The program includes this crate with `use custom_linker as _;` in `crates/fet/src/lib.rs`; no other code
//! refers to it. An experiment selects the linker with its name:
//!
//! ```toml
//! linker = { kind = "grid", neighbours = 20, step = 0.01 }
//! ```
//!
//! Copy this crate to write another plug-in.

use fet_core::data::{Keys, Matrix};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier, Reveals};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_linkers::NearestSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of `grid`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GridSettings {
    /// K, the number of neighbours for each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// Distance between two grid lines, in the keys' unit.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub step: f64,
}

impl Default for GridSettings {
    fn default() -> Self {
        Self { neighbours: 20, step: 0.1 }
    }
}

impl Recipe<dyn Linker> for GridSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Grid { nearest: self.nearest().build(&())?, step: self.step }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<GridSettings>("grid", "the K nearest keys after rounding to a grid (an example)")
}

impl GridSettings {
    fn nearest(&self) -> NearestSettings {
        NearestSettings { neighbours: self.neighbours, ..NearestSettings::default() }
    }
}

struct Grid {
    nearest: Box<dyn Linker>,
    step: f64,
}

impl Linker for Grid {
    fn about(&self) -> About {
        let about = self.nearest.about();
        let reveals = Reveals { secondary: "every primary key, to within half a step", ..about.reveals };
        About { reveals, ..about }
    }

    fn querier(&self, _seed: u64) -> Box<dyn Querier> {
        Box::new(Coarse { step: self.step })
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(CoarseRecords { nearest: self.nearest.data_holder(seed), step: self.step })
    }
}

/// The querier: it rounds the primary's keys before they leave.
struct Coarse {
    step: f64,
}

impl Querier for Coarse {
    fn encode(&mut self, queries: &Keys) -> Result<Keys, LinkError> {
        Ok(rounded(queries, self.step))
    }
}

/// The data holder, without additional warnings and without a challenge.
struct CoarseRecords {
    nearest: Box<dyn DataHolder>,
    step: f64,
}

impl DataHolder for CoarseRecords {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        self.nearest.link(&LinkTask { records: &rounded(task.records, self.step), ..*task })
    }
}

/// Rounds keys to the grid. Leaves keys that are not numbers unchanged, so that `nearest` refuses them.
fn rounded(keys: &Keys, step: f64) -> Keys {
    let round = |x: &f64| (x / step).round() * step;
    match keys.numbers() {
        Some(keys) => Matrix::new(keys.columns(), keys.values().iter().map(round).collect()).into(),
        None => keys.clone(),
    }
}
