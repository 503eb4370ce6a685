//! Scores by group of rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::nullable;
use crate::predictions::Predictions;
use crate::scores::Scores;

/// Maximum number of groups with separate scores.
pub const LARGEST: usize = 30;

/// Scores of the rows of each value of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// Name of the column.
    pub column: String,
    /// At most [`LARGEST`] groups, the largest first, equal sizes by name.
    pub groups: Vec<Group>,
    /// All other groups together. `None` if there are no others.
    #[serde(deserialize_with = "nullable::given")]
    pub others: Option<Others>,
}

/// Rows with one value of the column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Value of the column.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
    /// Every metric of these rows.
    pub scores: Scores,
}

/// Combined rows of all groups without separate scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Others {
    /// Number of groups.
    pub groups: usize,
    /// Number of rows.
    pub rows: usize,
    /// Every metric of these rows together.
    pub scores: Scores,
}

impl Groups {
    pub(super) fn from_names(column: &str, names: &[String], rows: &Predictions<'_>) -> Self {
        assert_eq!(names.len(), rows.rows(), "each row is in one group");
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (row, name) in names.iter().enumerate() {
            by_name.entry(name).or_default().push(row);
        }
        // The sort is stable: groups of equal size stay in the order of their names.
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

/// Computes the scores of `members`; the other rows have weight 0.
fn scores_of(rows: &Predictions<'_>, members: &[usize]) -> Scores {
    let mut weights = vec![0.0; rows.rows()];
    members.iter().for_each(|row| weights[*row] = rows.weight(*row));
    match rows.weighted(&weights) {
        Ok(rows) => rows.scores(),
        Err(error) => Scores::undefined(rows.task(), &error.to_string()),
    }
}
