//! What a column is worth to a fitted model: how much worse the metric gets when the column is shuffled (Breiman 2001).
//!
//! Columns that say the same hide each other: each may seem worthless while the other stays. It is a statement about
//! this model, not about the data.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::metric::Direction;

/// The importance of a column, in the metric's unit; positive if the model is better with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Importance {
    /// Mean over the repeats.
    pub mean: f64,
    /// Standard deviation over the repeats, that of the repeats themselves (divided by their number, as scikit-learn's
    /// `importances_std`).
    pub deviation: f64,
    /// How much worse the metric got at each repeat.
    pub repeats: Vec<f64>,
}

/// Shuffles a column `repeats` times.
///
/// `score` gives the metric when row i sees the column's value of row `order[i]`; it is asked once for the rows in their
/// own order, then for each shuffle. Columns that belong together (a party's) are shuffled together by the same order.
pub fn permutation_importance<E>(
    rows: usize,
    repeats: usize,
    direction: Direction,
    mut score: impl FnMut(&[usize]) -> Result<f64, E>,
    rng: &mut ChaCha8Rng,
) -> Result<Importance, ImportanceError<E>> {
    if rows < 2 || repeats == 0 {
        return Err(ImportanceError::Settings { rows, repeats });
    }
    let mut order: Vec<usize> = (0..rows).collect();
    let mut finite = |order: &[usize]| {
        let value = score(order).map_err(ImportanceError::Score)?;
        if value.is_finite() { Ok(value) } else { Err(ImportanceError::NotFinite(value)) }
    };
    let untouched = finite(&order)?;
    let mut losses = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        order.shuffle(rng);
        losses.push(direction.gain(untouched, finite(&order)?));
    }
    let mean = losses.iter().sum::<f64>() / repeats as f64;
    let variance = losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / repeats as f64;
    Ok(Importance { mean, deviation: variance.sqrt(), repeats: losses })
}

/// Why there is no importance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportanceError<E> {
    /// Nothing to shuffle.
    #[error("at least 2 rows are shuffled at least once, not {rows} rows {repeats} times")]
    Settings {
        /// The number of rows.
        rows: usize,
        /// The number of shuffles.
        repeats: usize,
    },
    /// The score failed.
    #[error("the shuffled rows have no score")]
    Score(#[source] E),
    /// Not a score.
    #[error("the score of shuffled rows is {0}; scores are finite")]
    NotFinite(f64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_column_that_is_used_matters_and_one_that_is_not_does_not() {
        let column = [0.0f64, 1.0, 2.0, 3.0, 4.0, 5.0];
        // The mean squared error of a model that repeats the column, which is the truth; or of one that ignores it.
        let error = |used: bool| {
            move |order: &[usize]| {
                let at = |row: usize| if used { column[order[row]] } else { 2.5 };
                Ok::<_, ()>((0..6).map(|row| (at(row) - column[row]).powi(2)).sum::<f64>() / 6.0)
            }
        };
        let of = |used, direction, seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            permutation_importance(6, 400, direction, error(used), &mut rng).expect("an importance")
        };
        let used = of(true, Direction::Minimise, 1);
        // A random order costs 2 · variance = 35/6 in expectation, with standard error sd/20: five of them, α < 1e-6.
        assert!((used.mean - 35.0 / 6.0).abs() < 5.0 * used.deviation / 20.0, "{}", used.mean);
        assert!(used.deviation > 1.0 && used.repeats.len() == 400);
        assert_eq!(of(true, Direction::Maximise, 1).mean, -used.mean);
        assert_eq!(
            (of(false, Direction::Minimise, 1).mean, of(false, Direction::Minimise, 1).deviation),
            (0.0, 0.0)
        );
        assert_eq!(used, of(true, Direction::Minimise, 1));
        assert_ne!(used, of(true, Direction::Minimise, 2));
    }

    #[test]
    fn what_has_no_importance_is_refused() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut with = |rows, repeats, score: Result<f64, &'static str>| {
            permutation_importance(rows, repeats, Direction::Minimise, |_| score, &mut rng)
                .expect_err("refused")
        };
        assert_eq!(with(1, 5, Ok(1.0)), ImportanceError::Settings { rows: 1, repeats: 5 });
        assert_eq!(with(9, 0, Ok(1.0)), ImportanceError::Settings { rows: 9, repeats: 0 });
        assert_eq!(with(9, 1, Err("no")), ImportanceError::Score("no"));
        assert_eq!(with(9, 1, Ok(f64::INFINITY)), ImportanceError::NotFinite(f64::INFINITY));
    }
}
