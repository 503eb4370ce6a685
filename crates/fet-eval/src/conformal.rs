//! Split-conformal prediction: intervals and sets of classes with a stated coverage.
//!
//! The scores of n calibration rows bound the score of a new row. The calibration rows are validation rows
//! that no model was fitted to. A new score exceeds the k-th smallest calibration score, k = ⌈(n + 1)(1 −
//! α)⌉, with probability at most α (Vovk, Gammerman and Shafer 2005; Lei et al. 2018, theorem 2.2).
//! [`COVERAGE`] states the limits of this guarantee.
//!
//! - **Classes** have a bound each, from the calibration rows of that class (Mondrian or label-conditional
//!   prediction, Vovk 2005; Sadinle, Lei and Wasserman 2019). The guarantee then holds for the rows of every
//!   class by itself, so that a rare class is covered like a frequent one. A class with fewer than 1/α − 1
//!   calibration rows is without a bound: every set contains it. If no class has enough
//!   rows, one bound for all classes covers all rows together (LAC, Sadinle et al. 2019).
//! - **Intervals** of a regression have a width in proportion to the spread of the residuals near the
//!   prediction (normalised prediction, Lei et al. 2018, section 5.2). Half of the validation rows fit the
//!   spread ([`Spread`]), and the other half calibrates the bound. A score therefore never depends on a
//!   spread that its own row changed, and the guarantee over all rows is that of a constant width. With few
//!   validation rows the width is constant, and all rows calibrate it.

mod spread;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::metric::Task;
use crate::predictions::Predictions;

pub use spread::Spread;

/// Meaning of the stated probability. Reports print this text with the figure.
pub const COVERAGE: &str = "at least 1 - alpha over the draw of calibration and test rows, if they are exchangeable; for \
    classes, among the rows of each class; not for each row or other group by itself, not for these calibration rows in \
    particular, and not if validation rows chose the model";

/// Minimum number of calibration rows of a scaled width, relative to the least number with a finite bound. The
/// bound is then at most the third largest score.
const LEAST_CALIBRATIONS: usize = 3;

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

/// Calibrated bounds on the scores of new rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conformal {
    /// Miscoverage rate α.
    pub alpha: f64,
    /// Number n of calibration rows.
    pub rows: usize,
    /// Bounds of the scores.
    pub bounds: Bounds,
}

/// Bounds of the scores. A bound is `None` if its calibration rows are fewer than 1/α − 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Bounds {
    /// Bound of |y − p|, in the label's unit.
    Width(Option<f64>),
    /// Bound of |y − p| / σ(p).
    Scaled {
        /// Bound of the scaled residual, without a unit.
        bound: Option<f64>,
        /// σ, in the label's unit.
        spread: Spread,
    },
    /// Bound of 1 − p of the true class, for each class.
    Classes(Vec<ClassBound>),
    /// Bound of 1 − p of the true class over the rows of all classes together.
    AllClasses(Option<f64>),
}

/// Bound of 1 − p for the rows of one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassBound {
    /// Number of calibration rows of the class.
    pub rows: usize,
    /// The bound. `None` if the rows are too few: every set then contains the class.
    pub bound: Option<f64>,
}

impl Bounds {
    /// Returns true if a set can contain a class with this probability.
    fn allows(&self, class: usize, probability: f64) -> bool {
        let bound = match self {
            Self::Classes(all) => all.get(class).and_then(|class| class.bound),
            Self::AllClasses(bound) => *bound,
            Self::Width(_) | Self::Scaled { .. } => None,
        };
        bound.is_none_or(|bound| 1.0 - probability <= bound)
    }
}

