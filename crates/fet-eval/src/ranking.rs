//! Areas under the curves over all thresholds. [`Metric`](crate::Metric) states their formulas.
//!
//! The order of the rows by score does not depend on their weights. [`Orders`] sorts the rows once for many
//! weightings.

use std::ops::Range;

use crate::metric::Task;
use crate::predictions::Predictions;
use crate::undefined::Undefined;

pub(crate) fn auc_roc(rows: &Predictions<'_>) -> Result<f64, Undefined> {
    over_classes(rows.task(), |class| Order::new(rows, class).roc(rows, class))
}

pub(crate) fn auc_pr(rows: &Predictions<'_>) -> Result<f64, Undefined> {
    over_classes(rows.task(), |class| Order::new(rows, class).pr(rows, class))
}

/// Order of rows by score, one per class with a curve. Rows of weight 0 are left out.
pub(crate) struct Orders(Vec<Order>);

impl Orders {
    pub(crate) fn new(rows: &Predictions<'_>) -> Self {
        Self(curves(rows.task()).map(|class| Order::new(rows, class)).collect())
    }

    /// Computes [`auc_roc`] of the rows under the current weights of `rows`.
    pub(crate) fn auc_roc(&self, rows: &Predictions<'_>) -> Result<f64, Undefined> {
        over_classes(rows.task(), |class| self.order(rows.task(), class).roc(rows, class))
    }

    /// Computes [`auc_pr`] of the rows under the current weights of `rows`.
    pub(crate) fn auc_pr(&self, rows: &Predictions<'_>) -> Result<f64, Undefined> {
        over_classes(rows.task(), |class| self.order(rows.task(), class).pr(rows, class))
    }

    fn order(&self, task: Task, class: usize) -> &Order {
        &self.0[class - curves(task).start]
    }
}

/// Returns the classes that have a curve: class 1 of a binary task, every class otherwise.
fn curves(task: Task) -> Range<usize> {
    match task {
        Task::Regression | Task::Binary => 1..2,
        Task::Multiclass { classes } => 0..classes,
    }
}

/// Returns the mean of `area` over the classes, or an error if any class has an undefined area.
fn over_classes(task: Task, area: impl Fn(usize) -> Result<f64, Undefined>) -> Result<f64, Undefined> {
    let areas: Result<Vec<f64>, Undefined> = curves(task).map(area).collect();
    let areas = areas?;
    Ok(areas.iter().sum::<f64>() / areas.len() as f64)
}

/// Rows by descending score of a class, in runs that are single steps of the curve.
struct Order {
    rows: Vec<u32>,
    runs: Vec<Run>,
}

/// Run of the order: rows outside the class, followed by rows with one score, some of them in the class. Each
/// field is the end position of a part.
struct Run {
    others: usize,
    hits: usize,
    ties: usize,
}

impl Order {
    fn new(rows: &Predictions<'_>, class: usize) -> Self {
        let mut scored: Vec<(f64, bool, u32)> = rows
            .counted()
            .map(|row| (rows.probability(row, class), rows.class(row) == class, row as u32))
            .collect();
        // Among rows with equal scores, the rows of the class come first.
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        let mut runs = vec![Run { others: 0, hits: 0, ties: 0 }];
        let mut end = 0;
        for ties in scored.chunk_by(|a, b| a.0 == b.0) {
            let hits = ties.partition_point(|(_, hit, _)| *hit);
            if hits > 0 {
                runs.push(Run { others: end, hits: end + hits, ties: end + ties.len() });
            }
            end += ties.len();
        }
        runs.push(Run { others: end, hits: end, ties: end });
        Self { rows: scored.into_iter().map(|(_, _, row)| row).collect(), runs }
    }

    fn roc(&self, rows: &Predictions<'_>, class: usize) -> Result<f64, Undefined> {
        let mut area = 0.0;
        let (hits, misses) = self.walk(rows, |old, new| area += (new.1 - old.1) * (new.0 + old.0) / 2.0);
        if misses <= 0.0 {
            return Err(Undefined::Class { class, all: true });
        }
        if hits <= 0.0 {
            return Err(Undefined::Class { class, all: false });
        }
        Ok(area / hits / misses)
    }

    fn pr(&self, rows: &Predictions<'_>, class: usize) -> Result<f64, Undefined> {
        let mut area = 0.0;
        let (hits, _) = self.walk(rows, |old, new| area += (new.0 - old.0) * new.0 / (new.0 + new.1));
        if hits <= 0.0 {
            return Err(Undefined::Class { class, all: false });
        }
        Ok(area / hits)
    }

    /// Calls `step` with the weights of true and false positives at both ends of each straight part of the
    /// curve, starting at (0, 0). Returns the last point. Skips rows of weight 0.
    fn walk(&self, rows: &Predictions<'_>, mut step: impl FnMut((f64, f64), (f64, f64))) -> (f64, f64) {
        let sum = |from: usize, to: usize| -> f64 {
            self.rows[from..to].iter().map(|row| rows.weight(*row as usize)).sum()
        };
        let mut old = (0.0, 0.0);
        let mut to = |new: (f64, f64)| {
            if new != old {
                step(old, new);
                old = new;
            }
        };
        let (mut hits, mut misses) = (0.0, 0.0);
        for pair in self.runs.windows(2) {
            let (before, run) = (&pair[0], &pair[1]);
            misses += sum(before.ties, run.others);
            to((hits, misses));
            hits += sum(run.others, run.hits);
            misses += sum(run.hits, run.ties);
            to((hits, misses));
        }
        (hits, misses)
    }
}
