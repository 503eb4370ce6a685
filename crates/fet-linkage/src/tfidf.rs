//! Comparison of plain texts by the cosine of tf-idf vectors of character n-grams, the strongest unprotected
//! baseline for long texts.
//!
//! The vectors follow scikit-learn's `TfidfVectorizer` (analyzer "char_wb", sublinear tf). N-grams lie within
//! words that are padded with a blank on either side. Their weights are (1 + ln tf)·(1 + ln((1 + n)/(1 +
//! df))) over the records of both tables, and vectors have length 1. The fields of a record form one text.
//! Candidates come from an inverted index of the records that share an n-gram with the query.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::neighbours::Neighbours;
use crate::text::{TextRows, normalise};
use crate::top::Top;

/// A sparse vector of terms and their weights, sorted by term.
type Vector = Vec<(u32, f32)>;

/// Counts the n-grams of a record.
fn counts<T: AsRef<str>>(
    cells: &[T],
    lengths: (usize, usize),
    known: &mut HashMap<String, u32>,
) -> HashMap<u32, u32> {
    let mut counts = HashMap::new();
    for cell in cells {
        for word in normalise(cell.as_ref()).split(' ').filter(|word| !word.is_empty()) {
            let signs: Vec<char> = std::iter::once(' ').chain(word.chars()).chain([' ']).collect();
            for length in lengths.0..=lengths.1 {
                // A word shorter than n counts once, as a whole.
                for gram in signs.windows(length.min(signs.len())) {
                    let next = known.len() as u32;
                    let term = *known.entry(gram.iter().collect()).or_insert(next);
                    *counts.entry(term).or_default() += 1;
                }
                if length >= signs.len() {
                    break;
                }
            }
        }
    }
    counts
}

/// Returns the `take` most similar records of each query record. N-grams have from `lengths.0` to `lengths.1` characters.
///
/// # Panics
/// If there are fewer than `take` records, or no fields.
pub fn search<T: AsRef<str> + Sync>(
    queries: &TextRows<'_, T>,
    records: &TextRows<'_, T>,
    lengths: (usize, usize),
    take: usize,
    done: &(dyn Fn(usize) + Sync),
) -> Neighbours {
    let rows = records.cells.len() / records.fields;
    assert!(take <= rows, "{take} of {rows} records");
    let mut known = HashMap::new();
    let mut count = |texts: &TextRows<'_, T>| -> Vec<HashMap<u32, u32>> {
        texts.cells.chunks_exact(texts.fields).map(|row| counts(row, lengths, &mut known)).collect()
    };
    let (queries, records) = (count(queries), count(records));
    let mut frequency = vec![0u32; known.len()];
    queries.iter().chain(&records).flat_map(HashMap::keys).for_each(|&term| frequency[term as usize] += 1);
    let all = (queries.len() + records.len()) as f32;
    let rarity: Vec<f32> = frequency.iter().map(|&df| 1.0 + ((1.0 + all) / (1.0 + df as f32)).ln()).collect();
    let vector = |counts: &HashMap<u32, u32>| -> Vector {
        let mut vector: Vector = counts
            .iter()
            .map(|(&term, &tf)| (term, (1.0 + (tf as f32).ln()) * rarity[term as usize]))
            .collect();
        vector.sort_unstable_by_key(|(term, _)| *term);
        let length = vector.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|(_, weight)| *weight /= length.max(f32::MIN_POSITIVE));
        vector
    };
    let mut index: Vec<Vec<(u32, f32)>> = vec![Vec::new(); known.len()];
    for (record, counts) in records.iter().enumerate() {
        vector(counts)
            .into_iter()
            .for_each(|(term, weight)| index[term as usize].push((record as u32, weight)));
    }
    let found: Vec<Vec<(f32, u32)>> = queries
        .par_iter()
        .map_init(
            || vec![0.0f64; rows],
            |scores, counts| {
                for (term, weight) in vector(counts) {
                    for &(record, other) in &index[term as usize] {
                        scores[record as usize] += f64::from(weight) * f64::from(other);
                    }
                }
                let mut top = Top::new(take);
                for (record, score) in scores.iter_mut().enumerate() {
                    // Rounding to six digits makes equal texts equally similar for any order of their n-grams.
                    let score = (1e6 * std::mem::take(score)).round() / 1e6;
                    top.offer(score.min(1.0) as f32, record as u32);
                }
                done(1);
                top.into_sorted()
            },
        )
        .collect();
    Neighbours::from_rows(take, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures are from scikit-learn 1.9.1: `TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3),
    /// sublinear_tf=True)` on these six texts.
    #[test]
    fn cosines_are_those_of_scikit_learn() {
        let queries = TextRows { cells: &["red chair", "oak table"], fields: 1 };
        let records = TextRows { cells: &["a red chair", "table of oak", "red table", ""], fields: 1 };
        let found = search(&queries, &records, (2, 3), 4, &|_| ());
        assert_eq!((found.row(0), found.row(1)), ([0, 2, 1, 3].as_slice(), [1, 2, 0, 3].as_slice()));
        let expected = [0.884220, 0.348357, 0.000000, 0.000000, 0.847148, 0.568212, 0.000000, 0.000000];
        for (score, expected) in found.scores.iter().zip(expected) {
            assert!((score - expected).abs() < 2e-6, "{:?}", found.scores);
        }
    }

    #[test]
    fn fields_form_one_text_and_empty_texts_match_no_record() {
        let queries = TextRows { cells: &["anna", "smith", "", ""], fields: 2 };
        let records = TextRows { cells: &["smith", "anna", "", "", "bert", ""], fields: 2 };
        let found = search(&queries, &records, (2, 4), 3, &|_| ());
        assert_eq!(found.row(0)[0], 0);
        assert!((found.scores(0)[0] - 1.0).abs() < 1e-6, "swapped fields are equal");
        assert_eq!(found.scores(1), [0.0; 3]);
        let many: Vec<String> =
            (0..60).map(|row| format!("{row} {:x} of {}", row * 7_919, row % 7)).collect();
        let many = TextRows { cells: &many, fields: 1 };
        let found = search(&many, &many, (2, 4), 1, &|_| ());
        assert!(
            (0..60).all(|row| found.row(row) == [row as u32] && found.scores(row) == [1.0]),
            "each text equals itself"
        );
    }
}
