//! The candidates of each row: what the linker found, as a person's decisions leave it. Which of them are links is chosen elsewhere.

use std::collections::HashMap;

use fet_core::linker::Links;

/// A record that may belong to a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) record: u32,
    /// None if the linker gives none, or the record was not among those that it found.
    pub(super) similarity: Option<f32>,
    /// Whether a person says that it belongs to the row.
    pub(super) decided: bool,
}

impl Candidate {
    /// By what candidates of several rows are compared: what was decided is ahead of everything.
    pub(super) fn order(&self) -> f32 {
        if self.decided { f32::INFINITY } else { self.similarity.unwrap_or(0.0) }
    }
}

/// The rows about which something was decided, and the candidates that they have then: those that were confirmed, most similar first,
/// then those that nobody spoke about.
pub(super) type Decided = HashMap<usize, Vec<Candidate>>;

/// All rows' candidates.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'a> {
    links: &'a Links,
    decided: &'a Decided,
    searched: usize,
}

impl<'a> Candidates<'a> {
    /// The first `searched` that the linker found for each row, but for rows about which something was decided.
    pub(super) fn new(links: &'a Links, decided: &'a Decided, searched: usize) -> Self {
        Self { links, decided, searched }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.links.rows()
    }

    /// The most candidates of a row about which nothing was decided.
    pub(super) fn searched(&self) -> usize {
        self.searched.min(self.links.available())
    }

    /// What the linker says of a row, whatever was decided: similarities, the highest first.
    pub(super) fn similarities(&self, row: usize) -> Option<&'a [f32]> {
        self.links.similarities(row)
    }

    /// The candidates of a row; their place is their rank, from 0.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = Candidate> + use<'a> {
        let (links, decided) = (self.links, self.decided.get(&row));
        let count = decided.map_or(self.searched(), Vec::len);
        (0..count).map(move |rank| decided.map_or_else(|| found(links, row, rank), |all| all[rank]))
    }
}

/// What the linker found for a row at a rank.
pub(super) fn found(links: &Links, row: usize, rank: usize) -> Candidate {
    let similarity = links.similarities(row).map(|all| all[rank]);
    Candidate { record: links.row(row)[rank], similarity, decided: false }
}
