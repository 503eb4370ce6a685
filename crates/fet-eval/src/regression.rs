//! Metrics of a regression. [`Metric`](crate::Metric) states their formulas.

use crate::metric::{MAPE_EPSILON, Metric};
use crate::predictions::Predictions;
use crate::undefined::Undefined;

/// Returns |p − y| of a row.
fn error(rows: &Predictions<'_>, row: usize) -> f64 {
    (rows.predicted(row) - rows.truth(row)).abs()
}

pub(crate) fn rmse(rows: &Predictions<'_>) -> f64 {
    rows.mean(|row| error(rows, row).powi(2)).sqrt()
}

pub(crate) fn mae(rows: &Predictions<'_>) -> f64 {
    rows.mean(|row| error(rows, row))
}

pub(crate) fn r2(rows: &Predictions<'_>) -> Result<f64, Undefined> {
    let counted: Vec<usize> = rows.counted().collect();
    if counted.len() < 2 {
        return Err(Undefined::Rows { metric: Metric::R2, least: 2, got: counted.len() });
    }
    let residual = rows.mean(|row| error(rows, row).powi(2));
    // Compares the values themselves, because the rounded mean of equal values can differ from them.
    if counted.iter().all(|&row| rows.truth(row) == rows.truth(counted[0])) {
        return Ok(if residual == 0.0 { 1.0 } else { 0.0 });
    }
    let centre = rows.mean(|row| rows.truth(row));
    Ok(1.0 - residual / rows.mean(|row| (rows.truth(row) - centre).powi(2)))
}

pub(crate) fn mape(rows: &Predictions<'_>) -> Result<f64, Undefined> {
    let least = MAPE_EPSILON * rows.mean(|row| rows.truth(row).abs());
    let near_zero = |row: &usize| rows.truth(*row) == 0.0 || rows.truth(*row).abs() < least;
    if let Some(row) = rows.counted().find(near_zero) {
        return Err(Undefined::NearZero { row, value: rows.truth(row), least });
    }
    Ok(rows.mean(|row| error(rows, row) / rows.truth(row).abs()))
}

pub(crate) fn median_absolute_error(rows: &Predictions<'_>) -> f64 {
    median_of(rows, &absolute_errors(rows))
}

/// Returns each row of non-zero weight with its |p − y|, in ascending order.
pub(crate) fn absolute_errors(rows: &Predictions<'_>) -> Vec<(f64, usize)> {
    let mut errors: Vec<(f64, usize)> = rows.counted().map(|row| (error(rows, row), row)).collect();
    errors.sort_by(|a, b| a.0.total_cmp(&b.0));
    errors
}

/// Returns the weighted median as scikit-learn computes it. If the weights of the smaller errors are exactly
/// half of the total, it is the mean of that error and the next one (Hyndman and Fan 1996,
/// `averaged_inverted_cdf`).
pub(crate) fn median_of(rows: &Predictions<'_>, ascending: &[(f64, usize)]) -> f64 {
    let mut sum = 0.0;
    let reached: Vec<(f64, f64)> = ascending
        .iter()
        .filter(|(_, row)| rows.weight(*row) > 0.0)
        .map(|(error, row)| {
            sum += rows.weight(*row);
            (*error, sum)
        })
        .collect();
    let half = 0.5 * sum;
    let last = reached.len() - 1;
    let middle = reached.partition_point(|(_, reached)| *reached < half).min(last);
    let next = if reached[middle].1 - half > f64::EPSILON { middle } else { (middle + 1).min(last) };
    (reached[middle].0 + reached[next].0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Task;

    #[test]
    fn median_skips_rows_without_weight() {
        let rows = Predictions::new(Task::Regression, &[0.0; 3], &[1.0, 2.0, 3.0]).expect("right");
        for (weights, expect) in [([1.0, 1.0, 1.0], 2.0), ([1.0, 0.0, 1.0], 2.0), ([1.0, 1.0, 0.0], 1.5)] {
            let found = median_absolute_error(&rows.weighted(&weights).expect("right"));
            assert_eq!(found, expect, "{weights:?}");
        }
    }
}
