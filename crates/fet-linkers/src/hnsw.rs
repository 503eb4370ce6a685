//! `hnsw`: finds approximately the K nearest keys in many dimensions, with a hierarchical navigable small
//! world graph.
//!
//! Its recall depends on the data and on `search`; RESULTS.md has measured figures. Below a dozen dimensions,
//! `nearest` is exact and faster.

use fet_linkage::hnsw::{Graph, HnswSettings as Care};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::links;
use crate::nearest::CLEAR;
use fet_core::data::{KeyKind, Matrix};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, check_numbers};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `hnsw`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HnswSettings {
    /// Number K of records that are linked to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
    /// True if a party with fewer than K records repeats its records up to K (repeats are masked out). If
    /// false, the linker refuses such a party.
    pub pad: bool,
    /// Number of candidates examined when a record is inserted into the graph (ef_construction; Malkov &
    /// Yashunin 2018). A larger number finds more of the true neighbours and is slower.
    #[schemars(range(min = 1))]
    pub construction: usize,
    /// Number of candidates examined for a query (ef_search), at least K. A larger number finds more of the
    /// true neighbours and is slower.
    #[schemars(range(min = 1))]
    pub search: usize,
}

impl Default for HnswSettings {
    fn default() -> Self {
        Self { neighbours: 20, pad: false, construction: 100, search: 200 }
    }
}

impl Recipe<dyn Linker> for HnswSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Hnsw(self.clone())))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<HnswSettings>("hnsw", "approximately the K nearest keys, for keys of many dimensions")
}

struct Hnsw(HnswSettings);

impl Linker for Hnsw {
    fn about(&self) -> About {
        About::new(self.0.neighbours, KeyKind::Numbers, CLEAR)
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(World { settings: self.0.clone(), seed })
    }
}

struct World {
    settings: HnswSettings,
    seed: u64,
}

impl DataHolder for World {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let HnswSettings { neighbours, pad, construction, search: candidates } = self.settings;
        let (queries, records) = check_numbers(task.queries, task.records, neighbours, pad)?;
        let take = neighbours.min(records.rows());
        let care = Care { construction, search: candidates, seed: self.seed };
        let centre = centre(records);
        let graph = Graph::new(
            &singles(records, &centre).map_err(LinkError::of_own_table)?,
            queries.columns(),
            take,
            care,
        );
        let found = graph.search(&singles(queries, &centre)?, take, task.progress);
        Ok(links(neighbours, found))
    }
}

/// Returns the mean of each column. Keys that are far from 0 and near each other, such as times in seconds,
/// do not differ within the precision of 32 bits.
fn centre(keys: &Matrix<f64>) -> Vec<f64> {
    let rows = keys.rows() as f64;
    let column = |column| (0..keys.rows()).map(|row| keys.row(row)[column] / rows).sum();
    (0..keys.columns()).map(column).collect()
}

/// Returns the keys relative to `centre` as 32-bit floats. Refuses keys whose distances overflow.
fn singles(keys: &Matrix<f64>, centre: &[f64]) -> Result<Vec<f32>, LinkError> {
    const MOST: f64 = 1e18;
    if let Some(place) = keys.values().iter().position(|x| x.abs() > MOST) {
        let problem =
            format!("its numbers must be within ±{MOST:e}; one of them is {:e}", keys.values()[place]);
        return Err(LinkError::Value { row: place / keys.columns(), problem });
    }
    Ok(keys.values().iter().zip(centre.iter().cycle()).map(|(x, centre)| (x - centre) as f32).collect())
}
