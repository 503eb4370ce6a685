//! Coverage of intervals and sets of classes on rows with known labels: over all rows, by class and by decile
//! of the prediction.

use serde::{Deserialize, Serialize};
use statrs::function::beta::ln_beta;
use statrs::function::factorial::ln_binomial;

use crate::conformal::{Bounds, Conformal, rank};
use crate::nullable;
use crate::predictions::Predictions;

/// Number of groups by prediction.
const DECILES: usize = 10;

/// Coverage of intervals or sets of classes on some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// Stated probability 1 − α.
    pub stated: f64,
    /// Number of calibration rows.
    pub calibration_rows: usize,
    /// All rows.
    pub all: Covered,
    /// Number of rows with an empty set of classes; 0 for a regression.
    pub empty: usize,
    /// Rows of each true class, by class; empty for a regression.
    pub classes: Vec<Covered>,
    /// Rows of each decile of the prediction, ascending; empty for classes, and for fewer than 10 rows.
    pub deciles: Vec<Decile>,
}

/// Covered rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covered {
    /// Number of rows.
    pub rows: usize,
    /// Number of rows with the truth in the interval or set.
    pub covered: usize,
    /// Mean width of the intervals in the label's unit, or mean number of classes of the sets. `None` without
    /// rows, or if an interval is infinite.
    #[serde(deserialize_with = "nullable::given")]
    pub size: Option<f64>,
}

/// Covered rows of a decile of the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decile {
    /// Least prediction of the decile.
    pub from: f64,
    /// Greatest prediction of the decile.
    pub to: f64,
    /// Rows of the decile.
    pub covered: Covered,
}

impl Covered {
    fn count(rows: &[usize], covers: &[bool], sizes: &[f64]) -> Self {
        let mean = rows.iter().map(|&row| sizes[row]).sum::<f64>() / rows.len() as f64;
        Self {
            rows: rows.len(),
            covered: rows.iter().filter(|&&row| covers[row]).count(),
            size: Some(mean).filter(|mean| mean.is_finite()),
        }
    }

    /// Returns the share of covered rows; `None` without rows.
    pub fn share(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.covered as f64 / self.rows as f64)
    }
}

impl Coverage {
    /// Measures the coverage on `rows`. An empty set of classes covers no row.
    pub fn new(conformal: &Conformal, rows: &Predictions<'_>) -> Self {
        let classes = rows.task().classes();
        let covers: Vec<bool> = (0..rows.rows()).map(|row| conformal.covers(rows, row)).collect();
        let size = |row: usize| match classes {
            0 => {
                let [lower, upper] = conformal.interval(rows.predicted(row));
                upper - lower
            }
            _ => {
                let probabilities: Vec<f64> =
                    (0..classes).map(|class| rows.probability(row, class)).collect();
                conformal.classes(&probabilities).len() as f64
            }
        };
        let sizes: Vec<f64> = (0..rows.rows()).map(size).collect();
        let mut order: Vec<usize> = (0..rows.rows()).collect();
        let all = Covered::count(&order, &covers, &sizes);
        let mut deciles = Vec::new();
        if classes == 0 && order.len() >= DECILES {
            order.sort_by(|&a, &b| rows.predicted(a).total_cmp(&rows.predicted(b)));
            for decile in 0..DECILES {
                let of = |at: usize| at * order.len() / DECILES;
                let members = &order[of(decile)..of(decile + 1)];
                let [from, to] = [members[0], members[members.len() - 1]].map(|row| rows.predicted(row));
                deciles.push(Decile { from, to, covered: Covered::count(members, &covers, &sizes) });
            }
        }
        let of_class = |class: usize| {
            let members: Vec<usize> = (0..rows.rows()).filter(|&row| rows.class(row) == class).collect();
            Covered::count(&members, &covers, &sizes)
        };
        Self {
            stated: 1.0 - conformal.alpha,
            calibration_rows: conformal.rows,
            all,
            empty: sizes.iter().filter(|size| **size == 0.0).count() * usize::from(classes > 0),
            classes: (0..classes).map(of_class).collect(),
            deciles,
        }
    }

