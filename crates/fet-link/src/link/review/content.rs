//! Content of both files of a review.

use crate::link::arguments::LinkArguments;
use crate::link::decisions::Cells;

/// Pair that needs a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PairToReview {
    pub(super) row: usize,
    pub(super) record: u32,
    pub(super) similarity: f32,
    /// Rank of the record among the row's candidates, from 0.
    pub(super) rank: usize,
    /// True if the pair is a link now.
    pub(super) linked: bool,
    /// True if pairs are assigned and a more similar pair takes the row or the record.
    pub(super) beaten: bool,
}

/// Content of both files.
pub(super) struct Review<'a> {
    pub(super) arguments: &'a LinkArguments,
    pub(super) linker: &'a str,
    pub(super) threshold: f32,
    pub(super) pairs: Vec<PairToReview>,
    pub(super) ids: Option<&'a [Vec<String>; 2]>,
    /// Names of the key columns in both tables.
    pub(super) names: [&'a [String]; 2],
    /// Verbatim cells of the key columns.
    pub(super) cells: Cells,
}

impl Review<'_> {
    /// Returns the cells of both rows of a pair.
    pub(super) fn rows(&self, pair: &PairToReview) -> [&[String]; 2] {
        [self.cells.row(0, pair.row), self.cells.row(1, pair.record as usize)]
    }
}
