//! Proper scores of predicted probabilities. [`Metric`](crate::Metric) states their formulas.

use crate::metric::Task;
use crate::predictions::Predictions;

pub(crate) fn log_loss(rows: &Predictions<'_>) -> f64 {
    let clipped = |p: f64| p.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
    rows.mean(|row| -clipped(rows.probability(row, rows.class(row))).ln())
}

pub(crate) fn brier(rows: &Predictions<'_>) -> f64 {
    let square = |row, class| {
        let truth = f64::from(u8::from(rows.class(row) == class));
        (rows.probability(row, class) - truth).powi(2)
    };
    match rows.task() {
        Task::Regression | Task::Binary => rows.mean(|row| square(row, 1)),
        Task::Multiclass { classes } => rows.mean(|row| (0..classes).map(|class| square(row, class)).sum()),
    }
}
