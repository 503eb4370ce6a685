//! Results of one variant's cells, and their comparison with the base.

use std::collections::HashMap;

use fet_eval::Metric;
use fet_eval::records::Report;

use super::grid::Variant;
use super::repetition::Repetition;
use super::results::FinishedCell;
use super::statistics::CONFIDENCE;
use super::statistics::paired::PairedComparison;

/// Results of one variant.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The variant.
    pub(crate) variant: &'a Variant,
    /// Results by seed.
    pub(crate) results: Vec<&'a FinishedCell<'a>>,
    /// Test metric of each result.
    pub(crate) tests: Vec<f64>,
    /// Index of the row that this row is compared with.
    pub(crate) base: Option<usize>,
    /// Comparison with the base. Only tests of variants that the study asks about are corrected.
    pub(crate) comparison: Option<PairedComparison>,
    /// Outcome of the comparison.
    pub(crate) verdict: ComparisonVerdict,
}

impl Row<'_> {
    /// Returns the reports of the row's finished cells.
    pub(crate) fn reports(&self) -> Vec<&Report> {
        self.results.iter().map(|result| &result.report).collect()
    }

    /// Returns the number of test rows divided by the number of training and validation rows if the runs are folds
    /// of a cross-validation, and 0 otherwise.
    pub(crate) fn correlated(&self) -> f64 {
        let folds = || self.results.iter().filter(|result| result.cell.repetition.fold.is_some());
        let tested: usize = folds().map(|result| result.report.rows.test).sum();
        let fitted: usize =
            folds().map(|result| result.report.rows.train + result.report.rows.validation).sum();
        if fitted == 0 { 0.0 } else { tested as f64 / fitted as f64 }
    }

    /// Returns the test metrics (variant, base) of each seed that both have.
    pub(crate) fn pairs(&self, base: &Row<'_>) -> Vec<(f64, f64)> {
        let of_base: HashMap<Repetition, f64> =
            base.results.iter().map(|result| (result.cell.repetition, result.report.best.test)).collect();
        let own = self.results.iter();
        own.filter_map(|result| Some((result.report.best.test, *of_base.get(&result.cell.repetition)?)))
            .collect()
    }
}

/// Outcome of comparing a variant with its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparisonVerdict {
    /// No comparison: the base itself, or a variant whose base has no result.
    Alone,
    /// Difference without a test, because the study asks another question about the variant: it is a control
    /// variant, or its control variant is the base.
    NotAsked,
    /// Too few seeds for a test.
    Untested,
    /// The test shows no difference. This does not prove equality.
    NotShown,
    /// Better according to the test.
    Better,
    /// Worse according to the test.
    Worse,
}

impl ComparisonVerdict {
    /// Returns the verdict of a comparison by `metric`.
    pub(crate) fn new(metric: Metric, comparison: Option<&PairedComparison>) -> Self {
        let Some(comparison) = comparison else { return Self::Alone };
        match &comparison.test {
            None => Self::Untested,
            Some(test) if test.corrected >= 1.0 - CONFIDENCE => Self::NotShown,
            Some(_) if metric.direction().improves(comparison.difference, 0.0) => Self::Better,
            Some(_) => Self::Worse,
        }
    }

    /// Returns true if the test shows a difference.
    pub(crate) fn differs(self) -> bool {
        matches!(self, Self::Better | Self::Worse)
    }
}
