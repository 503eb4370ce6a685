//! Leading principal components of a table.
//!
//! The covariance is computed once in double precision on all cores. Subspace iteration with a few extra
//! vectors finds its leading eigenvectors. A full decomposition, as in `smartcore`, takes minutes for a few
//! hundred columns of mnist and computes unused components.

use fet_core::data::Matrix;
use fet_core::rng::{Purpose, stream};
use rand::RngExt;
use rayon::prelude::*;

/// Projects every row of `table` onto the `count` leading components of its first `fit` rows. Each result
/// column has mean 0 and standard deviation 1 over those rows. [rows, count]
///
/// A component without variance becomes 0. `count` must not exceed the columns.
pub(crate) fn project(table: &Matrix<f32>, fit: usize, count: usize) -> Matrix<f64> {
    let columns = table.columns();
    let mut mean = vec![0.0f64; columns];
    for row in 0..fit {
        mean.iter_mut().zip(table.row(row)).for_each(|(sum, &x)| *sum += f64::from(x) / fit as f64);
    }
    let components = leading(&covariance(table, fit, &mean), columns, count);
    let coordinates = |row: usize| -> Vec<f64> {
        let centred: Vec<f64> = table.row(row).iter().zip(&mean).map(|(&x, m)| f64::from(x) - m).collect();
        components.iter().map(|component| dot(component, &centred)).collect()
    };
    let mut projected: Vec<f64> = (0..table.rows()).into_par_iter().flat_map_iter(coordinates).collect();
    for column in 0..count {
        let over =
            |values: &[f64]| values.iter().skip(column).step_by(count).take(fit).map(|x| x * x).sum::<f64>();
        let deviation = (over(&projected) / fit as f64).sqrt();
        let scale = if deviation > 1e-9 { 1.0 / deviation } else { 0.0 };
        projected.iter_mut().skip(column).step_by(count).for_each(|x| *x *= scale);
    }
    Matrix::new(count, projected)
}

/// Returns the covariance of the first `fit` rows, [columns, columns] row by row.
fn covariance(table: &Matrix<f32>, fit: usize, mean: &[f64]) -> Vec<f64> {
    let columns = table.columns();
    // Transposed, so that a product runs over consecutive numbers.
    let by_column: Vec<Vec<f64>> = (0..columns)
        .into_par_iter()
        .map(|c| (0..fit).map(|row| f64::from(table.row(row)[c]) - mean[c]).collect())
        .collect();
    let product = |a: usize, b: usize| if b < a { 0.0 } else { dot(&by_column[a], &by_column[b]) };
    let row = |a: usize| (0..columns).map(|b| product(a, b)).collect::<Vec<_>>();
    let mut full: Vec<f64> = (0..columns).into_par_iter().flat_map_iter(row).collect();
    for a in 0..columns {
        for b in 0..a {
            full[a * columns + b] = full[b * columns + a];
        }
    }
    full.iter_mut().for_each(|x| *x /= fit as f64);
    full
}

/// Returns the `count` leading eigenvectors of a symmetric matrix, by subspace iteration.
fn leading(matrix: &[f64], columns: usize, count: usize) -> Vec<Vec<f64>> {
    const SPARE: usize = 8;
    const ROUNDS: usize = 300;
    let mut rng = stream(0, 0, Purpose::Parties, 0);
    let width = (count + SPARE).min(columns);
    let mut basis: Vec<Vec<f64>> =
        (0..width).map(|_| (0..columns).map(|_| rng.random::<f64>() - 0.5).collect()).collect();
    orthonormalise(&mut basis);
    for _ in 0..ROUNDS {
        let next = |vector: &Vec<f64>| {
            matrix.chunks_exact(columns).map(|row| dot(row, vector)).collect::<Vec<f64>>()
        };
        let mut moved: Vec<Vec<f64>> = basis.par_iter().map(next).collect();
        orthonormalise(&mut moved);
        let turned =
            moved.iter().zip(&basis).take(count).map(|(a, b)| 1.0 - dot(a, b).abs()).fold(0.0, f64::max);
        basis = moved;
        if turned < 1e-13 {
            break;
        }
    }
    basis.truncate(count);
    basis
}

/// Gram-Schmidt, applied twice. A vector that vanishes becomes 0.
fn orthonormalise(basis: &mut [Vec<f64>]) {
    for index in 0..basis.len() {
        let (done, rest) = basis.split_at_mut(index);
        let vector = &mut rest[0];
        let before = dot(vector, vector).sqrt();
        for other in done.iter().chain(done.iter()) {
            let overlap = dot(vector, other);
            vector.iter_mut().zip(other).for_each(|(x, o)| *x -= overlap * o);
        }
        let length = dot(vector, vector).sqrt();
        let scale = if length > 1e-12 * before && length > 1e-300 { 1.0 / length } else { 0.0 };
        vector.iter_mut().for_each(|x| *x *= scale);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points on an ellipse of half axes 5 and 2, rotated by 30 degrees, with a constant third column.
    #[test]
    fn an_ellipse_has_its_axes_as_components() {
        let (sin, cos) = 30f64.to_radians().sin_cos();
        let angles = (0..360).map(|degree| f64::from(degree).to_radians());
        let points: Vec<(f64, f64)> = angles.map(|a| (5.0 * a.cos(), 2.0 * a.sin())).collect();
        let turned =
            points.iter().flat_map(|(x, y)| [(cos * x - sin * y) as f32, (sin * x + cos * y) as f32, 7.0]);
        let table = Matrix::new(3, turned.collect());
        let projected = project(&table, 360, 3);
        // Standardised, the coordinates are √2 cos and √2 sin, up to sign; the constant column is 0.
        for (row, (x, y)) in points.iter().enumerate() {
            let found = projected.row(row);
            assert!((found[0].abs() - (x / 5.0 * 2f64.sqrt()).abs()).abs() < 1e-5, "row {row}: {found:?}");
            assert!((found[1].abs() - (y / 2.0 * 2f64.sqrt()).abs()).abs() < 1e-5, "row {row}: {found:?}");
            assert_eq!(found[2], 0.0);
        }
    }

    #[test]
    fn components_are_fitted_on_the_first_rows_only() {
        let mut values: Vec<f32> = (0..50).flat_map(|i| [i as f32, 0.0]).collect();
        values.extend([0.0, 1_000.0]);
        let projected = project(&Matrix::new(2, values), 50, 1);
        assert!(projected.row(50)[0].abs() < 2.0, "the last row's second column is without influence");
    }
}