impl Conformal {
    /// Calibrates on `rows`. The score is the scaled or absolute residual of a regression, otherwise 1 − the
    /// probability of the true class. `rng` draws the rows that fit the spread of residuals.
    pub fn new(rows: &Predictions<'_>, alpha: f64, rng: &mut ChaCha8Rng) -> Result<Self, ConformalError> {
        check(rows, alpha)?;
        if !matches!(rows.task(), Task::Regression) {
            return Ok(Self { alpha, rows: rows.rows(), bounds: class_bounds(rows, alpha) });
        }
        let mut order: Vec<usize> = (0..rows.rows()).collect();
        order.shuffle(rng);
        let (fitting, calibrating) = order.split_at(order.len().div_ceil(2));
        if calibrating.len() < LEAST_CALIBRATIONS.saturating_mul(Self::least_rows(alpha)) {
            return Self::constant(rows, alpha);
        }
        let pairs = fitting.iter().map(|&row| [rows.predicted(row), residual(rows, row)]);
        let Some(spread) = Spread::fit(pairs.collect(), alpha) else { return Self::constant(rows, alpha) };
        let scores = calibrating.iter().map(|&row| residual(rows, row) / spread.at(rows.predicted(row)));
        let bound = bound(scores.collect(), alpha);
        Ok(Self { alpha, rows: calibrating.len(), bounds: Bounds::Scaled { bound, spread } })
    }

    /// Calibrates intervals of constant width for a regression on all of these rows.
    pub fn constant(rows: &Predictions<'_>, alpha: f64) -> Result<Self, ConformalError> {
        check(rows, alpha)?;
        let scores = (0..rows.rows()).map(|row| residual(rows, row)).collect();
        Ok(Self { alpha, rows: rows.rows(), bounds: Bounds::Width(bound(scores, alpha)) })
    }

    /// Returns true if some interval is finite, or some set can exclude a class.
    pub fn is_bounded(&self) -> bool {
        match &self.bounds {
            Bounds::Width(bound) | Bounds::Scaled { bound, .. } | Bounds::AllClasses(bound) => {
                bound.is_some()
            }
            Bounds::Classes(classes) => classes.iter().any(|class| class.bound.is_some()),
        }
    }

    /// Returns true if the bounds are valid bounds for predictions of this task.
    pub fn is_of(&self, task: Task) -> bool {
        let is_bound = |bound: &Option<f64>| bound.is_none_or(|bound| bound >= 0.0 && bound.is_finite());
        let classes = task.classes();
        let fits = match &self.bounds {
            Bounds::Width(bound) => classes == 0 && is_bound(bound),
            Bounds::Scaled { bound, spread } => classes == 0 && is_bound(bound) && spread.is_valid(),
            Bounds::Classes(all) => all.len() == classes && all.iter().all(|class| is_bound(&class.bound)),
            Bounds::AllClasses(bound) => classes > 0 && is_bound(bound),
        };
        self.alpha > 0.0 && self.alpha < 1.0 && fits
    }

    /// Returns true if [`Conformal::new`] can have calibrated these bounds for this task: they are valid, and their numbers
    /// of rows determine which of them exist.
    pub fn is_calibrated(&self, task: Task) -> bool {
        // Only an α within (0, 1) has a number of rows.
        if !self.is_of(task) {
            return false;
        }
        let is_enough = |rows: usize| rows >= Self::least_rows(self.alpha);
        let probability = |bound: Option<f64>| bound.is_none_or(|bound| bound <= 1.0);
        match &self.bounds {
            Bounds::Width(bound) | Bounds::Scaled { bound, .. } => is_enough(self.rows) == bound.is_some(),
            Bounds::AllClasses(bound) => is_enough(self.rows) == bound.is_some() && probability(*bound),
            Bounds::Classes(all) => {
                let sum = all.iter().try_fold(0usize, |sum, class| sum.checked_add(class.rows));
                let fits = |class: &ClassBound| {
                    is_enough(class.rows) == class.bound.is_some() && probability(class.bound)
                };
                sum == Some(self.rows) && all.iter().all(fits)
            }
        }
    }

    /// Returns the classes without a bound, which every set contains.
    pub fn unbounded_classes(&self) -> Vec<usize> {
        match &self.bounds {
            Bounds::Width(_) | Bounds::Scaled { .. } | Bounds::AllClasses(_) => Vec::new(),
            Bounds::Classes(all) => (0..all.len()).filter(|&class| all[class].bound.is_none()).collect(),
        }
    }

