//! Confusion matrix.

use serde::{Deserialize, Serialize};

use crate::predictions::Predictions;

/// Total weight of the rows by true and predicted class, or their number if the rows have no weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confusion {
    /// Weights as `cells[true][predicted]`.
    pub cells: Vec<Vec<f64>>,
}

impl Confusion {
    /// Counts the rows. The matrix of a regression is empty.
    pub fn new(rows: &Predictions<'_>) -> Self {
        let classes = rows.task().classes();
        let mut cells = vec![vec![0.0; classes]; classes];
        if classes > 0 {
            rows.counted().for_each(|row| {
                cells[rows.class(row)][rows.predicted_class(row)] += rows.weight(row);
            });
        }
        Self { cells }
    }

    /// Returns the weight of the correctly classified rows of a class.
    pub fn correct(&self, class: usize) -> f64 {
        self.cells[class][class]
    }

    /// Returns the weight of the rows of a class.
    pub fn of_class(&self, class: usize) -> f64 {
        self.cells[class].iter().sum()
    }

    /// Returns the weight of the rows predicted as a class.
    pub fn taken_for(&self, class: usize) -> f64 {
        self.cells.iter().map(|cells| cells[class]).sum()
    }
}
