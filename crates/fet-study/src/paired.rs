//! Difference between two variants by the predictions of their runs: over test rows, and over test rows and
//! splits. `fet_eval::paired` states the method.
//!
//! Each finished run has `predictions.csv` next to its report. [`read()`] reads the test rows of a run, and
//! [`difference()`] compares the runs of two variants.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use fet_eval::records::Report;
use fet_eval::{ChaCha8Rng, Metric, Predictions, SeedableRng, Task};

use super::part_rows::{PREDICTIONS, PartRows, is_equal};
use super::repetition::Repetition;
use super::row::Row;

pub use fet_eval::paired::{Ends, PairedDifference, PairedError, TestedRun};

/// Seed of the bootstrap. The same runs give the same intervals.
const SEED: u64 = 0;

/// Compares the runs of a variant with the runs of its control variant that have the same seed and fold. The
/// difference is variant minus control; the intervals are 95 % intervals.
pub fn difference(
    variant: &[TestedRun],
    control: &[TestedRun],
    metric: Metric,
) -> Result<PairedDifference, PairedError> {
    let settings = fet_eval::paired::bounded_settings(variant, metric);
    fet_eval::paired::difference(variant, control, metric, settings, &mut ChaCha8Rng::seed_from_u64(SEED))
}

/// Reads the test rows of the run in `folder`, whose report is `report`. Returns an error if the file is missing or
/// damaged, or if its predictions do not give the report's test metric.
pub fn read(folder: &Path, report: &Report) -> Result<TestedRun> {
    let path = folder.join(PREDICTIONS);
    let text = fet_io::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, report).with_context(|| path.display().to_string())
}

/// Test rows of a study's cells; each file is read once.
#[derive(Debug, Default)]
pub(crate) struct TestedCells(HashMap<PathBuf, Result<TestedRun, String>>);

impl TestedCells {
    /// Compares a variant with its base over the runs that both have, or returns the reason why the predictions
    /// cannot be compared.
    pub(crate) fn compare(
        &mut self,
        variant: &Row<'_>,
        base: &Row<'_>,
        metric: Metric,
    ) -> Result<PairedDifference, String> {
        let has =
            |row: &Row<'_>, own: Repetition| row.results.iter().any(|result| result.cell.repetition == own);
        let mut runs = |row: &Row<'_>, other: &Row<'_>| -> Result<Vec<TestedRun>, String> {
            let common = row.results.iter().filter(|result| has(other, result.cell.repetition));
            let read = |result: &&super::results::FinishedCell<'_>| {
                let folder = &result.cell.folder;
                let known = self.0.entry(folder.clone());
                // The settings of a program other than `fet` need not name the fold.
                let fold = result.cell.repetition.fold.unwrap_or_default();
                known
                    .or_insert_with(|| {
                        let run = read(folder, &result.report).map_err(|error| format!("{error:#}"))?;
                        Ok(TestedRun { fold, ..run })
                    })
                    .clone()
            };
            common.map(read).collect()
        };
        let (own, others) = (runs(variant, base)?, runs(base, variant)?);
        difference(&own, &others, metric).map_err(|error| error.to_string())
    }
}

fn parse(text: &str, report: &Report) -> Result<TestedRun> {
    let part = PartRows::parse(text, "test")?;
    ensure!(!part.rows.is_empty(), "no row belongs to the test");
    let second = part.second();
    let PartRows { classes, rows, truth, output } = part;
    let fold = report.experiment["split"]["fold"].as_u64().unwrap_or_default() as usize;
    let fitted = report.rows.train + report.rows.validation;
    let run = |task: Task, output: Vec<f64>| TestedRun {
        seed: report.seed,
        fold,
        task,
        rows: rows.clone(),
        truth: truth.clone(),
        output,
        fitted,
    };
    // A task with two classes has one output or two; the metric decides.
    let candidates = match classes.len() {
        0 => vec![run(Task::Regression, output)],
        2 => vec![run(Task::Binary, second), run(Task::Multiclass { classes: 2 }, output)],
        classes => vec![run(Task::Multiclass { classes }, output)],
    };
    let mut found = None;
    for run in candidates {
        let value = Predictions::new(run.task, &run.truth, &run.output)?.score(report.metric)?;
        if is_equal(value, report.best.test) {
            return Ok(run);
        }
        found = found.or(Some(value));
    }
    let (metric, wanted) = (report.metric.label(), report.best.test);
    match found {
        Some(found) => bail!("the predictions have the {metric} {found}, but the report has {wanted}"),
        None => bail!("the predictions have no {metric}"),
    }
}
