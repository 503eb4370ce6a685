//! Gain from one variant to another on the same test rows.

use fet_eval::Metric;
use fet_study::CollectedCell;
use fet_study::paired::{self, TestedRun};

use super::verdict::Gain;

/// Returns the gain of the runs `with` over the runs `without`, which have the same splits.
pub(super) fn gain(
    with: &[&CollectedCell],
    without: &[&CollectedCell],
    metric: Metric,
) -> anyhow::Result<Gain> {
    let runs = |cells: &[&CollectedCell]| -> anyhow::Result<Vec<TestedRun>> {
        cells.iter().map(|cell| paired::read(&cell.folder, &cell.report)).collect()
    };
    let found = paired::difference(&runs(with)?, &runs(without)?, metric)?;
    let ends = found.over_rows_and_splits.unwrap_or(found.over_rows);
    let signed = |value: f64| metric.direction().gain(value, 0.0);
    let (one, other) = (signed(ends.lower), signed(ends.upper));
    Ok(Gain { mean: signed(found.estimate), lower: one.min(other), upper: one.max(other) })
}
