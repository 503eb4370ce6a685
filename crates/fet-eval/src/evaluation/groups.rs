//! The scores of groups of rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::nullable;
use crate::predictions::Predictions;
use crate::scores::Scores;

/// So many of the largest groups have scores of their own.
pub const LARGEST: usize = 30;

/// The scores of the rows of each value of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// The column.
    pub column: String,
    /// The [`LARGEST`] groups at most, the largest first, equal ones by name.
    pub groups: Vec<Group>,
    /// All other groups together; nothing if there are none.
    #[serde(deserialize_with = "nullable::given")]
    pub others: Option<Others>,
}

/// The rows of a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The value.
    pub name: String,
    /// How many rows have it.
    pub rows: usize,
    /// Every metric on them.
    pub scores: Scores,
}

/// The rows of all groups that are not told apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Others {
    /// How many groups they are.
    pub groups: usize,
    /// How many rows these have.
    pub rows: usize,
    /// Every metric on them together.
    pub scores: Scores,
}

impl Groups {
    pub(super) fn of(column: &str, names: &[String], rows: &Predictions<'_>) -> Self {
        assert_eq!(names.len(), rows.rows(), "each row is in one group");
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, name) in names.iter().enumerate() {
            by_name.entry(name).or_default().push(row);
        }
        // The sort is stable: groups of one size stay in the order of their names.
        let mut all: Vec<(&str, Vec<usize>)> = by_name.into_iter().collect();
        all.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
        let rest = all.split_off(LARGEST.min(all.len()));
        let group = |(name, members): &(&str, Vec<usize>)| Group {
            name: (*name).to_string(),
            rows: members.len(),
            scores: scores_of(rows, members),
        };
        let members: Vec<usize> = rest.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        let others = (!rest.is_empty()).then(|| Others {
            groups: rest.len(),
            rows: members.len(),
            scores: scores_of(rows, &members),
        });
        Self { column: column.to_string(), groups: all.iter().map(group).collect(), others }
    }
}

/// The scores of some of the rows: the others weigh nothing.
fn scores_of(rows: &Predictions<'_>, members: &[usize]) -> Scores {
    let mut weights = vec![0.0; rows.rows()];
    members.iter().for_each(|row| weights[*row] = rows.weight(*row));
    match rows.weighted(&weights) {
        Ok(rows) => rows.scores(),
        Err(error) => Scores::undefined(rows.task(), &error.to_string()),
    }
}
