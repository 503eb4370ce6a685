//! `aligned`: for tables that were linked elsewhere. The records K·i to K·i + K − 1 belong to primary row i,
//! nearest first.
//!
//! A party needs exactly K records for each primary row, since an extra or missing record would shift all
//! later records. New rows need separate records ([`About::by_position`]).
//!
//! The linker does not compare keys, and no key leaves the primary: like `random`, it sends a zero for each
//! key. The links lack similarities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blind::{self, Count};
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Querier};
use fet_core::registry::{Plugin, Recipe, Violation};

/// Settings of `aligned`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlignedSettings {
    /// Number K of records that belong to each primary record.
    #[schemars(range(min = 1))]
    pub neighbours: usize,
}

impl Default for AlignedSettings {
    fn default() -> Self {
        Self { neighbours: 1 }
    }
}

impl Recipe<dyn Linker> for AlignedSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Aligned { neighbours: self.neighbours }))
    }
}

inventory::submit! {
    Plugin::<dyn Linker>::new::<AlignedSettings>("aligned", "the next K records for each row: tables that were linked elsewhere")
}

struct Aligned {
    neighbours: usize,
}

impl Linker for Aligned {
    fn about(&self) -> About {
        About { by_position: true, ..blind::about(self.neighbours) }
    }

    fn querier(&self, _seed: u64) -> Box<dyn Querier> {
        Box::new(Count)
    }

    fn data_holder(&self, _seed: u64) -> Box<dyn DataHolder> {
        Box::new(Rows { neighbours: self.neighbours })
    }
}

struct Rows {
    neighbours: usize,
}

impl DataHolder for Rows {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let neighbours = self.neighbours;
        let (queries, records) = (blind::count(task, neighbours)?, task.records.rows());
        let needed = neighbours.checked_mul(queries).filter(|&needed| needed == records);
        let needed = needed.ok_or(LinkError::Unaligned { neighbours, queries, records })?;
        (task.progress)(queries);
        Ok(Links::without_similarities(neighbours, neighbours, (0..needed as u32).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::{Keys, Matrix};

    #[test]
    fn records_belong_to_rows_in_their_order() {
        let keys = |rows: usize| Keys::from(Matrix::new(1, vec![0.5; rows]));
        let linker = Aligned { neighbours: 2 };
        let link = |rows, records| fet_core::linker::link(&linker, &keys(rows), &keys(records), 0, &|_| ());
        let links = link(3, 6).expect("as many records as are needed");
        assert_eq!((links.row(0), links.row(2)), ([0, 1].as_slice(), [4, 5].as_slice()));
    }

    /// An extra record is as wrong as a missing one: for example, a line of totals at the top of the table
    /// shifts all other records.
    #[test]
    fn refuses_any_other_number_of_records() {
        let keys = |rows: usize| Keys::from(Matrix::new(1, vec![0.5; rows]));
        for neighbours in [1, 2] {
            for records in (2..9).filter(|records| *records != 3 * neighbours) {
                let linker = Aligned { neighbours };
                let links = fet_core::linker::link(&linker, &keys(3), &keys(records), 0, &|_| ());
                let error = links.expect_err("refused").to_string();
                let needed = format!("{neighbours} records for each of the 3 primary records");
                assert!(error.contains(&needed) && error.contains(&format!("it has {records}")), "{error}");
            }
        }
    }
}