    /// Returns the probability of so few covered rows if these rows are exchangeable with the calibration
    /// rows: over all rows for a regression, otherwise in the worst class, times the number of classes
    /// (Bonferroni). Returns 1 if no bound limits the coverage.
    pub fn shortfall(&self, conformal: &Conformal) -> f64 {
        let of = |covered: &Covered, calibration: usize| {
            let rank = rank(calibration, conformal.alpha)?;
            Some(at_most(covered.covered, covered.rows, rank, calibration))
        };
        match &conformal.bounds {
            Bounds::Width(_) | Bounds::Scaled { .. } | Bounds::AllClasses(_) => {
                of(&self.all, conformal.rows).unwrap_or(1.0)
            }
            Bounds::Classes(bounds) => {
                let tested: Vec<f64> = self
                    .classes
                    .iter()
                    .zip(bounds)
                    .filter_map(|(class, bound)| of(class, bound.rows))
                    .collect();
                let least = tested.iter().copied().fold(1.0, f64::min);
                (least * tested.len() as f64).min(1.0)
            }
        }
    }
}

/// Returns the probability that at most `covered` of `tested` rows are covered, if n = `calibration`
/// exchangeable rows calibrated a bound of this rank.
///
/// The coverage probability of a new row follows Beta(rank, n + 1 − rank) (Vovk 2012). Given this
/// probability, the number of covered rows is binomial.
fn at_most(covered: usize, tested: usize, rank: usize, calibration: usize) -> f64 {
    let (a, b) = (rank as f64, (calibration + 1 - rank) as f64);
    let of = |count: usize| {
        let shares = ln_beta(a + count as f64, b + (tested - count) as f64) - ln_beta(a, b);
        (ln_binomial(tested as u64, count as u64) + shares).exp()
    };
    (0..=covered).map(of).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformal::ClassBound;
    use crate::metric::Task;

    #[test]
    fn counts_rows_by_decile() {
        // 20 rows with residuals 0, 1, 2, .., 19 and predictions in the opposite order.
        let output: Vec<f64> = (0..20).map(|row| f64::from(20 - row)).collect();
        let truth: Vec<f64> = (0..20).map(|row| f64::from(20 - row) + f64::from(row)).collect();
        let rows = Predictions::new(Task::Regression, &truth, &output).expect("right");
        let conformal = Conformal { alpha: 0.1, rows: 99, bounds: Bounds::Width(Some(4.0)) };
        let found = Coverage::new(&conformal, &rows);
        assert_eq!(found.all, Covered { rows: 20, covered: 5, size: Some(8.0) });
        assert_eq!((found.stated, found.calibration_rows, found.empty), (0.9, 99, 0));
        assert_eq!((found.deciles.len(), found.classes.len()), (10, 0));
        let covered: Vec<usize> = found.deciles.iter().map(|decile| decile.covered.covered).collect();
        assert_eq!(covered, [0, 0, 0, 0, 0, 0, 0, 1, 2, 2]);
        assert_eq!([found.deciles[0].from, found.deciles[0].to, found.deciles[9].to], [1.0, 2.0, 20.0]);
        assert!(found.shortfall(&conformal) < 1e-8, "{}", found.shortfall(&conformal));
        let none = Conformal { alpha: 0.1, rows: 3, bounds: Bounds::Width(None) };
        let found = Coverage::new(&none, &rows);
        assert_eq!((found.all.covered, found.all.size, found.shortfall(&none)), (20, None, 1.0));
    }

    #[test]
    fn counts_rows_by_class_and_empty_sets() {
        let truth = [0.0, 0.0, 1.0, 1.0];
        let rows = Predictions::new(Task::Binary, &truth, &[0.05, 0.5, 0.95, 0.2]).expect("right");
        let bound = ClassBound { rows: 19, bound: Some(0.1) };
        let conformal = Conformal { alpha: 0.1, rows: 38, bounds: Bounds::Classes(vec![bound; 2]) };
        let found = Coverage::new(&conformal, &rows);
        let class = Covered { rows: 2, covered: 1, size: Some(0.5) };
        assert_eq!((found.classes, found.empty), (vec![class; 2], 2));
        assert_eq!(found.all, Covered { rows: 4, covered: 2, size: Some(0.5) });
    }

    /// The distribution of at most 1 of 2 rows by hand: 1 − E[c²] for c ~ Beta(9, 1), which is 1 − 9/11.
    #[test]
    fn shortfall_counts_the_calibration() {
        assert!((at_most(1, 2, 9, 9) - (1.0 - 9.0 / 11.0)).abs() < 1e-12);
        assert!((at_most(2, 2, 9, 9) - 1.0).abs() < 1e-12);
    }
}
