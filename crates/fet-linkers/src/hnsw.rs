//! `hnsw`: approximately the K nearest keys, for many dimensions, by a hierarchical navigable small world graph.
//!
//! Its recall depends on the data and on `search`; RESULTS.md has measured figures. Below a dozen dimensions `nearest`
//! is exact and faster.

use fet_linkage::hnsw::{Graph, HnswSettings as Care};
use serde::{Deserialize, Serialize};

use crate::nearest::CLEAR;
use crate::{check_neighbours, links};
use fet_core::data::{KeyKind, Matrix};
use fet_core::linker::{About, LinkError, LinkTask, Linker, Links, Owner, check_numbers};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `hnsw`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HnswSettings {
    /// K, the number of neighbours per primary record.
    pub neighbours: usize,
    /// Whether a party with fewer than K records repeats them (the repeats are masked out).
    pub pad: bool,
    /// Candidates examined when a record is inserted into the graph: more is better and slower.
    pub construction: usize,
    /// Candidates examined for a query, at least K: more is better and slower.
    pub search: usize,
}

impl Default for HnswSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, construction: 100, search: 200 }
    }
}

impl Recipe<dyn Linker> for HnswSettings {
    fn check(&self) -> Result<(), Violation> {
        for (field, value) in [("construction", self.construction), ("search", self.search)] {
            if value == 0 {
                return Err(Violation::new(field, "must be at least 1", 0));
            }
        }
        check_neighbours(self.neighbours)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Hnsw(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<HnswSettings>("hnsw", "nearly the K nearest keys, for keys of many dimensions")
}

struct Hnsw(HnswSettings);

impl Linker for Hnsw {
    fn about(&self) -> About {
        About::new(self.0.neighbours, KeyKind::Numbers, CLEAR)
    }

    fn owner(&self, seed: u64) -> Box<dyn Owner> {
        Box::new(World { settings: self.0.clone(), seed })
    }
}

struct World {
    settings: HnswSettings,
    seed: u64,
}

impl Owner for World {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let HnswSettings { neighbours, pad, construction, search: candidates } = self.settings;
        let (queries, records) = check_numbers(task.queries, task.records, neighbours, pad)?;
        let take = neighbours.min(records.rows());
        let care = Care { construction, search: candidates, seed: self.seed };
        let graph =
            Graph::new(&singles(records).map_err(LinkError::of_own_table)?, queries.columns(), take, care);
        let found = graph.search(&singles(queries)?, take, task.progress);
        Ok(links(neighbours, found))
    }
}

/// The keys as 32-bit floats; refuses keys whose distances overflow them.
fn singles(keys: &Matrix<f64>) -> Result<Vec<f32>, LinkError> {
    const MOST: f64 = 1e18;
    if let Some(place) = keys.values().iter().position(|x| x.abs() > MOST) {
        let problem =
            format!("its numbers must be within ±{MOST:e}; one of them is {:e}", keys.values()[place]);
        return Err(LinkError::Value { row: place / keys.columns() + 1, problem });
    }
    Ok(keys.values().iter().map(|&x| x as f32).collect())
}
