//! Strata: sets of rows that a split spreads evenly over the parts.

use std::collections::BTreeMap;

use super::SplitError;

/// Returns a number for each distinct value, in the order of the values: groups or classes from a column of
/// names.
pub fn codes<T: Ord>(column: &[T]) -> Vec<usize> {
    let distinct: BTreeMap<&T, ()> = column.iter().map(|value| (value, ())).collect();
    let numbers: BTreeMap<&T, usize> =
        distinct.into_keys().enumerate().map(|(number, value)| (value, number)).collect();
    column.iter().map(|value| numbers[value]).collect()
}

/// Returns the strata of a numeric column: `bins` bins with about the same number of rows, from the smallest
/// values up.
///
/// A value with i smaller values among n is in bin ⌊i · bins / n⌋, so equal values share a bin. Ties can
/// leave bins empty.
pub fn quantile_strata(values: &[f64], bins: usize) -> Result<Vec<usize>, SplitError> {
    if let Some((row, &value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(SplitError::NotFinite { row, value });
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let smaller = |value: f64| sorted.partition_point(|other| *other < value);
    Ok(values.iter().map(|value| smaller(*value) * bins.max(1) / values.len()).collect())
}

/// Returns the rows of each stratum, strata by number, rows in the given order.
pub(super) fn rows_by_stratum(strata: &[usize], order: &[usize]) -> Vec<Vec<usize>> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    order.iter().for_each(|&row| members.entry(strata[row]).or_default().push(row));
    members.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_ordered_and_bins_have_equal_sizes() {
        assert_eq!(codes(&["b", "a", "c", "a"]), [1, 0, 2, 0]);
        let strata = |values: &[f64], bins| quantile_strata(values, bins).expect("finite");
        assert_eq!(strata(&[5.0, 1.0, 3.0, 2.0, 4.0, 0.0], 3), [2, 0, 1, 1, 2, 0]);
        assert_eq!(strata(&[7.0, 7.0, 7.0, 9.0], 2), [0, 0, 0, 1]);
        assert_eq!(strata(&[1.0, 2.0], 0), [0, 0]);
        assert!(
            quantile_strata(&[1.0, f64::NAN], 2)
                .expect_err("NaN")
                .to_string()
                .contains("row 1 (from 0) contains NaN")
        );
    }
}
