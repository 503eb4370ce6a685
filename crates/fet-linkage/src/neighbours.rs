//! Result of a search: the same number of records for each query, best first.

use std::fmt;

/// Flat rows of neighbours, `take` for each query, best first.
#[derive(Clone, PartialEq)]
pub struct Neighbours {
    /// Number of neighbours of each query.
    pub take: usize,
    /// Record numbers.
    pub indices: Vec<u32>,
    /// Score of each neighbour, in the order of `indices`. Larger is better.
    pub scores: Vec<f32>,
}

impl Neighbours {
    /// Returns the neighbours with these scores and record numbers of each query, best first.
    pub fn from_rows(take: usize, rows: impl IntoIterator<Item = Vec<(f32, u32)>>) -> Self {
        let mut found = Self { take, indices: Vec::new(), scores: Vec::new() };
        for row in rows {
            found.scores.extend(row.iter().map(|(score, _)| score));
            found.indices.extend(row.iter().map(|(_, index)| index));
        }
        found
    }

    /// Returns the record numbers of one query.
    pub fn row(&self, query: usize) -> &[u32] {
        &self.indices[query * self.take..(query + 1) * self.take]
    }

    /// Returns the scores of one query.
    pub fn scores(&self, query: usize) -> &[f32] {
        &self.scores[query * self.take..(query + 1) * self.take]
    }
}

/// Shows the shape and hides the links, which are secret.
impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbours[{} x {}]", self.indices.len().checked_div(self.take).unwrap_or(0), self.take)
    }
}