    /// Returns the interval around a predicted number, or the whole line if there were too few calibration
    /// rows.
    pub fn interval(&self, predicted: f64) -> [f64; 2] {
        let radius = match &self.bounds {
            Bounds::Width(bound) => *bound,
            Bounds::Scaled { bound, spread } => bound.map(|bound| bound * spread.at(predicted)),
            Bounds::Classes(_) | Bounds::AllClasses(_) => None,
        };
        let radius = radius.unwrap_or(f64::INFINITY);
        [predicted - radius, predicted + radius]
    }

    /// Returns the classes with 1 − p within their bounds, in order, including every class without a bound.
    /// The set is empty if no class is as probable as it usually is for the rows of that class.
    ///
    /// # Shapes
    /// - probabilities: one per class, two for a binary task
    pub fn classes(&self, probabilities: &[f64]) -> Vec<usize> {
        let allows = |class: &usize| self.bounds.allows(*class, probabilities[*class]);
        (0..probabilities.len()).filter(allows).collect()
    }

    /// Returns true if the interval or set of a row contains its truth.
    pub fn covers(&self, rows: &Predictions<'_>, row: usize) -> bool {
        match &self.bounds {
            Bounds::Width(_) | Bounds::Scaled { .. } => {
                let [lower, upper] = self.interval(rows.predicted(row));
                (lower..=upper).contains(&rows.truth(row))
            }
            Bounds::Classes(_) | Bounds::AllClasses(_) => {
                let class = rows.class(row);
                self.bounds.allows(class, rows.probability(row, class))
            }
        }
    }

    /// Returns the minimum number of calibration rows for a finite bound: the least n with (n + 1) α ≥ 1.
    pub fn least_rows(alpha: f64) -> usize {
        (1.0 / alpha - 1e-9).ceil() as usize - 1
    }
}

fn check(rows: &Predictions<'_>, alpha: f64) -> Result<(), ConformalError> {
    if !(alpha > 0.0 && alpha < 1.0) {
        return Err(ConformalError::Alpha(alpha));
    }
    if rows.weights().is_some() {
        return Err(ConformalError::Weights);
    }
    Ok(())
}

fn residual(rows: &Predictions<'_>, row: usize) -> f64 {
    (rows.truth(row) - rows.predicted(row)).abs()
}

