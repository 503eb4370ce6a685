//! Which class is taken for which.

use serde::{Deserialize, Serialize};

use crate::predictions::Predictions;

/// The weight of the rows of each true class by predicted class; without weights their number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confusion {
    /// `cells[true][predicted]`.
    pub cells: Vec<Vec<f64>>,
}

impl Confusion {
    /// Counts the rows; a regression has no classes and no cells.
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

    /// The weight of the rows whose class is right.
    pub fn right(&self, class: usize) -> f64 {
        self.cells[class][class]
    }

    /// The weight of the rows of a class.
    pub fn of_class(&self, class: usize) -> f64 {
        self.cells[class].iter().sum()
    }

    /// The weight of the rows that are taken for a class.
    pub fn taken_for(&self, class: usize) -> f64 {
        self.cells.iter().map(|cells| cells[class]).sum()
    }
}
