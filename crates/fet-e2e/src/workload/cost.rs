//! Number of floating-point operations of a FeT training step, counting only matrix products.
//!
//! The count follows the exact transformations: distinct records once, no projection of the memory, one
//! position of the decoder. The backward pass counts twice the forward pass. Element-wise operations are not
//! counted.

use std::collections::BTreeSet;

use fet_core::data::VerticalData;
use fet_core::experiment::Experiment;
use fet_core::linker::{Linker, link};

use super::Workload;

/// Returns the mean number of distinct records in a batch of `batch` rows, over the first batches.
///
/// # Panics
/// Panics if the tables cannot be linked.
fn distinct_neighbours(experiment: &Experiment, tables: &VerticalData, batch: usize) -> f64 {
    let linker: Box<dyn Linker> = experiment.linker.build(&()).expect("a sound preset");
    let rows: Vec<usize> = (0..tables.primary.rows().min(4 * batch)).collect();
    let queries = tables.primary.keys.select_rows(&rows);
    let keys = &tables.secondaries[0].keys;
    let links = link(linker.as_ref(), &queries, keys, 0, &|_| ()).expect("the tables can be linked");
    let batches: Vec<usize> = rows
        .chunks(batch)
        .map(|rows| rows.iter().flat_map(|&row| links.row(row)).collect::<BTreeSet<_>>().len())
        .collect();
    batches.iter().sum::<usize>() as f64 / batches.len() as f64
}

/// Returns the operations of a step of `batch` rows on these tables.
///
/// # Panics
/// Panics if the tables cannot be linked.
pub fn operations(workload: &Workload, experiment: &Experiment, tables: &VerticalData, batch: f64) -> f64 {
    let table = toml::Table::try_from(experiment).expect("an experiment is a table");
    let dropout = table["method"]["party_dropout"].as_float().unwrap_or(0.0);
    let active = workload.secondaries as f64 - (dropout * workload.secondaries as f64).floor();
    operations_of(workload, &table, batch, active, distinct_neighbours(experiment, tables, batch as usize))
}

/// Returns the operations of a step, given the active secondaries and the distinct records of each.
fn operations_of(workload: &Workload, table: &toml::Table, batch: f64, active: f64, distinct: f64) -> f64 {
    let number = |slot: &str, field: &str| table[slot][field].as_integer().expect("a number") as f64;
    let (k, h) = (number("linker", "neighbours"), number("method", "hidden"));
    let (heads, blocks) = (number("method", "heads"), number("encoder", "blocks"));
    let decoder_blocks = number("method", "agg_blocks");
    let m = workload.key_columns as f64;
    let tokens = batch * k;

    let embedding = |rows: f64, features: f64| rows * (2.0 * (m + features) * h + 8.0 * h * h + m * h);
    let mask = batch * 2.0 * (m * k * 2.0 * m * k + 2.0 * m * k * k);
    let block = tokens * (4.0 * k * h + 10.0 * h * h);
    let projections = 6.0 * h * h * (distinct + (blocks - 1.0) * tokens);
    let secondary = embedding(distinct, workload.features as f64) + mask + blocks * block + projections;
    let decoder = batch * decoder_blocks * (20.0 * h * h + 4.0 * heads * h * k);
    let primary = embedding(batch, workload.primary_features as f64) + decoder;
    3.0 * (active * secondary + primary)
}
