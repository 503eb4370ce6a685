//! What a search finds: for each query the same number of records, best first.

use std::fmt;

/// Flat rows of neighbours, `take` for each query, best first.
#[derive(Clone, PartialEq)]
pub struct Neighbours {
    /// How many each query has.
    pub take: usize,
    /// Record numbers.
    pub indices: Vec<u32>,
    /// Scores, the larger the better, each beside its index.
    pub scores: Vec<f32>,
}

impl Neighbours {
    /// The record numbers of one query.
    pub fn row(&self, query: usize) -> &[u32] {
        &self.indices[query * self.take..(query + 1) * self.take]
    }

    /// The scores of one query.
    pub fn scores(&self, query: usize) -> &[f32] {
        &self.scores[query * self.take..(query + 1) * self.take]
    }
}

/// Shows the shape: links are someone's secret.
impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Neighbours[{} x {}]", self.indices.len().checked_div(self.take).unwrap_or(0), self.take)
    }
}
