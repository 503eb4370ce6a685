//! Areas under the curves over all thresholds. Their formulas stand at [`Metric`](crate::Metric).
//!
//! The order of the rows by score does not follow from their weights: under many weights it is found once
//! ([`Orders`]).

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

/// The order of some rows by the score of each class that has a curve. Those of weight 0 are not in it.
pub(crate) struct Orders(Vec<Order>);

impl Orders {
    pub(crate) fn new(rows: &Predictions<'_>) -> Self {
        Self(curves(rows.task()).map(|class| Order::new(rows, class)).collect())
    }

    /// [`auc_roc`] of these rows under the weights that `rows` has now.
    pub(crate) fn auc_roc(&self, rows: &Predictions<'_>) -> Result<f64, Undefined> {
        over_classes(rows.task(), |class| self.of(rows.task(), class).roc(rows, class))
    }

    /// [`auc_pr`] likewise.
    pub(crate) fn auc_pr(&self, rows: &Predictions<'_>) -> Result<f64, Undefined> {
        over_classes(rows.task(), |class| self.of(rows.task(), class).pr(rows, class))
    }

    fn of(&self, task: Task, class: usize) -> &Order {
        &self.0[class - curves(task).start]
    }
}

/// The classes that have a curve: class 1 of two, else each.
fn curves(task: Task) -> Range<usize> {
    match task {
        Task::Regression | Task::Binary => 1..2,
        Task::Multiclass { classes } => 0..classes,
    }
}

/// The mean of `area` over the classes; undefined if it is for one of them.
fn over_classes(task: Task, area: impl Fn(usize) -> Result<f64, Undefined>) -> Result<f64, Undefined> {
    let areas: Result<Vec<f64>, Undefined> = curves(task).map(area).collect();
    let areas = areas?;
    Ok(areas.iter().sum::<f64>() / areas.len() as f64)
}

/// The rows from the highest score of a class down, in runs that a curve steps over at once.
struct Order {
    rows: Vec<u32>,
    runs: Vec<Run>,
}

/// Rows that are not of the class, then those of one score, of which some are: each part up to this place of the order.
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
        // Of one score those of the class first.
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

    /// Tells `step` the weights of true and of false positives at both ends of each straight part of the curve, from
    /// (0, 0) on; returns the last. Rows that weigh nothing are no step.
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
