//! Gain from one variant to another on the same test rows.

use std::collections::BTreeMap;

use anyhow::Context;
use fet_eval::bootstrap::BootstrapSettings;
use fet_eval::paired::{self, TestedRun};
use fet_eval::{ChaCha8Rng, Metric, SeedableRng, Task};
use fet_study::CollectedCell;
use fet_tables::{Kind, Options, Values};

use super::verdict::Gain;
use crate::folder::PREDICTIONS;
use crate::predictions::ROW;

/// Column with the part of each row.
const PART: &str = "part";
/// Column with the true values.
const LABEL: &str = "label";

/// Returns the gain of the runs `with` over the runs `without`, which have the same splits.
pub(super) fn gain(
    with: &[&CollectedCell],
    without: &[&CollectedCell],
    metric: Metric,
) -> anyhow::Result<Gain> {
    let runs =
        |cells: &[&CollectedCell]| cells.iter().map(|cell| tested(cell)).collect::<anyhow::Result<Vec<_>>>();
    let (with, without) = (runs(with)?, runs(without)?);
    let settings: BootstrapSettings = paired::bounded_settings(&with, metric);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let found = paired::difference(&with, &without, metric, settings, &mut rng)?;
    let ends = found.over_rows_and_splits.unwrap_or(found.over_rows);
    let signed = |value: f64| metric.direction().gain(value, 0.0);
    let (one, other) = (signed(ends.lower), signed(ends.upper));
    Ok(Gain { mean: signed(found.estimate), lower: one.min(other), upper: one.max(other) })
}

/// Reads the test rows of a run from its predictions.
fn tested(cell: &CollectedCell) -> anyhow::Result<TestedRun> {
    let path = cell.folder.join(PREDICTIONS);
    let classes = &cell.report.class_names;
    let task = match (cell.report.evaluation.confusion.as_ref(), cell.report.metric.fits(Task::Regression)) {
        (_, true) => Task::Regression,
        (Some(confusion), _) if confusion.cells.len() > 2 => {
            Task::Multiclass { classes: confusion.cells.len() }
        }
        _ => Task::Binary,
    };
    let name = |class: usize| classes.get(class).cloned().unwrap_or_else(|| class.to_string());
    let probability = |class: usize| format!("probability of {}", name(class));
    let outputs: Vec<String> = match task {
        Task::Regression => vec!["prediction".to_string()],
        Task::Binary => vec![probability(1)],
        Task::Multiclass { classes } => (0..classes).map(probability).collect(),
    };
    let label = if task == Task::Regression { Kind::Plain } else { Kind::Text };
    let mut kinds: BTreeMap<String, Kind> = outputs.iter().map(|name| (name.clone(), Kind::Plain)).collect();
    kinds.extend([
        (ROW.to_string(), Kind::Plain),
        (PART.to_string(), Kind::Text),
        (LABEL.to_string(), label),
    ]);
    let columns = [ROW, PART, LABEL].into_iter().map(str::to_string).chain(outputs.clone());
    let options =
        Options { kinds, columns: Some(columns.collect()), keep_spaces: true, ..Options::default() };
    let table = fet_tables::read(&path, &options)?;
    let numbers = |name: &str| match &table.column(name)?.values {
        Values::Number(values) => Ok(values.as_slice()),
        _ => anyhow::bail!("{}: column `{name}` must be numbers", path.display()),
    };
    let texts = |name: &str| match &table.column(name)?.values {
        Values::Text(values) => Ok(values),
        _ => anyhow::bail!("{}: column `{name}` must be text", path.display()),
    };
    let parts = texts(PART)?;
    let is_test = |row: &usize| parts.get(*row) == Some("test");
    let test: Vec<usize> = (0..table.rows).filter(is_test).collect();
    let truth: Vec<f64> = match task {
        Task::Regression => numbers(LABEL)?.to_vec(),
        Task::Binary | Task::Multiclass { .. } => {
            let labels = texts(LABEL)?;
            let known = (0..task.classes()).map(|class| (name(class), class as f64));
            let known: BTreeMap<String, f64> = known.collect();
            let class = |row: usize| labels.get(row).and_then(|label| known.get(label)).copied();
            let found: Option<Vec<f64>> = (0..table.rows).map(class).collect();
            found.with_context(|| format!("{}: a label is none of the report's classes", path.display()))?
        }
    };
    let outputs: Vec<&[f64]> = outputs.iter().map(|name| numbers(name)).collect::<anyhow::Result<_>>()?;
    let rows = numbers(ROW)?;
    let parts = &cell.report.rows;
    Ok(TestedRun {
        seed: cell.seed,
        fold: 0,
        task,
        rows: test.iter().map(|&row| rows[row] as u64).collect(),
        truth: test.iter().map(|&row| truth[row]).collect(),
        output: test.iter().flat_map(|&row| outputs.iter().map(move |values| values[row])).collect(),
        fitted: parts.train + parts.validation,
    })
}
