//! Why rows do not define a metric.

use crate::metric::{Metric, Task};

/// Why rows do not define a metric.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Undefined {
    /// A metric of another task.
    #[error("{metric} is no metric of the task {task:?}")]
    Task {
        /// The metric.
        metric: Metric,
        /// The task of the predictions.
        task: Task,
    },
    /// Too few rows.
    #[error("{metric} needs at least {least} rows; there is {got}")]
    Rows {
        /// The metric.
        metric: Metric,
        /// How many it needs.
        least: usize,
        /// How many there are.
        got: usize,
    },
    /// A class without rows, or with all of them.
    #[error("class {class} has {} row; without both sides its curve is undefined", if *.all { "every" } else { "no" })]
    Class {
        /// The class.
        class: usize,
        /// Whether it has every row; else it has none.
        all: bool,
    },
    /// A true value of almost nothing.
    #[error(
        "the true value of row {row} (from 0) is {value}, below {least}: its percentage would decide the mean"
    )]
    NearZero {
        /// The row.
        row: usize,
        /// The true value.
        value: f64,
        /// The least absolute value that is taken.
        least: f64,
    },
    /// No bins, or a class that does not exist.
    #[error(
        "a calibration curve needs a class that exists and at least one bin, not class {class} and {bins} bins"
    )]
    Curve {
        /// The class.
        class: usize,
        /// The number of bins.
        bins: usize,
    },
    /// A sum that left the range of numbers.
    #[error("{metric} exceeds the range of numbers")]
    Overflow {
        /// The metric.
        metric: Metric,
    },
}
