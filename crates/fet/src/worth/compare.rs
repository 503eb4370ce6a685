//! Gain from one variant to another on the same test rows.

use fet_eval::{Metric, Predictions, Task};
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

/// Returns the mean over the runs of the metric of a constant prediction: the mean of the test labels, or the
/// shares of the classes. No constant is better for a squared error or a log loss. Returns `None` if a run leaves
/// the metric undefined.
pub(super) fn constant(cells: &[&CollectedCell], metric: Metric) -> anyhow::Result<Option<f64>> {
    let mut values = Vec::new();
    for cell in cells {
        let run = paired::read(&cell.folder, &cell.report)?;
        let rows = run.truth.len() as f64;
        let share =
            |class: usize| run.truth.iter().filter(|truth| **truth == class as f64).count() as f64 / rows;
        let one: Vec<f64> = match run.task {
            Task::Regression => vec![run.truth.iter().sum::<f64>() / rows],
            Task::Binary => vec![share(1)],
            Task::Multiclass { classes } => (0..classes).map(share).collect(),
        };
        let output = one.repeat(run.truth.len());
        let Ok(value) = Predictions::new(run.task, &run.truth, &output)?.score(metric) else {
            return Ok(None);
        };
        values.push(value);
    }
    Ok((!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64))
}
