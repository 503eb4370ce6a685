//! Mean, sample standard deviation, median, and the 95 % interval of a mean.
//!
//! The module `paired` tests the difference between two variants, and `power` counts the seeds that a test needs.

pub(crate) mod paired;
pub(crate) mod power;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Confidence level of intervals. A difference is significant if its corrected p is below 1 - `CONFIDENCE`.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Minimum number of seeds for a test.
pub(crate) const FEWEST: usize = 3;

/// Returns the mean, or NaN without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample standard deviation, which divides by n - 1, or `None` for fewer than two values.
pub(crate) fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Returns half the width of the 95 % interval of the mean (Student's t), or `None` for fewer than three
/// values. With two values the interval would be useless: thirteen times as wide as the distance between the
/// values.
///
/// `correlated` is 0 for independent values. For the folds of a cross-validation it is the number of test rows
/// divided by the number of training and validation rows: the variance of the mean is s² (1/n + correlated), as in
/// the corrected resampled t-test (Nadeau and Bengio 2003).
pub(crate) fn half_width(values: &[f64], correlated: f64) -> Option<f64> {
    let deviation = standard_deviation(values).filter(|_| values.len() > 2)?;
    let t = student(values.len() - 1)?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    Some(t * deviation * (1.0 / values.len() as f64 + correlated).sqrt())
}

/// Returns the median, or NaN without values. For an even number of values this is the mean of the middle
/// two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

fn student(degrees: usize) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, degrees as f64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let check = |values: &[f64], expected_mean: f64, deviation: Option<f64>, expected_median: f64| {
            assert!((mean(values) - expected_mean).abs() < 1e-12, "mean of {values:?}");
            assert!((median(values) - expected_median).abs() < 1e-12, "median of {values:?}");
            match (standard_deviation(values), deviation) {
                (Some(found), Some(deviation)) => assert!((found - deviation).abs() < 1e-12, "{values:?}"),
                (found, deviation) => assert_eq!(found, deviation, "{values:?}"),
            }
        };
        check(&[2.0], 2.0, None, 2.0);
        check(&[1.0, 3.0], 2.0, Some(2.0_f64.sqrt()), 2.0);
        check(&[3.0, 3.0, 3.0], 3.0, Some(0.0), 3.0);
        // Expected: Python's statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]), and likewise below.
        check(&[9.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 2.0], 5.0, Some(2.138_089_935_299_395), 4.5);
        check(&[5.0, 1.0, 100.0], 106.0 / 3.0, Some(56.038_677_119_765_54), 5.0);
    }

    #[test]
    fn no_values_have_no_mean() {
        assert!(mean(&[]).is_nan() && median(&[]).is_nan());
        assert_eq!(standard_deviation(&[]), None);
    }

    #[test]
    fn intervals_follow_students_t() {
        let check = |values: &[f64], expected: Option<f64>| match (half_width(values, 0.0), expected) {
            (Some(found), Some(expected)) => {
                assert!((found - expected).abs() < 1e-9 * expected, "{values:?}: {found}")
            }
            (found, expected) => assert_eq!(found, expected, "{values:?}"),
        };
        check(&[], None);
        check(&[1.0, 2.0], None);
        // Expected, from tables of the t distribution: t(0.975) is 4.302652729911275 for 2 degrees of freedom
        // and 2.7764451051977987 for 4.
        check(&[1.0, 2.0, 3.0], Some(4.302_652_729_911_275 / 3.0_f64.sqrt()));
        check(&[1.0, 2.0, 3.0, 4.0, 5.0], Some(2.776_445_105_197_798_7 * (2.5_f64 / 5.0).sqrt()));
        // Five folds: a test row for every four other rows.
        let corrected = half_width(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25).expect("five values");
        assert!((corrected - 2.776_445_105_197_798_7 * (2.5_f64 * (0.2 + 0.25)).sqrt()).abs() < 1e-9);
    }
}
