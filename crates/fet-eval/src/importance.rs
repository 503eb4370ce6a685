//! Permutation importance: loss in a fitted model's metric when a column is shuffled (Breiman 2001).
//!
//! Columns with the same information hide each other: each appears worthless while the other column remains.
//! The importance describes this model, not the data.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::metric::Direction;

/// Importance of a column in the metric's unit; positive if the model is better with the column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Importance {
    /// Mean over the repeats.
    pub mean: f64,
    /// Population standard deviation over the repeats (division by their number, as in scikit-learn's
    /// `importances_std`).
    pub deviation: f64,
    /// Loss in the metric at each repeat.
    pub repeats: Vec<f64>,
}

/// Shuffles a column `repeats` times.
///
/// `score` returns the metric if row i has the column's value of row `order[i]`. The function calls `score`
/// once with the original order and once for each shuffle. To shuffle several columns together, for example
/// those of a party, apply the same order to all of them.
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

/// Error of permutation importance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportanceError<E> {
    /// Too few rows or repeats.
    #[error("a permutation importance needs at least 2 rows and 1 repeat, not {rows} and {repeats}")]
    Settings {
        /// Number of rows.
        rows: usize,
        /// Number of shuffles.
        repeats: usize,
    },
    /// The score function failed.
    #[error("the score of the shuffled rows failed")]
    Score(#[source] E),
    /// The score is not finite.
    #[error("the score of the shuffled rows is {0}; scores must be finite")]
    NotFinite(f64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn only_used_columns_have_importance() {
        let column = [0.0f64, 1.0, 2.0, 3.0, 4.0, 5.0];
        // Mean squared error of a model that predicts the column, which is the truth, or of a model that
        // ignores it.
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
        // A random order costs 2 · variance = 35/6 in expectation, with standard error sd/20. Tolerance: five
        // standard errors, α < 1e-6.
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
    fn refuses_invalid_importance_settings() {
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
