//! Estimates the time for the missing cells from the finished cells.
//!
//! The estimate for a cell is the mean time of its variant's finished cells. If the variant has none, the
//! estimate is the mean over the variants that have finished cells. If no cell is finished, there is no
//! estimate.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::cell::Cell;
use super::results::FinishedCell;
use super::statistics::mean;

/// Mean seconds of the finished cells.
#[derive(Debug)]
pub(crate) struct TimeEstimate {
    by_variant: BTreeMap<usize, f64>,
    overall: Option<f64>,
    /// Number of measured cells.
    pub(crate) measured: usize,
}

impl TimeEstimate {
    /// Measures the finished cells.
    pub(crate) fn measure(results: &[FinishedCell<'_>]) -> Self {
        let mut seconds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        // A program other than `fet` may leave out the time of its run.
        let timed = |result: &&FinishedCell<'_>| result.report.cost.seconds > 0.0;
        for FinishedCell { cell, report } in results.iter().filter(timed) {
            seconds.entry(cell.index).or_default().push(report.cost.seconds);
        }
        let by_variant: BTreeMap<usize, f64> =
            seconds.iter().map(|(&index, all)| (index, mean(all))).collect();
        let means: Vec<f64> = by_variant.values().copied().collect();
        let overall = (!means.is_empty()).then(|| mean(&means));
        Self { by_variant, overall, measured: results.iter().filter(timed).count() }
    }

    /// Returns the estimated time of one cell.
    pub(crate) fn cell(&self, cell: &Cell) -> Option<Duration> {
        let seconds = self.by_variant.get(&cell.index).copied().or(self.overall)?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns the estimated time of all `cells`, running `jobs` at a time. The estimate is a lower bound,
    /// because cells that share cores slow each other down.
    pub(crate) fn total_time(&self, cells: &[&Cell], jobs: NonZeroUsize) -> Option<Duration> {
        let each: Option<Vec<Duration>> = cells.iter().map(|cell| self.cell(cell)).collect();
        let total: Duration = each?.iter().sum();
        Some(total / u32::try_from(jobs.get()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::{RMSE, finished};
    use super::*;

    #[test]
    fn estimates_from_the_variants_own_cells_first() {
        // The cells took 10, 11 and 13 seconds.
        let cells = [finished(0, 0, RMSE, 1.0), finished(0, 1, RMSE, 1.0), finished(1, 3, RMSE, 1.0)];
        let results: Vec<_> =
            cells.iter().map(|(cell, report)| FinishedCell { cell, report: report.clone() }).collect();
        let estimate = TimeEstimate::measure(&results);
        let (own, other) = (finished(0, 9, RMSE, 1.0).0, finished(2, 9, RMSE, 1.0).0);
        let seconds = |cell| estimate.cell(cell).expect("measured").as_secs_f64();
        assert_eq!((seconds(&own), seconds(&other)), (10.5, (10.5 + 13.0) / 2.0));
        let two = NonZeroUsize::new(2).expect("not 0");
        let all = estimate.total_time(&[&own, &other], two).expect("measured").as_secs_f64();
        assert!((all - (10.5 + 11.75) / 2.0).abs() < 1e-9, "{all}");
        assert_eq!(TimeEstimate::measure(&[]).total_time(&[&own], two), None);
    }
}
