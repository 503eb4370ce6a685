//! The training, validation and test rows.

use fet_core::data::DataError;
use fet_core::rng::{Purpose, stream};
use rand::seq::SliceRandom;

/// Row indices of the three parts: 70, 10 and 20 per cent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Rows that are trained on.
    pub train: Vec<usize>,
    /// Rows that select the epoch and drive the schedule of the learning rate.
    pub validation: Vec<usize>,
    /// Rows on which the reported metric is computed.
    pub test: Vec<usize>,
}

impl Split {
    /// Shuffles `rows` rows by `seed` and splits them 70/10/20.
    pub fn new(rows: usize, seed: u64) -> Result<Self, DataError> {
        let [_, validation, test] = Self::sizes(rows)?;
        let mut order: Vec<usize> = (0..rows).collect();
        order.shuffle(&mut stream(seed, 0, Purpose::Split, 0));
        let validation_part = order.split_off(rows - validation);
        let test_part = order.split_off(rows - validation - test);
        Ok(Self { train: order, validation: validation_part, test: test_part })
    }

    /// The numbers of training, validation and test rows among `rows` rows.
    pub fn sizes(rows: usize) -> Result<[usize; 3], DataError> {
        let (test, validation) = (rows / 5, rows / 10);
        if validation == 0 {
            let problem = format!(
                "at least 10 rows are needed, so that some are left for validation; there are {rows}"
            );
            return Err(DataError::new("data", problem));
        }
        Ok([rows - validation - test, validation, test])
    }

    /// The number of rows in all.
    pub fn rows(&self) -> usize {
        self.train.len() + self.validation.len() + self.test.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_is_a_partition_and_follows_the_seed() {
        let split = Split::new(1_000, 7).expect("enough rows");
        assert_eq!((split.train.len(), split.validation.len(), split.test.len()), (700, 100, 200));
        let mut all = [split.train.clone(), split.validation.clone(), split.test.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
        assert_eq!(split, Split::new(1_000, 7).expect("enough rows"));
        assert_ne!(split, Split::new(1_000, 8).expect("enough rows"));
        assert!(Split::new(9, 0).expect_err("too few").problem.contains("there are 9"));
    }
}
