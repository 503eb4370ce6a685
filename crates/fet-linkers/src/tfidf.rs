//! `tfidf`: compares plain texts by the cosine of tf-idf vectors of character n-grams, the unprotected
//! baseline for `clk`.
//!
//! The difference between its results and those of `clk` is the price of protecting the keys.

use fet_linkage::text::TextRows;
use fet_linkage::tfidf::search;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nearest::CLEAR;
use crate::{known, links};
use fet_core::data::KeyKind;
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, check_text};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `tfidf` (Salton and Buckley 1988).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TfidfSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Texts that count as missing in addition to empty cells, in any case, such as ["n/a", "unknown"].
    pub missing: Vec<String>,
    /// Length of the shortest n-grams of a word, in characters, including a blank on either side.
    #[schemars(range(min = 1, max = 8))]
    pub shortest: usize,
    /// Length of the longest n-grams of a word.
    #[schemars(range(min = 1, max = 8), extend("x-rule" = "at least `shortest`"))]
    pub longest: usize,
}

impl Default for TfidfSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, missing: Vec::new(), shortest: 2, longest: 4 }
    }
}

impl Recipe<dyn Linker> for TfidfSettings {
    fn check(&self) -> Result<(), Violation> {
        if self.longest < self.shortest {
            let rule = format!("must be at least `shortest` ({})", self.shortest);
            return Err(Violation::new("longest", rule, self.longest));
        }
        Ok(())
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Tfidf(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<TfidfSettings>("tfidf", "texts compared in the clear by tf-idf of character n-grams")
}

struct Tfidf(TfidfSettings);

impl Linker for Tfidf {
    fn about(&self) -> About {
        let about = About::new(self.0.neighbours, KeyKind::Text, CLEAR);
        About { floor: Some(0.0), has_threshold: true, ..about }
    }

    fn data_holder(&self, _seed: u64) -> Box<dyn DataHolder> {
        Box::new(Compare(self.0.clone()))
    }
}

struct Compare(TfidfSettings);

impl DataHolder for Compare {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let TfidfSettings { neighbours, pad, missing, shortest, longest } = &self.0;
        let (queries, records) = check_text(task.queries, task.records, *neighbours, *pad)?;
        let take = records.rows().min(*neighbours);
        let fields = queries.columns();
        let (queries, records) = (known(queries, missing), known(records, missing));
        let queries = TextRows { cells: &queries.cells(), fields };
        let records = TextRows { cells: &records.cells(), fields };
        let found = search(&queries, &records, (*shortest, *longest), take, task.progress);
        Ok(links(*neighbours, found))
    }
}
