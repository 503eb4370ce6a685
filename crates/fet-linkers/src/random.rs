//! `random`: draws K random records, independent of the keys. It is the null baseline that every real linker
//! must beat.
//!
//! The links come without similarities, which would be meaningless.

use rand::seq::index;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blind::{self, Count};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::rng::{Purpose, stream};

/// Settings of `random`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RandomSettings {
    /// Number K of records that are drawn for each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
}

impl Default for RandomSettings {
    fn default() -> Self {
        Self { neighbours: 20 }
    }
}

impl Recipe<dyn Linker> for RandomSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Random { neighbours: self.neighbours }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<RandomSettings>("random", "K records drawn at random: the null hypothesis")
}

struct Random {
    neighbours: usize,
}

impl Linker for Random {
    fn about(&self) -> About {
        blind::about(self.neighbours)
    }

    fn querier(&self, _seed: u64) -> Box<dyn Querier> {
        Box::new(Count)
    }

    fn data_holder(&self, seed: u64) -> Box<dyn DataHolder> {
        Box::new(Draw { neighbours: self.neighbours, seed })
    }
}

struct Draw {
    neighbours: usize,
    seed: u64,
}

impl DataHolder for Draw {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let (queries, records) = (blind::count(task, self.neighbours)?, task.records.rows());
        // New rows get different records than the run's rows at the same places.
        let mut rng = stream(self.seed, 0, Purpose::Linking, if task.new_rows { 2 } else { 0 });
        let draw = |_| index::sample(&mut rng, records, self.neighbours).into_iter();
        let indices = (0..queries).flat_map(draw).map(|record| record as u32).collect();
        (task.progress)(queries);
        Ok(Links::without_similarities(self.neighbours, self.neighbours, indices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::{Keys, Matrix};

    /// With the same records, new rows would get what the model learned from the run's rows at their places.
    #[test]
    fn new_rows_draw_other_records_than_the_rows_of_the_run() {
        let keys = Keys::from(Matrix::new(1, (0..500).map(f64::from).collect()));
        let linker = Random { neighbours: 2 };
        let links = |new_rows| {
            let queries = linker.querier(1).encode(&keys).expect("it can be encoded");
            let task = LinkTask { new_rows, ..LinkTask::new(&queries, &keys) };
            linker.data_holder(1).link(&task).expect("linkable")
        };
        let (run, new) = (links(false), links(true));
        assert_eq!(links(true), new, "they repeat");
        let same = (0..500).filter(|&row| run.row(row) == new.row(row)).count();
        // Two ordered draws of 2 out of 500 agree with probability 4e-6. One of 500 rows agrees with
        // probability 2e-3, and two with 2e-6 (α).
        assert!(same < 2, "{same} rows");
    }
}
