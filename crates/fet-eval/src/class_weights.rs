//! How much the loss of a row counts, by its class.
//!
//! They belong to training; metrics have weights of their own for each row.

use serde::{Deserialize, Serialize};

/// A checked weight for each class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct ClassWeights(Vec<f64>);

impl ClassWeights {
    /// The same for every class.
    pub fn equal(classes: usize) -> Self {
        Self(vec![1.0; classes])
    }

    /// n / (k · count) for each of k classes among n training rows, as scikit-learn's "balanced" (King and Zeng 2001):
    /// every class then weighs the same in all, and rows weigh 1 on average.
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

    /// Given weights: finite and above 0.
    pub fn given(weights: Vec<f64>) -> Result<Self, ClassWeightError> {
        match weights.iter().position(|weight| !weight.is_finite() || *weight <= 0.0) {
            Some(class) => Err(ClassWeightError::Weight { class, weight: weights[class] }),
            None => Ok(Self(weights)),
        }
    }

    /// The weight of a class.
    pub fn of(&self, class: usize) -> f64 {
        self.0[class]
    }

    /// The number of classes.
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

/// Why classes cannot be weighed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassWeightError {
    /// A class without training rows.
    #[error(
        "class {class} has none of {rows} training rows and so no balanced weight; give weights, or stratify the split"
    )]
    Absent {
        /// The class.
        class: usize,
        /// The number of training rows.
        rows: usize,
    },
    /// A class that does not exist.
    #[error("row {row} (from 0) is of class {class}; there are {classes}, counted from 0")]
    Class {
        /// The row.
        row: usize,
        /// Its class.
        class: usize,
        /// How many there are.
        classes: usize,
    },
    /// Not a weight.
    #[error("the weight of class {class} is {weight}; weights are finite and above 0")]
    Weight {
        /// The class.
        class: usize,
        /// Its weight.
        weight: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_classes_weigh_the_same_in_all() {
        let labels = [0, 0, 0, 1, 2, 2];
        let weights = ClassWeights::balanced(&labels, 3).expect("every class occurs");
        assert_eq!(weights.0, [6.0 / 9.0, 2.0, 1.0]);
        assert_eq!(labels.iter().map(|class| weights.of(*class)).sum::<f64>(), 6.0);
        assert_eq!(ClassWeights::equal(3).classes(), weights.classes());
    }

    #[test]
    fn what_is_no_weight_is_refused() {
        for (result, expect) in [
            (ClassWeights::balanced(&[0, 2], 3), "class 1 has none of 2 training rows"),
            (ClassWeights::balanced(&[0, 3], 3), "row 1 (from 0) is of class 3; there are 3"),
            (ClassWeights::given(vec![1.0, 0.0]), "weight of class 1 is 0"),
            (ClassWeights::given(vec![f64::NAN]), "weight of class 0 is NaN"),
        ] {
            let error = result.expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
        assert!(serde_json::from_str::<ClassWeights>("[1.0, -1.0]").is_err());
        let read = serde_json::from_str::<ClassWeights>("[1.0, 2.0]").expect("right");
        assert_eq!(serde_json::to_string(&read).expect("json"), "[1.0,2.0]");
    }
}
