//! Keys refined by a linear regression of the primary's keys on its own columns.
//!
//! If a key was recorded imprecisely and depends on other columns of the record, the regression averages the
//! key's error over all rows. Links with the refined keys then find the right record more often. If the
//! columns explain little of a key, the refined key is worse than the key itself: validation decides. An
//! attacker who tries to learn the keys learns instead one linear function of the columns per key column.

use fet_core::data::{DataError, Keys, Matrix};
use serde::{Deserialize, Serialize};

/// Penalty on squared weights, per training row: columns may depend on each other.
const RIDGE: f64 = 1e-6;
/// Maximum number of columns: the normal equations have one row per column.
const MOST_COLUMNS: usize = 4_000;

/// The columns of a key as linear functions of prepared features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefinedKeys {
    /// For each column of the key, a weight of each feature, followed by the constant.
    weights: Vec<Vec<f64>>,
    /// Range of each column of the key in the fitted rows; refined keys are clamped to it.
    ranges: Vec<[f64; 2]>,
}

impl RefinedKeys {
    /// Fits by least squares on `rows`.
    pub(super) fn fit(
        party: &str,
        keys: &Keys,
        features: &Matrix<f32>,
        rows: &[usize],
    ) -> Result<Self, DataError> {
        let refuse = |problem: String| Err(DataError::new(format!("data of {party}"), problem));
        let Keys::Numbers(keys) = keys else {
            return refuse("must have numeric keys if `train.refine_keys` is true".into());
        };
        let columns = features.columns() + 1;
        if columns > MOST_COLUMNS {
            let problem = format!(
                "must have fewer than {MOST_COLUMNS} columns if `train.refine_keys` is true; it has {}",
                columns - 1
            );
            return refuse(problem);
        }
        let mut products = vec![0.0; columns * columns];
        let mut targets = vec![vec![0.0; columns]; keys.columns()];
        let mut row_values = vec![1.0; columns];
        for &row in rows {
            row_values.iter_mut().zip(features.row(row)).for_each(|(to, &from)| *to = f64::from(from));
            for (i, &value) in row_values.iter().enumerate() {
                // Many values are 0 if columns are categories.
                if value != 0.0 {
                    let line = &mut products[i * columns..=i * columns + i];
                    line.iter_mut().zip(&row_values).for_each(|(sum, other)| *sum += value * other);
                    targets.iter_mut().zip(keys.row(row)).for_each(|(sums, key)| sums[i] += value * key);
                }
            }
        }
        let ridge = RIDGE * rows.len() as f64;
        (0..columns).for_each(|i| products[i * columns + i] += ridge);
        factorise(&mut products, columns);
        targets.iter_mut().for_each(|target| solve(&products, target));
        if targets.iter().flatten().any(|weight| !weight.is_finite()) {
            return refuse("must have columns that predict its keys if `train.refine_keys` is true".into());
        }
        let mut ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; keys.columns()];
        for &row in rows {
            let widen =
                |([low, high], key): (&mut [f64; 2], &f64)| (*low, *high) = (low.min(*key), high.max(*key));
            ranges.iter_mut().zip(keys.row(row)).for_each(widen);
        }
        Ok(Self { weights: targets, ranges })
    }

    /// Returns the keys of records with these features.
    pub(super) fn predict(&self, features: &Matrix<f32>) -> Keys {
        let columns = self.weights.len();
        let refined = |row: usize| {
            self.weights.iter().zip(&self.ranges).map(move |(weights, &[low, high])| {
                let (constant, weights) = weights.split_last().expect("a constant");
                let terms = weights.iter().zip(features.row(row)).map(|(w, &x)| w * f64::from(x));
                (constant + terms.sum::<f64>()).clamp(low, high)
            })
        };
        Matrix::new(columns, (0..features.rows()).flat_map(refined).collect()).into()
    }
}

/// Replaces the lower half of a positive definite matrix by its Cholesky factor.
fn factorise(matrix: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..=i {
            let (upper, lower) = (&matrix[j * size..j * size + j], &matrix[i * size..i * size + j]);
            let sum = matrix[i * size + j] - upper.iter().zip(lower).map(|(a, b)| a * b).sum::<f64>();
            matrix[i * size + j] = if i == j { sum.sqrt() } else { sum / matrix[j * size + j] };
        }
    }
}

/// Solves L Lᵀ x = b in place.
fn solve(factor: &[f64], b: &mut [f64]) {
    let size = b.len();
    for i in 0..size {
        let known: f64 = (0..i).map(|j| factor[i * size + j] * b[j]).sum();
        b[i] = (b[i] - known) / factor[i * size + i];
    }
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| factor[j * size + i] * b[j]).sum();
        b[i] = (b[i] - known) / factor[i * size + i];
    }
}

#[cfg(test)]
mod tests {
    use fet_core::data::TextTable;
    use fet_core::rng::{Purpose, stream};
    use rand::RngExt;

    use super::*;

    /// Keys that are linear in the features except for an error, with one feature that repeats another.
    fn table(rows: usize, error: f64) -> (Keys, Matrix<f32>, Vec<[f64; 2]>) {
        let mut rng = stream(5, 0, Purpose::Linking, 0);
        let (mut keys, mut features, mut true_keys) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let [a, b]: [f32; 2] = [rng.random(), rng.random()];
            features.extend([a, b, a]);
            let key = [3.0 * f64::from(a) - 1.0, f64::from(b) - 2.0 * f64::from(a)];
            keys.extend(key.map(|key| key + error * (rng.random::<f64>() - 0.5)));
            true_keys.push(key);
        }
        (Matrix::new(2, keys).into(), Matrix::new(3, features), true_keys)
    }

    #[test]
    fn an_error_of_keys_is_averaged_away() {
        let (keys, features, true_keys) = table(500, 0.4);
        let rows: Vec<usize> = (0..400).collect();
        let refined = RefinedKeys::fit("p", &keys, &features, &rows).expect("solvable").predict(&features);
        let refined = refined.numbers().expect("numbers");
        for (row, wanted) in true_keys.iter().enumerate().skip(400) {
            for (found, wanted) in refined.row(row).iter().zip(wanted) {
                assert!((found - wanted).abs() < 0.06, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn texts_and_too_many_columns_are_refused() {
        let text = Keys::Text(TextTable::new(1, vec!["a".into()]));
        let error = RefinedKeys::fit("p", &text, &Matrix::new(1, vec![1.0]), &[0]).expect_err("refused");
        assert!(error.to_string().contains("train.refine_keys"), "{error}");
        let wide = Matrix::new(MOST_COLUMNS, vec![0.0; MOST_COLUMNS]);
        let keys = Matrix::new(1, vec![1.0]).into();
        let error = RefinedKeys::fit("p", &keys, &wide, &[0]).expect_err("refused");
        assert!(error.to_string().contains("4000"), "{error}");
    }
}
