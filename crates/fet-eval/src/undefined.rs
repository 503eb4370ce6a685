//! Reasons why a metric is undefined.

use crate::metric::{Metric, Task};

/// Reason why a metric is undefined for some rows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Undefined {
    /// A metric of another task.
    #[error("{metric} is not a metric of the task {task:?}")]
    Task {
        /// Requested metric.
        metric: Metric,
        /// Task of the predictions.
        task: Task,
    },
    /// Too few rows.
    #[error("{metric} needs at least {least} rows, not {got}")]
    Rows {
        /// Requested metric.
        metric: Metric,
        /// Required number of rows.
        least: usize,
        /// Number of rows.
        got: usize,
    },
    /// Class with no rows or with all rows.
    #[error("class {class} has {} row; without both sides its curve is undefined", if *.all { "every" } else { "no" })]
    Class {
        /// Index of the class.
        class: usize,
        /// True if every row is of the class, false if none is.
        all: bool,
    },
    /// True value too close to zero for a percentage.
    #[error(
        "the true value of row {row} (from 0) is {value}, below {least}: its percentage would dominate the mean"
    )]
    NearZero {
        /// Row index, from 0.
        row: usize,
        /// True value.
        value: f64,
        /// Minimum absolute value.
        least: f64,
    },
    /// No bins, or a class out of range.
    #[error(
        "a calibration curve needs a class that exists and at least one bin, not class {class} and {bins} bins"
    )]
    Curve {
        /// Index of the class.
        class: usize,
        /// Number of bins.
        bins: usize,
    },
    /// Overflow of a sum.
    #[error("{metric} exceeds the range of numbers")]
    Overflow {
        /// Requested metric.
        metric: Metric,
    },
}
