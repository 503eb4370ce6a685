//! The result of a linker: each query's neighbours and their similarities. This module searches nothing.

/// For each query, the indices of its K neighbours, most similar first.
#[derive(Clone, PartialEq)]
pub struct Links {
    neighbours: usize,
    available: usize,
    indices: Vec<u32>,
    similarities: Option<Vec<f32>>,
    estimate: Option<f64>,
}

impl Links {
    /// Creates links from flat rows of `neighbours` indices and similarities. The first `available` of each
    /// row are real, and the rest repeat them.
    ///
    /// # Panics
    /// If indices and similarities differ in length, do not fill whole rows, or `available` is 0.
    pub fn new(neighbours: usize, available: usize, indices: Vec<u32>, similarities: Vec<f32>) -> Self {
        assert_eq!(indices.len(), similarities.len(), "an index and a similarity for each neighbour");
        Self {
            similarities: Some(similarities),
            ..Self::without_similarities(neighbours, available, indices)
        }
    }

    /// Creates links without similarities.
    ///
    /// # Panics
    /// If the indices do not fill whole rows, or `available` is 0.
    pub fn without_similarities(neighbours: usize, available: usize, indices: Vec<u32>) -> Self {
        assert!(0 < available && available <= neighbours, "{available} of {neighbours} neighbours");
        assert!(indices.len().is_multiple_of(neighbours), "whole rows of {neighbours}");
        Self { neighbours, available, indices, similarities: None, estimate: None }
    }

    /// Adds the linker's estimate from all keys, which becomes the [`LinkTask::estimate`] of keys that come
    /// later.
    ///
    /// [`LinkTask::estimate`]: super::LinkTask::estimate
    #[must_use]
    pub fn with_estimate(self, estimate: Option<f64>) -> Self {
        Self { estimate, ..self }
    }

    /// Returns the linker's estimate from all keys, if it makes one. The estimate stays with the party that
    /// linked.
    pub fn estimate(&self) -> Option<f64> {
        self.estimate
    }

    /// Keeps the first `neighbours` of each row, or all of them if a row has fewer.
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
            estimate: self.estimate,
        }
    }

    /// Returns K.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }

    /// Returns the number of real neighbours among the K; the others repeat real ones and are masked out.
    pub fn available(&self) -> usize {
        self.available
    }

    /// Returns the number of queries.
    pub fn rows(&self) -> usize {
        self.indices.len() / self.neighbours
    }

    /// Returns the neighbours of one query, most similar first.
    pub fn row(&self, query: usize) -> &[u32] {
        &self.indices[query * self.neighbours..(query + 1) * self.neighbours]
    }

    /// Returns all similarities, row by row, if the linker gives any.
    pub fn all_similarities(&self) -> Option<&[f32]> {
        self.similarities.as_deref()
    }

    /// Returns all indices, row by row.
    pub fn all_indices(&self) -> &[u32] {
        &self.indices
    }

    /// Returns the similarities for [`Links::row`], if the linker gives any. They stay with the party that
    /// linked unless a method needs them.
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
