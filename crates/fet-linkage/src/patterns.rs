//! An attack on filters by the patterns of their bits and the frequencies of values: how much encodings give away to who has them, a public
//! table and no secret.
//!
//! A value that many records have sets the same bits in all of them. Those bits are found by nothing but that they are set together
//! ([`mine`]: the idea of Christen, Vidanage, Ranbaduge, Schnell 2018). Which value they stand for follows from what no secret changes:
//! how many records have them, how many bits they are, and how many they have in common with other patterns, since similar values have q-grams in
//! common ([`align`]: matched as graphs are, Vidanage, Christen, Ranbaduge, Schnell 2020). The attacker learns what to expect by encoding a
//! public table of the same columns, of other people, under a secret of its own: so it needs to know the settings, hardening among them, and
//! no list of q-grams or hash functions.
//!
//! What it does not find may be found by another attack.

mod align;
mod columns;
mod mine;

use std::collections::HashMap;

use crate::bits::BitTable;

pub use align::align;
pub use columns::Columns;
pub use mine::{Pattern, mine, pattern_of};

/// A public table as the attacker encoded it.
#[derive(Debug)]
pub struct Public<'a> {
    /// Its filters, under the attacker's own secret and the settings of the attacked.
    pub filters: &'a BitTable,
    /// Of each record the value of the attacked column; empty where it has none.
    pub values: &'a [String],
    /// Of each record the value of the attribute by which hashes are salted; the same for all where they are not.
    pub strata: &'a [String],
}

/// How far to look.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Of the attacked column so many values are looked for, the most frequent of the public table.
    pub values: usize,
    /// A pattern is of so many records or more.
    pub least: usize,
    /// Where searches begin, for each bit.
    pub starts: usize,
    /// For drawing these, and for the annealing.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { values: 30, least: 12, starts: 1, seed: 1 }
    }
}

/// What the attacker says of the records.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Of each record the value that it is said to have, where a pattern says so.
    pub values: Vec<Option<String>>,
    /// The values that it looked for, the most frequent first.
    pub wanted: Vec<String>,
    /// How many patterns were found.
    pub patterns: usize,
    /// How many of them were given a value.
    pub aligned: usize,
}

/// Names the values of the attacked column in records of which only filters are known.
///
/// # Panics
/// If the filters are of two lengths, or a record of the public table lacks its value or stratum.
pub fn attack(filters: &BitTable, public: &Public<'_>, effort: &Effort) -> Named {
    assert_eq!(filters.bits(), public.filters.bits(), "filters of one length");
    let rows = public.filters.rows();
    assert!(
        public.values.len() == rows && public.strata.len() == rows,
        "a value and a stratum for each record"
    );
    let (theirs, own) = (Columns::of(filters), Columns::of(public.filters));
    let wanted = frequent(public.values, effort.values);
    let (labels, expected) = expectations(&own, public, &wanted, effort.least);
    let found = mine(&theirs, effort);
    let matched = align(&expected, &found, [own.rows(), theirs.rows()], theirs.bits(), effort.seed);
    let mut best: Vec<(f32, Option<String>)> = vec![(0.0, None); theirs.rows()];
    for (label, pattern) in labels.iter().zip(&matched) {
        let Some(pattern) = pattern.map(|at| &found[at]) else { continue };
        for (&row, &score) in pattern.records.iter().zip(&pattern.scores) {
            let place = &mut best[row as usize];
            if place.1.is_none() || score > place.0 {
                *place = (score, Some(label.clone()));
            }
        }
    }
    Named {
        values: best.into_iter().map(|(_, value)| value).collect(),
        wanted,
        patterns: found.len(),
        aligned: matched.iter().flatten().count(),
    }
}

/// Values and the patterns that they are expected to make: one in each stratum in which enough records have it.
fn expectations(
    own: &Columns,
    public: &Public<'_>,
    wanted: &[String],
    least: usize,
) -> (Vec<String>, Vec<Pattern>) {
    /// So many are aligned at most, those of most records first.
    const MOST: usize = 100;
    let place: HashMap<&str, usize> =
        wanted.iter().enumerate().map(|(at, value)| (value.as_str(), at)).collect();
    let mut rows: HashMap<(usize, &str), Vec<u32>> = HashMap::new();
    for (row, (value, stratum)) in public.values.iter().zip(public.strata).enumerate() {
        if let Some(&at) = place.get(value.as_str()) {
            rows.entry((at, stratum)).or_default().push(row as u32);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().filter(|(_, rows)| rows.len() >= least).collect();
    rows.sort_by(|(a, x), (b, y)| y.len().cmp(&x.len()).then(a.cmp(b)));
    rows.truncate(MOST);
    rows.into_iter().map(|((at, _), rows)| (wanted[at].clone(), pattern_of(own, rows))).unzip()
}

/// The `most` most frequent values, the most frequent first.
pub fn frequent(values: &[String], most: usize) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    values.iter().filter(|value| !value.is_empty()).for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    counts.into_iter().take(most).map(|(value, _)| value.to_string()).collect()
}

/// How an attack did, of the records that have one of the values it looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// How many records that are.
    pub records: usize,
    /// The share that it names rightly; where no pattern says anything, it says the most frequent value.
    pub right: f64,
    /// The share that is right if that is said of all.
    pub baseline: f64,
    /// How many records a pattern names, of all.
    pub named: usize,
    /// The share of these that have that value.
    pub precision: f64,
}

impl Named {
    /// Beside the truth.
    pub fn score(&self, truth: &[String]) -> Score {
        let most = self.wanted.first().map_or("", String::as_str);
        let (mut records, mut right, mut baseline, mut named, mut sound) =
            (0usize, 0usize, 0usize, 0usize, 0usize);
        for (said, truth) in self.values.iter().zip(truth) {
            if let Some(said) = said {
                named += 1;
                sound += usize::from(said == truth);
            }
            if self.wanted.contains(truth) {
                records += 1;
                right += usize::from(said.as_deref().unwrap_or(most) == truth);
                baseline += usize::from(most == truth);
            }
        }
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        Score {
            records,
            right: share(right, records),
            baseline: share(baseline, records),
            named,
            precision: share(sound, named),
        }
    }
}

#[cfg(test)]
mod tests;
