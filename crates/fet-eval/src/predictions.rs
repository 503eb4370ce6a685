//! Validated predictions with their true values.
//!
//! Other modules compute the metrics.

use crate::metric::Task;

/// Maximum distance from one of the sum of a row's class probabilities. It is scikit-learn's bound and allows
/// a softmax in `f32`.
const SUM_TOLERANCE: f64 = 1e-5;

/// Predictions of a model for some rows, with the true values.
///
/// # Shapes
/// - truth: N; a number, or the index of a class
/// - output: [N, `task.width()`], row by row; a number, the probability of class 1, or one probability per
///   class
/// - weights: N, none negative. A row of weight 0 counts as absent.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'a> {
    task: Task,
    truth: &'a [f64],
    output: &'a [f64],
    weights: Option<&'a [f64]>,
}

impl<'a> Predictions<'a> {
    /// Checks shapes and values: all finite, classes in range, probabilities from 0 to 1 that sum to 1.
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

    /// Returns the predictions with a weight for each row.
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

    /// Returns the prediction task.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Returns the number of rows, including rows of weight 0.
    pub fn rows(&self) -> usize {
        self.truth.len()
    }

    /// Returns the weight of a row; 1 if the rows have no weights.
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// Returns the weights of the rows, if any.
    pub fn weights(&self) -> Option<&'a [f64]> {
        self.weights
    }

    /// Returns the true value of a row: a number, or the index of a class.
    pub fn truth(&self, row: usize) -> f64 {
        self.truth[row]
    }

    /// Returns the true class of a row.
    pub fn class(&self, row: usize) -> usize {
        self.truth[row] as usize
    }

    /// Returns the predicted number of a row of a regression.
    pub fn predicted(&self, row: usize) -> f64 {
        self.output[row]
    }

    /// Returns the predicted class of a row. For a binary task it is class 1 from probability 0.5. For
    /// several classes it is the first most probable class.
    pub fn predicted_class(&self, row: usize) -> usize {
        let output = &self.output[row * self.task.width()..][..self.task.width()];
        match self.task {
            Task::Regression | Task::Binary => usize::from(output[0] >= 0.5),
            Task::Multiclass { classes } => {
                (0..classes).fold(0, |best, class| if output[class] > output[best] { class } else { best })
            }
        }
    }

    /// Returns the predicted probability of a class.
    pub fn probability(&self, row: usize, class: usize) -> f64 {
        match self.task {
            Task::Regression | Task::Binary if class == 0 => 1.0 - self.output[row],
            Task::Regression | Task::Binary => self.output[row],
            Task::Multiclass { classes } => self.output[row * classes + class],
        }
    }

    /// Returns the rows with non-zero weight.
    pub(crate) fn counted(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows()).filter(|row| self.weight(*row) > 0.0)
    }

    /// Returns the weighted mean of `share` over the rows.
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

/// Error of invalid predictions.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// No row with a weight above 0.
    #[error("scores need at least one row with a weight above 0")]
    NoRows,
    /// Fewer than two classes.
    #[error("a multi-class task needs at least 2 classes, not {0}")]
    Classes(usize),
    /// Columns of different lengths.
    #[error("these rows need {wanted} {what}, not {got}")]
    Length {
        /// Name of the values with the wrong number.
        what: &'static str,
        /// Required number.
        wanted: usize,
        /// Number found.
        got: usize,
    },
    /// Value that is not finite.
    #[error("row {row} (from 0) holds {value}; the model diverged, or the label is missing")]
    NotFinite {
        /// Row index, from 0.
        row: usize,
        /// Rejected value.
        value: f64,
    },
    /// Class out of range.
    #[error("the label of row {row} (from 0) is {value}; classes must be whole numbers from 0 to {last}")]
    Class {
        /// Row index, from 0.
        row: usize,
        /// Label of the row.
        value: f64,
        /// Index of the last class.
        last: usize,
    },
    /// Probability out of range.
    #[error(
        "row {row} (from 0) predicts {value}; probabilities must be between 0 and 1 (apply sigmoid or softmax first)"
    )]
    Probability {
        /// Row index, from 0.
        row: usize,
        /// Predicted value.
        value: f64,
    },
    /// Class probabilities that do not sum to 1.
    #[error("the class probabilities of row {row} (from 0) sum to {sum}, not 1 (apply softmax first)")]
    Sum {
        /// Row index, from 0.
        row: usize,
        /// Sum of the probabilities.
        sum: f64,
    },
    /// Negative weight, or weight that is not finite.
    #[error("the weight of row {row} (from 0) is {weight}; weights must be finite and not negative")]
    Weight {
        /// Row index, from 0.
        row: usize,
        /// Rejected weight.
        weight: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Task = Task::Multiclass { classes: 3 };

    #[test]
    fn refuses_invalid_predictions() {
        for (task, truth, output, expect) in [
            (Task::Regression, vec![], vec![], "at least one row"),
            (Task::Multiclass { classes: 1 }, vec![0.0], vec![1.0], "at least 2 classes"),
            (Task::Regression, vec![1.0], vec![1.0, 2.0], "these rows need 1 outputs"),
            (Task::Regression, vec![1.0], vec![f64::NAN], "row 0 (from 0) holds NaN"),
            (
                Task::Binary,
                vec![0.0, 2.0],
                vec![0.5, 0.5],
                "row 1 (from 0) is 2; classes must be whole numbers from 0 to 1",
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
            (vec![1.0], "these rows need 2 weights"),
            (vec![1.0, -1.0], "row 1 (from 0) is -1"),
            (vec![0.0, 0.0], "at least one row with a weight above 0"),
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
