//! Candidates of each row: the linker's results after a person's decisions. The module `choice` selects the
//! links among them.

use std::collections::HashMap;

use fet_core::linker::Links;

/// Record that may belong to a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) record: u32,
    /// Similarity of the pair; `None` if the linker gives none or did not find the record.
    pub(super) similarity: Option<f32>,
    /// True if a person has confirmed the pair.
    pub(super) decided: bool,
}

impl Candidate {
    /// Returns the sort key for candidates of several rows; confirmed candidates come first.
    pub(super) fn order(&self) -> f32 {
        if self.decided { f32::INFINITY } else { self.similarity.unwrap_or(0.0) }
    }
}

/// Candidates of the rows with decisions: the confirmed records, the most similar first, then the records
/// without a decision.
pub(super) type DecidedPairs = HashMap<usize, Vec<Candidate>>;

/// Candidates of all rows.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'a> {
    links: &'a Links,
    decided: &'a DecidedPairs,
    searched: usize,
}

impl<'a> Candidates<'a> {
    /// Takes the first `searched` records that the linker found for each row; rows with decisions use the
    /// candidates from `decided`.
    pub(super) fn new(links: &'a Links, decided: &'a DecidedPairs, searched: usize) -> Self {
        Self { links, decided, searched }
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.links.rows()
    }

    /// Returns the maximum number of candidates of a row without decisions.
    pub(super) fn searched(&self) -> usize {
        self.searched.min(self.links.available())
    }

    /// Returns the linker's similarities for a row in descending order, regardless of decisions.
    pub(super) fn similarities(&self, row: usize) -> Option<&'a [f32]> {
        self.links.similarities(row)
    }

    /// Returns the candidates of a row in the order of their ranks, from 0.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Candidate> + use<'a> {
        let (links, decided) = (self.links, self.decided.get(&row));
        let count = decided.map_or(self.searched(), Vec::len);
        (0..count).map(move |rank| decided.map_or_else(|| found(links, row, rank), |all| all[rank]))
    }
}

/// Returns the linker's result for a row at a rank.
pub(super) fn found(links: &Links, row: usize, rank: usize) -> Candidate {
    let similarity = links.similarities(row).map(|all| all[rank]);
    Candidate { record: links.row(row)[rank], similarity, decided: false }
}
