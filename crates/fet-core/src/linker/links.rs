//! The result of a linker: each query's neighbours and their similarities. Nothing is searched here.

/// For each query the indices of its K neighbours, most similar first.
#[derive(Clone, PartialEq)]
pub struct Links {
    neighbours: usize,
    available: usize,
    indices: Vec<u32>,
    similarities: Option<Vec<f32>>,
    estimate: Option<f64>,
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

    /// Links without similarities.
    ///
    /// # Panics
    /// If the indices do not fill whole rows, or nothing is available.
    pub fn without_similarities(neighbours: usize, available: usize, indices: Vec<u32>) -> Self {
        assert!(0 < available && available <= neighbours, "{available} of {neighbours} neighbours");
        assert!(indices.len().is_multiple_of(neighbours), "whole rows of {neighbours}");
        Self { neighbours, available, indices, similarities: None, estimate: None }
    }

    /// With what the linker estimated from all keys: [`LinkTask::estimate`] of those that come later.
    ///
    /// [`LinkTask::estimate`]: super::LinkTask::estimate
    #[must_use]
    pub fn with_estimate(self, estimate: Option<f64>) -> Self {
        Self { estimate, ..self }
    }

    /// What the linker estimated from all keys, if it does; it stays with the party that linked.
    pub fn estimate(&self) -> Option<f64> {
        self.estimate
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
            estimate: self.estimate,
        }
    }

    /// K.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }

    /// How many of the K are real; the others repeat real ones and are masked out.
    pub fn available(&self) -> usize {
        self.available
    }

    /// The number of queries.
    pub fn rows(&self) -> usize {
        self.indices.len() / self.neighbours
    }

    /// The neighbours of one query, most similar first.
    pub fn row(&self, query: usize) -> &[u32] {
        &self.indices[query * self.neighbours..(query + 1) * self.neighbours]
    }

    /// All similarities, row by row, if the linker gives any.
    pub fn all_similarities(&self) -> Option<&[f32]> {
        self.similarities.as_deref()
    }

    /// All indices, row by row.
    pub fn all_indices(&self) -> &[u32] {
        &self.indices
    }

    /// The similarities for [`Links::row`], if the linker gives any. They stay with the party that linked unless a
    /// method needs them.
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
