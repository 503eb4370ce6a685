//! An attack on filters by the patterns of their bits and the frequencies of values. It measures how much
//! encodings reveal to an attacker who has them and a public table, but no secret.
//!
//! A value that many records have sets the same bits in all of them. The attack finds these bits because they
//! are set together ([`mine`]: the idea of Christen, Vidanage, Ranbaduge, Schnell 2018). Three properties
//! that no secret changes identify the value of a pattern: its number of records, its number of bits, and the
//! number of bits that it has in common with other patterns, since similar values have q-grams in common
//! ([`align`]: graph matching as in Vidanage, Christen, Ranbaduge, Schnell 2020). The attacker learns the
//! expected properties by encoding a public table of other people with the same columns under its own secret.
//! It therefore needs to know the settings, including the hardening, but no list of q-grams or hash
//! functions.
//!
//! Another attack may find what this attack misses.

mod align;
mod columns;
mod mine;

use std::collections::HashMap;

use crate::bits::BitTable;

pub use align::align;
pub use columns::Columns;
pub use mine::{Effort, Pattern, mine, pattern_of};

/// A public table as encoded by the attacker.
#[derive(Debug)]
pub struct Public<'a> {
    /// Filters of the public records, under the attacker's own secret and the settings of the attacked
    /// encoding.
    pub filters: &'a BitTable,
    /// Value of the attacked column in each record; empty if missing.
    pub values: &'a [String],
    /// Value of the attribute that salts the hashes, for each record; equal for all records if hashes are not
    /// salted.
    pub strata: &'a [String],
}

/// Values that the attacker assigns to the records.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Value assigned to each record, if a pattern assigns one.
    pub values: Vec<Option<String>>,
    /// Values that the attack looked for, the most frequent first.
    pub wanted: Vec<String>,
    /// Number of patterns found.
    pub patterns: usize,
    /// Number of patterns with an assigned value.
    pub aligned: usize,
}

/// Names the values of the attacked column, given only the filters of the records.
///
/// # Panics
/// If the two tables have filters of different lengths, or a record of the public table lacks its value or
/// stratum.
pub fn attack(filters: &BitTable, public: &Public<'_>, effort: &Effort) -> Named {
    assert_eq!(filters.bits(), public.filters.bits(), "filters of one length");
    let rows = public.filters.rows();
    assert!(
        public.values.len() == rows && public.strata.len() == rows,
        "a value and a stratum for each record"
    );
    let (theirs, own) = (Columns::transpose(filters), Columns::transpose(public.filters));
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

/// Returns values and the patterns expected of them: one for each stratum with enough records of the
/// value.
fn expectations(
    own: &Columns,
    public: &Public<'_>,
    wanted: &[String],
    least: usize,
) -> (Vec<String>, Vec<Pattern>) {
    /// Maximum number of expected patterns to align; those with the most records take precedence.
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

/// Returns the `most` most frequent values, the most frequent first.
pub fn frequent(values: &[String], most: usize) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    values.iter().filter(|value| !value.is_empty()).for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|(a, x), (b, y)| y.cmp(x).then(a.cmp(b)));
    counts.into_iter().take(most).map(|(value, _)| value.to_string()).collect()
}

/// Success of an attack. Shares refer to the records with one of the values that the attack looked for,
/// unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Number of records with one of these values.
    pub records: usize,
    /// Share of these records named correctly. A record without a pattern counts as named with the most
    /// frequent value.
    pub right: f64,
    /// Share named correctly if every record gets the most frequent value.
    pub baseline: f64,
    /// Number of records that a pattern names, among all records.
    pub named: usize,
    /// Share of the named records whose name is correct.
    pub precision: f64,
}

impl Named {
    /// Returns the success of the attack, given the true values.
    pub fn score(&self, truth: &[String]) -> Score {
        let most = self.wanted.first().map_or("", String::as_str);
        let (mut records, mut right, mut baseline, mut named, mut sound) =
            (0usize, 0usize, 0usize, 0usize, 0usize);
        for (guess, truth) in self.values.iter().zip(truth) {
            if let Some(guess) = guess {
                named += 1;
                sound += usize::from(guess == truth);
            }
            if self.wanted.contains(truth) {
                records += 1;
                right += usize::from(guess.as_deref().unwrap_or(most) == truth);
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
