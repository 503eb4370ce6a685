//! Sizes of the parts.

use serde::{Deserialize, Serialize};

use super::error::{LEAST_SHARE, SplitError};

/// Added to a share before it is rounded down: 0.29 of 100 rows are 29 although 0.29 is smaller in binary.
const ROUNDING: f64 = 1e-9;

/// Fractions of rows for validation and test; the remaining rows are for training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Fractions {
    validation: f64,
    test: f64,
}

impl Default for Fractions {
    /// 70 per cent training, 10 per cent validation and 20 per cent test.
    fn default() -> Self {
        Self { validation: 0.1, test: 0.2 }
    }
}

impl Fractions {
    /// Checks and returns the fractions.
    pub fn new(validation: f64, test: f64) -> Result<Self, SplitError> {
        let large_enough = validation >= LEAST_SHARE && test >= LEAST_SHARE;
        if large_enough && validation + test < 1.0 {
            Ok(Self { validation, test })
        } else {
            Err(SplitError::Fractions { validation, test })
        }
    }

    /// Returns the fraction of rows for validation.
    pub fn validation(self) -> f64 {
        self.validation
    }

    /// Returns the fraction of rows for the test.
    pub fn test(self) -> f64 {
        self.test
    }

    /// Returns the numbers of rows: ⌊rows · fraction⌋ for validation and test, the others for training.
    /// Refuses a size of 0.
    pub fn sizes(self, rows: usize) -> Result<Sizes, SplitError> {
        let (validation, test) = (share(rows, self.validation), share(rows, self.test));
        if validation == 0 || test == 0 || validation + test >= rows {
            // With `least` rows, each of the three parts has a row.
            let smallest = self.validation.min(self.test).min(1.0 - self.validation - self.test);
            let least = (1.0 / smallest - ROUNDING).ceil() as usize;
            return Err(SplitError::TooFewRows { rows, validation, test, least });
        }
        Ok(Sizes { train: rows - validation - test, validation, test })
    }

    /// Returns the number of validation rows among the rows that a fold does not test: at least one, but not
    /// all.
    pub(super) fn validation_beside(self, rows: usize, tested: usize) -> usize {
        share(rows, self.validation).clamp(1, (rows - tested).saturating_sub(1).max(1))
    }
}

/// Numbers of rows of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Number of training rows.
    pub train: usize,
    /// Number of validation rows.
    pub validation: usize,
    /// Number of test rows.
    pub test: usize,
}

fn share(rows: usize, fraction: f64) -> usize {
    (rows as f64 * fraction + ROUNDING).floor() as usize
}

/// Unchecked fractions, as deserialized.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    validation: f64,
    test: f64,
}

impl TryFrom<Unchecked> for Fractions {
    type Error = SplitError;

    fn try_from(given: Unchecked) -> Result<Self, SplitError> {
        Self::new(given.validation, given.test)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_rounds_as_integers_do() {
        for rows in 10..200_000 {
            let sizes = Fractions::default().sizes(rows).expect("enough rows");
            assert_eq!((sizes.validation, sizes.test), (rows / 10, rows / 5), "{rows} rows");
            assert_eq!(sizes.train + sizes.validation + sizes.test, rows);
        }
        let error = Fractions::default().sizes(9).expect_err("too few").to_string();
        assert!(
            error.contains("9 rows give 0 for validation") && error.contains("at least 10 rows"),
            "{error}"
        );
    }

    #[test]
    fn checks_fractions_on_reading() {
        for (validation, test) in [(0.0, 0.2), (0.1, -0.2), (0.5, 0.5), (f64::NAN, 0.2), (0.1, f64::INFINITY)]
        {
            assert!(Fractions::new(validation, test).is_err(), "{validation} {test}");
        }
        let read = serde_json::from_str::<Fractions>(r#"{"validation": 0.25, "test": 0.25}"#);
        assert_eq!(read.expect("right"), Fractions::new(0.25, 0.25).expect("right"));
        let wrong = serde_json::from_str::<Fractions>(r#"{"validation": 0.9, "test": 0.2}"#);
        assert!(wrong.expect_err("too much").to_string().contains("0.9 and 0.2; use 0.1 and 0.2"));
        assert_eq!(Fractions::new(0.29, 0.29).expect("right").sizes(100).expect("enough").test, 29);
    }
}
