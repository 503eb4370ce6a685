//! `edit`: texts compared in the clear by Jaro-Winkler similarity: the unprotected yardstick of `clk`.

use fet_linkage::edit::search;
use serde::{Deserialize, Serialize};

use crate::nearest::CLEAR;
use crate::{check_neighbours, check_weights, links};
use fet_core::data::{KeyKind, Keys};
use fet_core::linker::{LinkError, Linker, Links, Reveals, check_text};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `edit`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EditSettings {
    /// K, how many neighbours each primary record gets.
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them (the repeats are masked out).
    pub pad: bool,
    /// How much each field counts; empty for the same.
    pub weights: Vec<f64>,
}

impl Default for EditSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, weights: Vec::new() }
    }
}

impl Recipe<dyn Linker> for EditSettings {
    fn check(&self) -> Result<(), Violation> {
        check_weights(&self.weights)?;
        check_neighbours(self.neighbours)
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
    fn neighbours(&self) -> usize {
        self.0.neighbours
    }

    fn takes(&self) -> KeyKind {
        KeyKind::Text
    }

    fn floor(&self) -> Option<f32> {
        Some(0.0)
    }

    fn reveals(&self) -> Reveals {
        CLEAR
    }

    fn link(&self, queries: &Keys, records: &Keys, seed: u64) -> Result<Links, LinkError> {
        self.link_telling(queries, records, seed, &|_| ())
    }

    fn link_telling(
        &self,
        queries: &Keys,
        records: &Keys,
        _seed: u64,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Links, LinkError> {
        let (queries, records) = check_text(queries, records, self.0.neighbours, self.0.pad)?;
        let weights = crate::weights(&self.0.weights, queries.columns())?;
        let take = self.0.neighbours.min(records.rows());
        Ok(links(self.0.neighbours, search(queries.cells(), records.cells(), &weights, take, done)))
    }
}
