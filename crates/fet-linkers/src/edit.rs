//! `edit`: compares plain texts by Jaro-Winkler similarity, the unprotected baseline for `clk`.

use fet_linkage::edit::search;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::CLEAR;
use crate::{check_weights, known, links};
use fet_core::data::KeyKind;
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, check_text};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `edit`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EditSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
    pub missing: Vec<String>,
    /// Weight of each key column in the mean similarity of two records; empty for equal weights.
    #[schemars(inner(range(min = 0)), extend("x-rule" = "empty, or weights with at least one above 0"))]
    pub weights: Vec<f64>,
}

impl Default for EditSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, missing: Vec::new(), weights: Vec::new() }
    }
}

impl Recipe<dyn Linker> for EditSettings {
    fn check(&self) -> Result<(), Violation> {
        check_weights(&self.weights)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Edit(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<EditSettings>("edit", "texts compared in the clear by edit similarity")
}

struct Edit(EditSettings);

impl Linker for Edit {
    fn about(&self) -> About {
        let about = About::new(self.0.neighbours, KeyKind::Text, CLEAR);
        About { floor: Some(0.0), independent: true, has_threshold: true, ..about }
    }

    fn data_holder(&self, _seed: u64) -> Box<dyn DataHolder> {
        Box::new(Compare(self.0.clone()))
    }
}

struct Compare(EditSettings);

impl DataHolder for Compare {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let EditSettings { neighbours, pad, missing, weights } = &self.0;
        let (queries, records) = check_text(task.queries, task.records, *neighbours, *pad)?;
        let weights = crate::weights(weights, queries.columns())?;
        let (queries, records) = (known(queries, missing), known(records, missing));
        let take = records.rows().min(*neighbours);
        Ok(links(*neighbours, search(&queries.cells(), &records.cells(), &weights, take, task.progress)))
    }
}
