//! Predictions beside the truth, checked once.
//!
//! Metrics are computed in the modules of their kind; this one only says what a row is.

use crate::metric::Task;

/// How far a row's class probabilities may sum from one: scikit-learn's bound, wide enough for a softmax in `f32`.
const SUM_TOLERANCE: f64 = 1e-5;

/// What the model gave for some rows, and what is true.
///
/// # Shapes
/// - truth: N; a number, or the index of a class
/// - output: [N, `task.width()`], row by row; a number, the probability of class 1, or a probability of each class
/// - weights: N, none negative. A row of weight 0 is as if it were absent.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'a> {
    task: Task,
    truth: &'a [f64],
    output: &'a [f64],
    weights: Option<&'a [f64]>,
}

impl<'a> Predictions<'a> {
    /// Checks shapes and values: all finite, classes that exist, probabilities from 0 to 1 that sum to 1.
    pub fn new(task: Task, truth: &'a [f64], output: &'a [f64]) -> Result<Self, PredictionError> {
        if let Task::Multiclass { classes } = task
            && classes < 2
        {
            return Err(PredictionError::Classes(classes));
        }
        if truth.is_empty() {
            return Err(PredictionError::NoRows);
        }
        if output.len() != truth.len() * task.width() {
            let (wanted, got) = (truth.len() * task.width(), output.len());
            return Err(PredictionError::Length { what: "outputs", wanted, got });
        }
        for (row, (&y, output)) in truth.iter().zip(output.chunks_exact(task.width())).enumerate() {
            check_row(task, row, y, output)?;
        }
        Ok(Self { task, truth, output, weights: None })
    }

    /// The same with a weight for each row.
    pub fn weighted(self, weights: &'a [f64]) -> Result<Self, PredictionError> {
        if weights.len() != self.rows() {
            let (wanted, got) = (self.rows(), weights.len());
            return Err(PredictionError::Length { what: "weights", wanted, got });
        }
        if let Some((row, &weight)) =
            weights.iter().enumerate().find(|(_, weight)| !weight.is_finite() || **weight < 0.0)
        {
            return Err(PredictionError::Weight { row, weight });
        }
        if !weights.iter().any(|weight| *weight > 0.0) {
            return Err(PredictionError::NoRows);
        }
        Ok(Self { weights: Some(weights), ..self })
    }

    /// What is predicted.
    pub fn task(&self) -> Task {
        self.task
    }

    /// The number of rows, those of weight 0 included.
    pub fn rows(&self) -> usize {
        self.truth.len()
    }

    /// The weight of a row; 1 if none is given.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// The weights that were given.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// What is true of a row: a number, or the index of a class.
    pub fn truth(&self, row: usize) -> f64 {
        self.truth[row]
    }

    /// The true class of a row.
    pub fn class(&self, row: usize) -> usize {
        self.truth[row] as usize
    }

    /// The predicted number of a row of a regression.
    pub fn predicted(&self, row: usize) -> f64 {
        self.output[row]
    }

    /// The predicted class of a row: 1 of two from probability 0.5 on, else the first of the most probable ones.
    pub fn predicted_class(&self, row: usize) -> usize {
        let output = &self.output[row * self.task.width()..][..self.task.width()];
        match self.task {
            Task::Regression | Task::Binary => usize::from(output[0] >= 0.5),
            Task::Multiclass { classes } => {
                (0..classes).fold(0, |best, class| if output[class] > output[best] { class } else { best })
            }
        }
    }

    /// The predicted probability of a class.
    pub fn probability(&self, row: usize, class: usize) -> f64 {
        match self.task {
            Task::Regression | Task::Binary if class == 0 => 1.0 - self.output[row],
            Task::Regression | Task::Binary => self.output[row],
            Task::Multiclass { classes } => self.output[row * classes + class],
        }
    }

    /// The rows that count: those whose weight is not 0.
    pub(crate) fn counted(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows()).filter(|row| self.weight(*row) > 0.0)
    }

    /// The weighted mean of `share` over the rows.
    pub(crate) fn mean(&self, share: impl Fn(usize) -> f64) -> f64 {
        let (sum, weights) = self.counted().fold((0.0, 0.0), |(sum, weights), row| {
            (sum + self.weight(row) * share(row), weights + self.weight(row))
        });
        sum / weights
    }
}

