//! Gain from one variant to another on the same test rows.

use fet_eval::Metric;
use fet_study::CollectedCell;
use fet_study::paired::{self, PairedError, TestedRun};

use super::verdict::Gain;

/// Returns the gain of the runs `with` over the runs `without`, which have the same splits. The interval is infinite
/// if too few test rows of a class leave it undefined.
pub(super) fn gain(
    with: &[&CollectedCell],
    without: &[&CollectedCell],
    metric: Metric,
) -> anyhow::Result<Gain> {
    let runs = |cells: &[&CollectedCell]| -> anyhow::Result<Vec<TestedRun>> {
        cells.iter().map(|cell| paired::read(&cell.folder, &cell.report)).collect()
    };
    let found = match paired::difference(&runs(with)?, &runs(without)?, metric) {
        Err(PairedError::OftenUndefined { .. }) => {
            let mean = |cells: &[&CollectedCell]| {
                cells.iter().map(|cell| cell.report.best.test).sum::<f64>() / cells.len() as f64
            };
            let gain = metric.direction().gain(mean(with), mean(without));
            return Ok(Gain { mean: gain, lower: f64::NEG_INFINITY, upper: f64::INFINITY, rows: 0 });
        }
        found => found?,
    };
    let ends = found.over_rows_and_splits.unwrap_or(found.over_rows);
    let signed = |value: f64| metric.direction().gain(value, 0.0);
    let (one, other) = (signed(ends.lower), signed(ends.upper));
    Ok(Gain { mean: signed(found.estimate), lower: one.min(other), upper: one.max(other), rows: found.rows })
}

/// Returns the mean over the runs of the metric of a constant prediction, or `None` if a run leaves it undefined.
pub(super) fn constant(cells: &[&CollectedCell]) -> Option<f64> {
    let values: Vec<f64> = cells.iter().map(|cell| cell.report.constant).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
