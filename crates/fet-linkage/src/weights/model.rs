//! Levels of similarity, rows with their pairs, and learned weights.

/// Lower bounds of all levels except the lowest. The highest level is equality.
const EDGES: [f32; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9999];

/// Number of levels.
pub const LEVELS: usize = EDGES.len() + 1;

/// Level of a field that is missing on either side.
pub const MISSING: u8 = u8::MAX;

pub(super) const EQUAL: usize = LEVELS - 1;

/// Returns the level of a similarity from -1 (one side is missing) to 1.
pub fn level(similarity: f32) -> u8 {
    if similarity <= -1.0 {
        MISSING
    } else {
        EDGES.iter().take_while(|edge| similarity >= **edge).count() as u8
    }
}

/// Rows with their pairs. Each pair has for each field a level, and a rarity: -ln of the share of the records
/// that have the other row's value.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    pub(super) fields: usize,
    /// End of each row's pairs.
    pub(super) ends: Vec<usize>,
    pub(super) levels: Vec<u8>,
    pub(super) rarities: Vec<f32>,
}

impl Pairs {
    /// Returns an empty collection.
    pub fn new(fields: usize) -> Self {
        Self { fields, ..Self::default() }
    }

    /// Adds a row, given (level, -ln of the share) for each field of each of its pairs.
    ///
    /// # Panics
    /// If a pair does not have all fields.
    pub fn push(&mut self, row: impl IntoIterator<Item = (u8, f32)>) {
        for (level, rarity) in row {
            self.levels.push(level);
            self.rarities.push(rarity);
        }
        assert!(self.levels.len().is_multiple_of(self.fields.max(1)), "pairs have {} fields", self.fields);
        self.ends.push(self.levels.len() / self.fields.max(1));
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn of_row(&self, row: usize) -> impl Iterator<Item = (&[u8], &[f32])> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        let places = start * self.fields..self.ends[row] * self.fields;
        let fields = self.fields.max(1);
        self.levels[places.clone()].chunks_exact(fields).zip(self.rarities[places].chunks_exact(fields))
    }
}

/// Learned weights of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// ln(m/u) of each level of each field; never decreases with similarity.
    pub(super) levels: Vec<[f64; LEVELS]>,
    /// ln of the share of the matches at each level or a more similar one, in each field.
    pub(super) reach: Vec<[f64; LEVELS]>,
    /// Share of the rows that have a match.
    pub(super) matched: f64,
    /// Number of records that may be the match.
    pub(super) records: f64,
}

impl Weights {
    /// Returns the log-likelihood ratio of match to non-match for a pair with these levels and rarities (-ln
    /// of the share of the records with the other row's value). Returns `None` if all fields are missing.
    pub fn match_weight(&self, levels: &[u8], rarities: &[f32]) -> Option<f64> {
        let mut sum = None;
        for (field, (&level, &rarity)) in levels.iter().zip(rarities).enumerate() {
            if level != MISSING {
                *sum.get_or_insert(0.0) += self.of_field(field, level, rarity);
            }
        }
        sum
    }

    /// Returns the weight of one field. The share of the value among the records determines the weight of
    /// equality, and limits the weight of a lower level: records with the same value are among all records at
    /// that level or a more similar one.
    fn of_field(&self, field: usize, level: u8, rarity: f32) -> f64 {
        let (levels, reach) = (&self.levels[field], &self.reach[field]);
        let at_most = |level: usize| reach[level] + f64::from(rarity);
        let level = usize::from(level);
        if level == EQUAL { at_most(EQUAL) } else { levels[level].min(at_most(level)) }
    }

    /// Returns ln(m/u) of the levels of a field, the least similar first.
    pub fn levels(&self, field: usize) -> &[f64; LEVELS] {
        &self.levels[field]
    }

    /// Returns the share of the rows that have a match.
    pub fn matched(&self) -> f64 {
        self.matched
    }

    /// Replaces the weights of a row's candidates by the probabilities that each candidate is the match.
    pub fn probabilities(&self, weights: &mut [f64]) {
        let prior = (self.matched / self.records).ln();
        let none = (1.0 - self.matched).ln();
        weights.iter_mut().for_each(|weight| *weight += prior);
        let most = weights.iter().copied().fold(none, f64::max);
        let sum = (none - most).exp() + weights.iter().map(|weight| (weight - most).exp()).sum::<f64>();
        weights.iter_mut().for_each(|weight| *weight = (*weight - most).exp() / sum);
    }
}