fn class_bounds(rows: &Predictions<'_>, alpha: f64) -> Bounds {
    let mut scores = vec![Vec::new(); rows.task().classes()];
    for row in 0..rows.rows() {
        let class = rows.class(row);
        scores[class].push(1.0 - rows.probability(row, class));
    }
    if scores.iter().all(|scores| rank(scores.len(), alpha).is_none()) {
        return Bounds::AllClasses(bound(scores.concat(), alpha));
    }
    let of_class = |scores: Vec<f64>| ClassBound { rows: scores.len(), bound: bound(scores, alpha) };
    Bounds::Classes(scores.into_iter().map(of_class).collect())
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
    use rand::SeedableRng;

    fn calibrated(rows: &Predictions<'_>, alpha: f64) -> Result<Conformal, ConformalError> {
        Conformal::new(rows, alpha, &mut ChaCha8Rng::seed_from_u64(3))
    }

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
    fn few_rows_give_a_constant_width() {
        let truth = [1.0, 2.0, 3.0, 4.0];
        let rows = Predictions::new(Task::Regression, &truth, &[1.5, 2.0, 5.0, 3.0]).expect("right");
        let half = calibrated(&rows, 0.5).expect("right");
        assert_eq!(half.bounds, Bounds::Width(Some(1.0)), "the 3rd of 0, 0.5, 1, 2");
        assert_eq!(half.interval(7.0), [6.0, 8.0]);
        assert_eq!((0..4).map(|row| half.covers(&rows, row)).collect::<Vec<_>>(), [true, true, false, true]);
        let few = calibrated(&rows, 0.1).expect("right");
        assert_eq!((few.is_bounded(), few.interval(7.0)), (false, [f64::NEG_INFINITY, f64::INFINITY]));
        assert!(calibrated(&rows, 0.0).is_err() && calibrated(&rows, f64::NAN).is_err());
        assert!(calibrated(&rows.weighted(&[1.0; 4]).expect("right"), 0.1).is_err());
    }

    #[test]
    fn bounds_fit_their_numbers_of_rows() {
        let numbers = Task::Regression;
        let of = |alpha: f64, rows: usize, bounds: Bounds| Conformal { alpha, rows, bounds };
        let class = |rows, bound| ClassBound { rows, bound };
        let classes = |all: &[ClassBound]| Bounds::Classes(all.to_vec());
        for (found, task, expect) in [
            (of(0.1, 9, Bounds::Width(Some(2.0))), numbers, true),
            (of(0.1, 9, Bounds::Width(None)), numbers, false),
            (of(0.1, 8, Bounds::Width(None)), numbers, true),
            (of(0.1, 0, Bounds::Width(Some(2.0))), numbers, false),
            (of(0.1, 9, Bounds::Width(Some(-2.0))), numbers, false),
            (of(0.1, 9, Bounds::Width(Some(2.0))), Task::Binary, false),
            (of(1.0, 9, Bounds::Width(Some(2.0))), numbers, false),
            (of(f64::NAN, 9, Bounds::Width(Some(2.0))), numbers, false),
            (of(0.1, 12, classes(&[class(9, Some(0.5)), class(3, None)])), Task::Binary, true),
            (of(0.1, 13, classes(&[class(9, Some(0.5)), class(3, None)])), Task::Binary, false),
            (of(0.1, 12, classes(&[class(9, None), class(3, None)])), Task::Binary, false),
            (of(0.1, 12, classes(&[class(9, Some(1.5)), class(3, None)])), Task::Binary, false),
            (of(0.1, 8, classes(&[class(usize::MAX, Some(0.5)), class(9, Some(0.5))])), Task::Binary, false),
            (of(0.1, 9, Bounds::AllClasses(Some(0.5))), Task::Binary, true),
            (of(0.1, 0, Bounds::AllClasses(Some(0.5))), Task::Binary, false),
        ] {
            assert_eq!(found.is_calibrated(task), expect, "{found:?}");
        }
    }

    #[test]
    fn every_class_has_its_own_bound() {
        // Three rows of class 0 and one of class 1, with α = 1/2: the 2nd of three scores, and the only one.
        let truth = [0.0, 0.0, 0.0, 1.0];
        let output = [0.9, 0.1, 0.0, 0.8, 0.1, 0.1, 0.5, 0.25, 0.25, 0.6, 0.25, 0.15];
        let rows = Predictions::new(Task::Multiclass { classes: 3 }, &truth, &output).expect("right");
        let found = calibrated(&rows, 0.5).expect("right");
        let Bounds::Classes(bounds) = &found.bounds else { panic!("{found:?}") };
        let near = |bound: &ClassBound, rows, expect: f64| {
            bound.rows == rows && bound.bound.is_some_and(|bound| (bound - expect).abs() < 1e-12)
        };
        assert!(near(&bounds[0], 3, 0.2) && near(&bounds[1], 1, 0.75), "{bounds:?}");
        assert_eq!((bounds[2], found.unbounded_classes()), (ClassBound { rows: 0, bound: None }, vec![2]));
        assert_eq!(found.classes(&[0.85, 0.05, 0.1]), [0, 2]);
        assert_eq!(found.classes(&[0.6, 0.3, 0.1]), [1, 2]);
        assert_eq!((0..4).map(|row| found.covers(&rows, row)).collect::<Vec<_>>(), [true, true, false, true]);

        // With α = 0.2 no class has the 4 rows that it needs, but all rows together are 4.
        let found = calibrated(&rows, 0.2).expect("right");
        assert_eq!(found.bounds, Bounds::AllClasses(Some(0.75)), "the 4th of 0.1, 0.2, 0.5, 0.75");
        let sure = ClassBound { rows: 99, bound: Some(0.1) };
        let two = Conformal { alpha: 0.1, rows: 198, bounds: Bounds::Classes(vec![sure; 2]) };
        assert!(two.classes(&[0.5, 0.5]).is_empty(), "no class is as probable as usual");
        assert_eq!(two.classes(&[0.95, 0.05]), [0]);
    }
}
