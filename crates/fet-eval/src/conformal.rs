//! Split-conformal prediction: intervals and sets of classes with a stated coverage.
//!
//! The scores of n calibration rows bound the score of a new row. The calibration rows are validation rows
//! that no model was fitted to. A new score exceeds the k-th smallest calibration score, k = ⌈(n + 1)(1 −
//! α)⌉, with probability at most α (Vovk, Gammerman and Shafer 2005; Lei et al. 2018, theorem 2.2).
//! [`COVERAGE`] states the limits of this guarantee.

use serde::{Deserialize, Serialize};

use crate::metric::Task;
use crate::predictions::Predictions;

/// Meaning of the stated probability. Reports print this text with the figure.
pub const COVERAGE: &str = "at least 1 - alpha over the draw of calibration and test rows, if they are exchangeable; not \
    for each row or group by itself, not for these calibration rows in particular, and not if validation rows chose the model";

/// Returns k = ⌈(n + 1)(1 − α)⌉, or `None` if k exceeds n, because then no calibration score bounds a new
/// score.
///
/// The function computes n + 1 − ⌊(n + 1) α⌋. It rounds a product within 1e-9 below a whole number up: in
/// binary, 0.29 · 100 is less than 29.
pub fn rank(rows: usize, alpha: f64) -> Option<usize> {
    let allowed = ((rows + 1) as f64 * alpha + 1e-9).floor() as usize;
    (allowed >= 1).then(|| rows + 1 - allowed)
}

/// Returns the k-th smallest score, or `None` if there are too few scores.
fn bound(mut scores: Vec<f64>, alpha: f64) -> Option<f64> {
    let rank = rank(scores.len(), alpha)?;
    scores.sort_by(f64::total_cmp);
    Some(scores[rank - 1])
}

/// Calibrated bound on the score of a new row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conformal {
    /// Miscoverage rate α.
    pub alpha: f64,
    /// Number n of calibration rows.
    pub rows: usize,
    /// Bound of the score: |y − p| for a regression (in the label's unit), 1 − p of the true class otherwise.
    /// `None` if n < 1/α − 1: every interval is then the whole line, and every set holds all classes.
    pub bound: Option<f64>,
}

impl Conformal {
    /// Calibrates on `rows`. The score is the absolute residual of a regression (Lei et al. 2018), otherwise
    /// 1 − the probability of the true class (LAC, Sadinle, Lei and Wasserman 2019).
    pub fn new(rows: &Predictions<'_>, alpha: f64) -> Result<Self, ConformalError> {
        if !(alpha > 0.0 && alpha < 1.0) {
            return Err(ConformalError::Alpha(alpha));
        }
        if rows.weights().is_some() {
            return Err(ConformalError::Weights);
        }
        let score = |row: usize| match rows.task() {
            Task::Regression => (rows.truth(row) - rows.predicted(row)).abs(),
            Task::Binary | Task::Multiclass { .. } => 1.0 - rows.probability(row, rows.class(row)),
        };
        let scores = (0..rows.rows()).map(score).collect();
        Ok(Self { alpha, rows: rows.rows(), bound: bound(scores, alpha) })
    }

    /// Returns the interval around a predicted number, or the whole line if there were too few calibration
    /// rows.
    pub fn interval(&self, predicted: f64) -> [f64; 2] {
        let radius = self.bound.unwrap_or(f64::INFINITY);
        [predicted - radius, predicted + radius]
    }

    /// Returns the classes with 1 − p within the bound, in order, or all classes if there were too few
    /// calibration rows. The set is empty if no class is as probable as the true classes of the calibration
    /// rows usually are.
    ///
    /// # Shapes
    /// - probabilities: one per class, two for a binary task
    pub fn classes(&self, probabilities: &[f64]) -> Vec<usize> {
        let within = |p: f64| self.bound.is_none_or(|bound| 1.0 - p <= bound);
        (0..probabilities.len()).filter(|class| within(probabilities[*class])).collect()
    }

    /// Returns true if the interval or set of a row contains its truth.
    pub fn covers(&self, rows: &Predictions<'_>, row: usize) -> bool {
        match rows.task() {
            Task::Regression => {
                let [lower, upper] = self.interval(rows.predicted(row));
                (lower..=upper).contains(&rows.truth(row))
            }
            Task::Binary | Task::Multiclass { .. } => {
                self.bound.is_none_or(|bound| 1.0 - rows.probability(row, rows.class(row)) <= bound)
            }
        }
    }

    /// Returns the minimum number of calibration rows for a finite bound: the least n with (n + 1) α ≥ 1.
    pub fn least_rows(alpha: f64) -> usize {
        (1.0 / alpha - 1e-9).ceil() as usize - 1
    }
}

/// Error of a calibration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConformalError {
    /// α is not between 0 and 1.
    #[error("alpha, the miscoverage rate, must be between 0 and 1, not {0}; use 0.1")]
    Alpha(f64),
    /// The rows have weights and so are not exchangeable.
    #[error("the coverage guarantee needs rows of equal weight; calibrate without weights")]
    Weights,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_the_exact_ceiling() {
        for (rows, alpha, expect) in [
            (19, 0.05, Some(19)),
            (18, 0.05, None),
            (99, 0.05, Some(95)),
            (99, 0.1, Some(90)),
            (9, 0.1, Some(9)),
            (8, 0.1, None),
            (100, 0.1, Some(91)),
            (3, 0.5, Some(2)),
            (999, 0.001, Some(999)),
            (99, 0.29, Some(71)),
        ] {
            assert_eq!(rank(rows, alpha), expect, "{rows} rows, alpha {alpha}");
        }
        for alpha in [0.5, 0.1, 0.05, 0.03, 0.01, 0.001] {
            let least = Conformal::least_rows(alpha);
            assert!(rank(least, alpha).is_some() && rank(least - 1, alpha).is_none(), "{alpha}");
        }
    }

    #[test]
    fn intervals_and_sets_follow_from_the_bound() {
        let truth = [1.0, 2.0, 3.0, 4.0];
        let rows = Predictions::new(Task::Regression, &truth, &[1.5, 2.0, 5.0, 3.0]).expect("right");
        let half = Conformal::new(&rows, 0.5).expect("right");
        assert_eq!(half.bound, Some(1.0), "the 3rd of 0, 0.5, 1, 2");
        assert_eq!(half.interval(7.0), [6.0, 8.0]);
        assert_eq!((0..4).map(|row| half.covers(&rows, row)).collect::<Vec<_>>(), [true, true, false, true]);
        let few = Conformal::new(&rows, 0.1).expect("right");
        assert_eq!((few.bound, few.interval(7.0)), (None, [f64::NEG_INFINITY, f64::INFINITY]));
        assert_eq!(few.classes(&[0.0, 1.0]), [0, 1]);
        let lac = Conformal { alpha: 0.1, rows: 99, bound: Some(0.75) };
        assert_eq!(lac.classes(&[0.25, 0.5, 0.125, 0.125]), [0, 1]);
        assert!(lac.classes(&[0.2, 0.2, 0.2, 0.2, 0.2]).is_empty());
        assert!(Conformal::new(&rows, 0.0).is_err() && Conformal::new(&rows, f64::NAN).is_err());
        assert!(Conformal::new(&rows.weighted(&[1.0; 4]).expect("right"), 0.1).is_err());
    }
}
