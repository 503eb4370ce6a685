//! Scaling of columns, stored so that new records can be scaled in the same way.

use fet_core::data::Matrix;
use fet_tables::prepare::FittedRange;
use serde::{Deserialize, Serialize};

/// Shifts and scales each column: to mean 0 and standard deviation 1 over the fitted rows, or by declared
/// ranges.
///
/// A column that is constant in the fitted rows becomes 0 for every later value. Other values are clamped to
/// the [`FittedRange`] of their column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaler {
    mean: Vec<f64>,
    scale: Vec<f64>,
    ranges: Vec<FittedRange>,
}

impl Scaler {
    /// Fits the means, standard deviations and ranges of `rows`.
    pub fn fit<T: Value>(table: &Matrix<T>, rows: &[usize]) -> Self {
        let columns = table.columns();
        let count = rows.len() as f64;
        let (mut mean, mut variance) = (vec![0.0f64; columns], vec![0.0f64; columns]);
        for &row in rows {
            for (sum, &x) in mean.iter_mut().zip(table.row(row)) {
                *sum += x.into() / count;
            }
        }
        for &row in rows {
            for ((sum, &m), &x) in variance.iter_mut().zip(&mean).zip(table.row(row)) {
                *sum += (x.into() - m).powi(2) / count;
            }
        }
        let deviation = |v: &f64| if v.sqrt() > 1e-12 { v.sqrt() } else { 1.0 };
        Self { scale: variance.iter().map(deviation).collect(), mean, ranges: ranges(table, rows) }
    }

    /// Clamps each column to its range, and maps the range linearly to [-√3, √3], so that values uniform in
    /// the range get mean 0 and standard deviation 1. The scaling depends only on the ranges.
    pub fn within(bounds: &[[f64; 2]]) -> Self {
        Self {
            mean: bounds.iter().map(|[low, high]| low + (high - low) / 2.0).collect(),
            scale: bounds.iter().map(|[low, high]| (high - low) / 12f64.sqrt()).collect(),
            ranges: bounds.iter().map(|&range| FittedRange::declared(range)).collect(),
        }
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.mean.len()
    }

    /// Returns the range of each column.
    pub fn ranges(&self) -> &[FittedRange] {
        &self.ranges
    }

    /// Scales every row of a table with the same number of columns.
    pub fn apply<T: Value>(&self, table: &mut Matrix<T>) {
        let columns = table.columns();
        for row in table.values_mut().chunks_exact_mut(columns.max(1)) {
            for (((x, mean), scale), range) in
                row.iter_mut().zip(&self.mean).zip(&self.scale).zip(&self.ranges)
            {
                let scaled =
                    if range.is_constant() { 0.0 } else { (range.clamp((*x).into()) - mean) / scale };
                *x = T::from_f64(scaled);
            }
        }
    }
}

/// Returns the range of each column in these rows.
pub(super) fn ranges<T: Value>(table: &Matrix<T>, rows: &[usize]) -> Vec<FittedRange> {
    let column = |column: usize| rows.iter().map(move |&row| table.row(row)[column].into());
    (0..table.columns()).map(|at| FittedRange::fit(column(at))).collect()
}

/// Standardises all values of a table by one mean and one standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    mean: f64,
    scale: f64,
}

impl Uniform {
    /// Fits the mean and the standard deviation of all values in `rows`.
    pub fn fit(table: &Matrix<f32>, rows: &[usize]) -> Self {
        let count = (rows.len() * table.columns()) as f64;
        let sum = |of: &dyn Fn(f64) -> f64| {
            rows.iter().flat_map(|&row| table.row(row)).map(|&x| of(f64::from(x))).sum::<f64>()
        };
        let mean = sum(&|x| x) / count;
        let deviation = (sum(&|x| (x - mean).powi(2)) / count).sqrt();
        Self { mean, scale: if deviation > 1e-12 { deviation } else { 1.0 } }
    }

    /// Scales every value.
    pub fn apply(&self, table: &mut Matrix<f32>) {
        for x in table.values_mut() {
            *x = ((f64::from(*x) - self.mean) / self.scale) as f32;
        }
    }
}

/// A number that is scaled in 64 bits.
pub trait Value: Copy + Into<f64> {
    /// Returns the nearest value of this type.
    fn from_f64(value: f64) -> Self;
}

impl Value for f32 {
    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl Value for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_is_fitted_on_the_given_rows_only() {
        let mut table = Matrix::new(2, vec![1.0f32, 5.0, 3.0, 5.0, 100.0, 6.0, 3.5, -7.0]);
        let scaler = Scaler::fit(&table, &[0, 1]);
        scaler.apply(&mut table);
        // 100 is clamped to one standard deviation beyond 3, and 3.5 stays unchanged; the second column is
        // constant.
        assert_eq!(table.values(), [-1.0, 0.0, 1.0, 0.0, 2.0, 0.0, 1.5, 0.0]);
    }

    /// The mean of a large constant is rounded, which leaves a standard deviation above 0.
    #[test]
    fn a_large_constant_becomes_zeros_whatever_comes_later() {
        let fitted = Matrix::new(1, vec![202_312.1f64; 399]);
        let scaler = Scaler::fit(&fitted, &(0..399).collect::<Vec<_>>());
        let mut later = Matrix::new(1, vec![202_312.1, 202_412.1, -1e30]);
        scaler.apply(&mut later);
        assert_eq!(later.values(), [0.0; 3]);
    }

    #[test]
    fn declared_ranges_scale_whatever_the_table_holds() {
        let mut table = Matrix::new(2, vec![0.0f32, 5.0, 16.0, 6.0, 8.0, 1e30, -3.0, f32::MIN]);
        let scaler = Scaler::within(&[[0.0, 16.0], [5.0, 6.0]]);
        scaler.apply(&mut table);
        let end = 3f32.sqrt();
        let expected = [-end, -end, end, end, 0.0, end, -end, -end];
        let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
        assert!(table.values().iter().zip(&expected).all(close), "{:?}", table.values());
    }

    #[test]
    fn all_values_can_share_one_scale() {
        let mut table = Matrix::new(2, vec![1.0f32, 3.0, 1.0, 3.0, 2.0, 12.0]);
        Uniform::fit(&table.clone(), &[0, 1]).apply(&mut table);
        assert_eq!(table.values(), [-1.0, 1.0, -1.0, 1.0, 0.0, 10.0]);
    }
}
