//! The `Linker` slot: which records of another party belong to a primary record.
//!
//! There is no common identifier. A linker sees keys alone, never features or labels, and it is run once
//! for a whole run; the order of what it returns is the order the model sees. To add one, copy
//! `linker/nearest.rs`, or see `examples/custom-linker` for one in a crate of its own.

mod nearest;
mod random;

use crate::data::Matrix;
use crate::registry::{Plugin, SlotKind};

pub use nearest::NearestSettings;
pub use random::RandomSettings;

/// Finds, for every query, the K records that most resemble it.
///
/// Laws, held by the contract suite for every plug-in: indices are valid; each row is sorted by
/// similarity, highest first, where there are similarities; K is honoured or refused; the same seed gives
/// the same links.
pub trait Linker: Send + Sync {
    /// How many neighbours each query gets, K.
    fn neighbours(&self) -> usize;

    /// Whether its links say how similar they are.
    fn gives_similarities(&self) -> bool {
        true
    }

    /// Links `queries` [n, m] with `records` [r, m].
    fn link(&self, queries: &Matrix<f64>, records: &Matrix<f64>, seed: u64) -> Result<Links, LinkError>;
}

impl SlotKind for dyn Linker {
    const SLOT: &'static str = "linker";
    type Context<'a> = ();
}

inventory::collect!(Plugin<dyn Linker>);

/// For each query the indices of its K neighbours, most similar first.
#[derive(Clone, PartialEq)]
pub struct Links {
    neighbours: usize,
    available: usize,
    indices: Vec<u32>,
    similarities: Option<Vec<f32>>,
}

impl Links {
    /// Links from flat rows of `neighbours` indices and similarities, of which the first `available` in
    /// each row are real and the rest repeat them.
    ///
    /// # Panics
    /// If the two do not have the same length, do not fill whole rows, or nothing is available.
    pub fn new(neighbours: usize, available: usize, indices: Vec<u32>, similarities: Vec<f32>) -> Self {
        assert_eq!(indices.len(), similarities.len(), "an index and a similarity for each neighbour");
        Self {
            similarities: Some(similarities),
            ..Self::without_similarities(neighbours, available, indices)
        }
    }

    /// Links that do not say how similar they are.
    ///
    /// # Panics
    /// If the indices do not fill whole rows, or nothing is available.
    pub fn without_similarities(neighbours: usize, available: usize, indices: Vec<u32>) -> Self {
        assert!(0 < available && available <= neighbours, "{available} of {neighbours} neighbours");
        assert!(indices.len().is_multiple_of(neighbours), "whole rows of {neighbours}");
        Self { neighbours, available, indices, similarities: None }
    }

    /// The first `neighbours` of each row; all of them where there are fewer.
    #[must_use]
    pub fn first(&self, neighbours: usize) -> Self {
        let keep = neighbours.min(self.neighbours);
        let cut = |length: usize| (0..self.rows()).flat_map(move |row| row * length..row * length + keep);
        Self {
            neighbours: keep,
            available: self.available.min(keep),
            indices: cut(self.neighbours).map(|place| self.indices[place]).collect(),
            similarities: self
                .similarities
                .as_ref()
                .map(|all| cut(self.neighbours).map(|place| all[place]).collect()),
        }
    }

    /// K.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }

    /// How many of the K are real; the rest repeat real ones and are masked out.
    pub fn available(&self) -> usize {
        self.available
    }

    /// How many queries were linked.
    pub fn rows(&self) -> usize {
        self.indices.len() / self.neighbours
    }

    /// The neighbours of one query, most similar first.
    pub fn row(&self, query: usize) -> &[u32] {
        &self.indices[query * self.neighbours..(query + 1) * self.neighbours]
    }

    /// The similarities that belong to [`Links::row`], where the linker gives any. They stay with the party
    /// that linked, unless a method needs them.
    pub fn similarities(&self, query: usize) -> Option<&[f32]> {
        let all = self.similarities.as_ref()?;
        Some(&all[query * self.neighbours..(query + 1) * self.neighbours])
    }
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Links[{} x {}]", self.rows(), self.neighbours)
    }
}

/// Why two tables cannot be linked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// K is larger than the other party.
    #[error(
        "`linker.neighbours` must not exceed the {records} records of the party; it is {neighbours} \
         (or set `linker.pad = true` to repeat neighbours and mask the repeats)"
    )]
    TooFewRecords {
        /// K.
        neighbours: usize,
        /// What the party has.
        records: usize,
    },
    /// The two parties' keys are not of the same kind.
    #[error("keys must have the same columns on both sides; they have {queries} and {records}")]
    KeyMismatch {
        /// Key columns of the primary.
        queries: usize,
        /// Key columns of the party.
        records: usize,
    },
    /// The library that searches refused the keys.
    #[error("the keys cannot be indexed: {0}")]
    Index(String),
}

/// The checks that every linker begins with: same key columns, and enough records or leave to pad.
pub fn check_tables(
    queries: &Matrix<f64>,
    records: &Matrix<f64>,
    neighbours: usize,
    pad: bool,
) -> Result<(), LinkError> {
    if queries.columns() != records.columns() {
        return Err(LinkError::KeyMismatch { queries: queries.columns(), records: records.columns() });
    }
    if records.rows() == 0 || (records.rows() < neighbours && !pad) {
        return Err(LinkError::TooFewRecords { neighbours, records: records.rows() });
    }
    Ok(())
}
