//! Match weights: what the similarity of each field says for and against two records' being the same (Fellegi and Sunter 1969).
//!
//! A pair's similarities are sorted into levels. A level that m of the matches and u of all others have weighs ln(m/u), and a pair the sum
//! over its fields; what is missing on either side says nothing. That two values are equal says the more the rarer the value: u is then its
//! own share of the records (Winkler 2000). m and u are learned without any truth ([`learn`], [`Evidence`]); [`rank`] applies it to
//! filters of fields. Each row has one match among the records or none, so that the weights of its candidates give each one's probability.
//! Fields are taken to be independent given whether a pair matches; where they are not, probabilities are nearer to 0 and 1 than is true.

mod learn;
mod rank;

pub use learn::{Evidence, learn};
pub use rank::{Fields, Ranked, candidates, rank};

/// Where levels begin: that below the first has no name, that of the last is equality.
const EDGES: [f32; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9999];
/// The number of levels.
pub const LEVELS: usize = EDGES.len() + 1;
/// The level of fields of which one is missing.
pub const MISSING: u8 = u8::MAX;
const EQUAL: usize = LEVELS - 1;

/// The level of a similarity from -1 (one is missing) to 1.
pub fn level(similarity: f32) -> u8 {
    if similarity <= -1.0 {
        MISSING
    } else {
        EDGES.iter().take_while(|edge| similarity >= **edge).count() as u8
    }
}

/// Rows and the pairs that each is part of: a level in each field, and -ln of the share of the records that have the other's value.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    fields: usize,
    /// Where each row's pairs end.
    ends: Vec<usize>,
    levels: Vec<u8>,
    rarities: Vec<f32>,
}

impl Pairs {
    /// No rows.
    pub fn new(fields: usize) -> Self {
        Self { fields, ..Self::default() }
    }

    /// One more row: of each of its pairs (level, -ln of the share) in each field.
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

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ends.len()
    }

    fn of_row(&self, row: usize) -> impl Iterator<Item = (&[u8], &[f32])> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        let places = start * self.fields..self.ends[row] * self.fields;
        let fields = self.fields.max(1);
        self.levels[places.clone()].chunks_exact(fields).zip(self.rarities[places].chunks_exact(fields))
    }
}

/// What has been learned: enough to weigh pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// ln(m/u) of each level of each field; never less for more similar values.
    levels: Vec<[f64; LEVELS]>,
    /// ln of the share of the matches that are of each level or a more similar one, in each field.
    reach: Vec<[f64; LEVELS]>,
    /// The share of the rows that have a match.
    matched: f64,
    /// The records among which it is.
    records: f64,
}

impl Weights {
    /// The natural logarithm of how much more likely a pair with these levels and rarities (-ln of the share of the records with the other's
    /// value) is among matches than among others; nothing where all is missing.
    pub fn of(&self, levels: &[u8], rarities: &[f32]) -> Option<f64> {
        let mut sum = None;
        for (field, (&level, &rarity)) in levels.iter().zip(rarities).enumerate() {
            if level != MISSING {
                *sum.get_or_insert(0.0) += self.of_field(field, level, rarity);
            }
        }
        sum
    }

    /// Equality says what the share of the value among the records tells. A level that is less says no more than that share allows, since
    /// those with the very value are among all that are as near or nearer.
    fn of_field(&self, field: usize, level: u8, rarity: f32) -> f64 {
        let (levels, reach) = (&self.levels[field], &self.reach[field]);
        let at_most = |level: usize| reach[level] + f64::from(rarity);
        let level = usize::from(level);
        if level == EQUAL { at_most(EQUAL) } else { levels[level].min(at_most(level)) }
    }

    /// ln(m/u) of the levels of a field, the least similar first.
    pub fn levels(&self, field: usize) -> &[f64; LEVELS] {
        &self.levels[field]
    }

    /// The share of the rows that have a match.
    pub fn matched(&self) -> f64 {
        self.matched
    }

    /// The probabilities that each of a row's candidates is its match, in place of their weights.
    pub fn probabilities(&self, weights: &mut [f64]) {
        let prior = (self.matched / self.records).ln();
        let none = (1.0 - self.matched).ln();
        weights.iter_mut().for_each(|weight| *weight += prior);
        let most = weights.iter().copied().fold(none, f64::max);
        let sum = (none - most).exp() + weights.iter().map(|weight| (weight - most).exp()).sum::<f64>();
        weights.iter_mut().for_each(|weight| *weight = (*weight - most).exp() / sum);
    }
}
