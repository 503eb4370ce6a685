//! Metric of the same rows under many weightings, for the bootstrap. Values that do not depend on the weights
//! are computed once.

use crate::metric::Metric;
use crate::predictions::Predictions;
use crate::ranking::Orders;
use crate::regression::{absolute_errors, median_of};

/// Metric of some rows for repeated evaluation under other weights.
pub(crate) struct Reweighted<'a> {
    rows: Predictions<'a>,
    metric: Metric,
    kept: CachedValues,
}

/// Cached values that do not depend on the weights.
enum CachedValues {
    /// No cached values: the metric is cheap.
    Nothing,
    /// Rows by score.
    Orders(Orders),
    /// Absolute errors of the rows, ascending.
    Errors(Vec<(f64, usize)>),
}

impl<'a> Reweighted<'a> {
    pub(crate) fn new(rows: Predictions<'a>, metric: Metric) -> Self {
        let kept = match metric {
            _ if !metric.fits(rows.task()) => CachedValues::Nothing,
            Metric::AucRoc | Metric::AucPr => CachedValues::Orders(Orders::new(&rows)),
            Metric::MedianAbsoluteError => CachedValues::Errors(absolute_errors(&rows)),
            _ => CachedValues::Nothing,
        };
        Self { rows, metric, kept }
    }

    /// Returns the metric under these weights, or `None` if it is undefined.
    pub(crate) fn score(&self, weights: &[f64]) -> Option<f64> {
        let rows = self.rows.weighted(weights).ok()?;
        let value = match &self.kept {
            CachedValues::Orders(orders) if self.metric == Metric::AucRoc => orders.auc_roc(&rows).ok()?,
            CachedValues::Orders(orders) => orders.auc_pr(&rows).ok()?,
            CachedValues::Errors(errors) => median_of(&rows, errors),
            CachedValues::Nothing => rows.score(self.metric).ok()?,
        };
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Task;

    #[test]
    fn reweighted_metrics_equal_those_of_weighted_rows() {
        let truth = [0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 1.0];
        let classes: Vec<f64> = truth.iter().map(|y| y % 2.0).collect();
        let one = [0.3, 0.7, 0.3, 0.5, 0.1, 0.9, 0.3];
        let three: Vec<f64> = one.iter().flat_map(|p| [*p, 0.5 * (1.0 - p), 0.5 * (1.0 - p)]).collect();
        let cases = [
            Predictions::new(Task::Regression, &truth, &one),
            Predictions::new(Task::Binary, &classes, &one),
            Predictions::new(Task::Multiclass { classes: 3 }, &truth, &three),
        ];
        let weights = [
            vec![1.0, 0.0, 2.0, 1.0, 0.5, 0.0, 3.0],
            vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            vec![2.0, 1.0, 1.0, 0.0, 0.0, 1.0, 2.0],
        ];
        let mut met = 0;
        for rows in cases {
            let rows = rows.expect("right");
            for metric in Metric::for_task(rows.task()) {
                let reweighted = Reweighted::new(rows, metric);
                for weights in &weights {
                    let expect = rows.weighted(weights).expect("right").score(metric).ok();
                    assert_eq!(reweighted.score(weights), expect, "{metric} under {weights:?}");
                    met += usize::from(expect.is_some());
                }
            }
        }
        assert!(met > 40, "{met} are defined");
    }
}