/// Checks one row of outputs against the task.
fn check_row(task: Task, row: usize, truth: f64, output: &[f64]) -> Result<(), PredictionError> {
    if let Some(&value) = [truth].iter().chain(output).find(|value| !value.is_finite()) {
        return Err(PredictionError::NotFinite { row, value });
    }
    if task == Task::Regression {
        return Ok(());
    }
    let classes = task.classes();
    if truth.fract() != 0.0 || truth < 0.0 || truth >= classes as f64 {
        return Err(PredictionError::Class { row, value: truth, last: classes - 1 });
    }
    if let Some(&value) = output.iter().find(|p| !(0.0..=1.0 + SUM_TOLERANCE).contains(*p)) {
        return Err(PredictionError::Probability { row, value });
    }
    let sum: f64 = output.iter().sum();
    if task != Task::Binary && (sum - 1.0).abs() > SUM_TOLERANCE {
        return Err(PredictionError::Sum { row, sum });
    }
    Ok(())
}

/// What is wrong with predictions.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// Nothing to score.
    #[error("there is no row to score, or none with a weight above 0")]
    NoRows,
    /// Too few classes.
    #[error("a multi-class task has at least 2 classes, not {0}")]
    Classes(usize),
    /// Columns of different lengths.
    #[error("{wanted} {what} are needed for these rows; there are {got}")]
    Length {
        /// What there is too much or too little of.
        what: &'static str,
        /// How many are needed.
        wanted: usize,
        /// How many there are.
        got: usize,
    },
    /// Not a number.
    #[error("row {row} (from 0) holds {value}; the model diverged, or the label is missing")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// A class that does not exist.
    #[error("the label of row {row} (from 0) is {value}; classes are whole numbers from 0 to {last}")]
    Class {
        /// The row, from 0.
        row: usize,
        /// The label.
        value: f64,
        /// The last class.
        last: usize,
    },
    /// Not a probability.
    #[error(
        "row {row} (from 0) predicts {value}; a probability lies between 0 and 1 (apply sigmoid or softmax first)"
    )]
    Probability {
        /// The row, from 0.
        row: usize,
        /// The value.
        value: f64,
    },
    /// Probabilities that are none.
    #[error("the class probabilities of row {row} (from 0) sum to {sum}, not 1 (apply softmax first)")]
    Sum {
        /// The row, from 0.
        row: usize,
        /// Their sum.
        sum: f64,
    },
    /// Not a weight.
    #[error("the weight of row {row} (from 0) is {weight}; weights are finite and not negative")]
    Weight {
        /// The row, from 0.
        row: usize,
        /// The weight.
        weight: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Task = Task::Multiclass { classes: 3 };

    #[test]
    fn what_cannot_be_scored_is_refused() {
        for (task, truth, output, expect) in [
            (Task::Regression, vec![], vec![], "no row"),
            (Task::Multiclass { classes: 1 }, vec![0.0], vec![1.0], "at least 2 classes"),
            (Task::Regression, vec![1.0], vec![1.0, 2.0], "1 outputs are needed"),
            (Task::Regression, vec![1.0], vec![f64::NAN], "row 0 (from 0) holds NaN"),
            (
                Task::Binary,
                vec![0.0, 2.0],
                vec![0.5, 0.5],
                "row 1 (from 0) is 2; classes are whole numbers from 0 to 1",
            ),
            (Task::Binary, vec![0.5], vec![0.5], "row 0 (from 0) is 0.5"),
            (Task::Binary, vec![1.0], vec![-0.1], "between 0 and 1"),
            (THREE, vec![2.0], vec![0.2, 0.2, 0.2], "sum to"),
        ] {
            let error = Predictions::new(task, &truth, &output).expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
    }

    #[test]
    fn weights_are_checked() {
        let rows = Predictions::new(Task::Regression, &[1.0, 2.0], &[1.0, 2.0]).expect("right");
        for (weights, expect) in [
            (vec![1.0], "2 weights are needed"),
            (vec![1.0, -1.0], "row 1 (from 0) is -1"),
            (vec![0.0, 0.0], "none with a weight above 0"),
        ] {
            let error = rows.weighted(&weights).expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
    }

    #[test]
    fn the_predicted_class_is_the_first_of_the_most_probable() {
        let binary = Predictions::new(Task::Binary, &[0.0, 0.0], &[0.5, 0.49]).expect("right");
        assert_eq!([binary.predicted_class(0), binary.predicted_class(1)], [1, 0]);
        let output = [0.2, 0.4, 0.4, 0.5, 0.0, 0.5];
        let three = Predictions::new(THREE, &[0.0, 0.0], &output).expect("right");
        assert_eq!([three.predicted_class(0), three.predicted_class(1)], [1, 0]);
    }
}
