//! Scaling of columns, stored so that new records can be scaled in the same way.

use fet_core::data::Matrix;
use serde::{Deserialize, Serialize};

/// Shifts and scales each column: to mean 0 and standard deviation 1 over the fitted rows (a constant column is 0 at its
/// constant), or as declared ranges say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaler {
    mean: Vec<f64>,
    scale: Vec<f64>,
    /// The values that are let through, column by column; others are clamped. Nothing where there is no limit.
    limits: Option<Vec<[f64; 2]>>,
}

impl Scaler {
    /// Fits the means and standard deviations of `rows`.
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
        Self { scale: variance.iter().map(deviation).collect(), mean, limits: None }
    }

    /// Clamps each column into its range, and maps the range linearly to [-√3, √3]: values that are uniform in it get mean
    /// 0 and standard deviation 1. It follows from the ranges alone.
    pub fn within(bounds: &[[f64; 2]]) -> Self {
        Self {
            mean: bounds.iter().map(|[low, high]| low + (high - low) / 2.0).collect(),
            scale: bounds.iter().map(|[low, high]| (high - low) / 12f64.sqrt()).collect(),
            limits: Some(bounds.to_vec()),
        }
    }

    /// A scaler with given means and standard deviations; `None` if their numbers differ or a deviation is 0.
    pub fn of(mean: Vec<f64>, scale: Vec<f64>) -> Option<Self> {
        let sound = mean.len() == scale.len() && scale.iter().all(|scale| *scale > 0.0);
        sound.then_some(Self { mean, scale, limits: None })
    }

    /// The mean of each column.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The standard deviation of each column.
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// The ranges that values are clamped into, if there are any.
    pub fn limits(&self) -> Option<&[[f64; 2]]> {
        self.limits.as_deref()
    }

    /// Scales every row of a table with the same number of columns.
    pub fn apply<T: Value>(&self, table: &mut Matrix<T>) {
        let columns = table.columns();
        if let Some(limits) = &self.limits {
            for row in table.values_mut().chunks_exact_mut(columns.max(1)) {
                for (x, &[low, high]) in row.iter_mut().zip(limits) {
                    *x = T::from_f64((*x).into().clamp(low, high));
                }
            }
        }
        for row in table.values_mut().chunks_exact_mut(columns.max(1)) {
            for ((x, m), s) in row.iter_mut().zip(&self.mean).zip(&self.scale) {
                *x = T::from_f64(((*x).into() - m) / s);
            }
        }
    }
}

/// Standardises all values of a table by one mean and one standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    mean: f64,
    scale: f64,
}

impl Uniform {
    /// The mean and the deviation of all values in `rows`.
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
    /// The nearest value.
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
        let mut table = Matrix::new(2, vec![1.0f32, 5.0, 3.0, 5.0, 100.0, 6.0]);
        let scaler = Scaler::fit(&table, &[0, 1]);
        scaler.apply(&mut table);
        assert_eq!(table.values(), [-1.0, 0.0, 1.0, 0.0, 98.0, 1.0]);
        assert_eq!(Scaler::of(scaler.mean().to_vec(), scaler.scale().to_vec()), Some(scaler));
        assert_eq!(Scaler::of(vec![0.0], vec![0.0]), None);
    }

    #[test]
    fn declared_ranges_scale_alike_whatever_the_table_holds() {
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
