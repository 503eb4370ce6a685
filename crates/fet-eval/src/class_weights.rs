//! Class weights of the training loss.
//!
//! Metrics use separate weights, one per row.

use serde::{Deserialize, Serialize};

/// Validated weights, one per class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct ClassWeights(Vec<f64>);

impl ClassWeights {
    /// Returns equal weights for all classes.
    pub fn equal(classes: usize) -> Self {
        Self(vec![1.0; classes])
    }

    /// Returns n / (k · count) for each of k classes among n training rows, as scikit-learn's "balanced"
    /// (King and Zeng 2001). All classes then have the same total weight, and the mean weight of a row is 1.
    pub fn balanced(labels: &[usize], classes: usize) -> Result<Self, ClassWeightError> {
        let mut counts = vec![0usize; classes];
        for (row, &class) in labels.iter().enumerate() {
            *counts.get_mut(class).ok_or(ClassWeightError::Class { row, class, classes })? += 1;
        }
        if let Some(class) = counts.iter().position(|count| *count == 0) {
            return Err(ClassWeightError::Absent { class, rows: labels.len() });
        }
        Ok(Self(counts.iter().map(|count| labels.len() as f64 / (classes * count) as f64).collect()))
    }

    /// Checks given weights: each must be above 0 and a normal number in single precision, as the loss uses it.
    pub fn given(weights: Vec<f64>) -> Result<Self, ClassWeightError> {
        match weights.iter().position(|weight| !(*weight as f32).is_normal() || *weight <= 0.0) {
            Some(class) => Err(ClassWeightError::Weight { class, weight: weights[class] }),
            None => Ok(Self(weights)),
        }
    }

    /// Returns the weight of a class.
    pub fn weight(&self, class: usize) -> f64 {
        self.0[class]
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.0.len()
    }
}

impl TryFrom<Vec<f64>> for ClassWeights {
    type Error = ClassWeightError;

    fn try_from(weights: Vec<f64>) -> Result<Self, ClassWeightError> {
        Self::given(weights)
    }
}

impl From<ClassWeights> for Vec<f64> {
    fn from(weights: ClassWeights) -> Self {
        weights.0
    }
}

/// Error of class weights.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassWeightError {
    /// A class without training rows.
    #[error(
        "class {class} has none of the {rows} training rows, so its balanced weight is undefined; set weights or stratify \
         the split"
    )]
    Absent {
        /// Class without training rows.
        class: usize,
        /// Number of training rows.
        rows: usize,
    },
    /// A class that does not exist.
    #[error("row {row} (from 0) is of class {class}, but there are {classes} classes, counted from 0")]
    Class {
        /// Row index, from 0.
        row: usize,
        /// Class of the row.
        class: usize,
        /// Number of classes.
        classes: usize,
    },
    /// Weight that is not above 0, or too small or too large.
    #[error("the weight of class {class} is {weight:?}; weights must be above 0, from 1.2e-38 to 3.4e38")]
    Weight {
        /// Class of the weight.
        class: usize,
        /// Rejected weight.
        weight: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_have_equal_total_weight() {
        let labels = [0, 0, 0, 1, 2, 2];
        let weights = ClassWeights::balanced(&labels, 3).expect("every class occurs");
        assert_eq!(weights.0, [6.0 / 9.0, 2.0, 1.0]);
        assert_eq!(labels.iter().map(|class| weights.weight(*class)).sum::<f64>(), 6.0);
        assert_eq!(ClassWeights::equal(3).classes(), weights.classes());
    }

    #[test]
    fn refuses_invalid_weights() {
        for (result, expect) in [
            (ClassWeights::balanced(&[0, 2], 3), "class 1 has none of the 2 training rows"),
            (ClassWeights::balanced(&[0, 3], 3), "row 1 (from 0) is of class 3, but there are 3"),
            (ClassWeights::given(vec![1.0, 0.0]), "weight of class 1 is 0"),
            (ClassWeights::given(vec![f64::NAN]), "weight of class 0 is NaN"),
            (ClassWeights::given(vec![1e-300]), "weight of class 0 is 1e-300"),
            (ClassWeights::given(vec![1.0, 1e39]), "weight of class 1 is 1e39"),
        ] {
            let error = result.expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
        assert!(serde_json::from_str::<ClassWeights>("[1.0, -1.0]").is_err());
        let read = serde_json::from_str::<ClassWeights>("[1.0, 2.0]").expect("right");
        assert_eq!(serde_json::to_string(&read).expect("json"), "[1.0,2.0]");
    }
}
