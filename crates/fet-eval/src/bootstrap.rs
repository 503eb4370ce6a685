//! Bootstrap confidence intervals of metrics on few test rows.
//!
//! Each resample draws n of the n rows with replacement; a row that is drawn k times counts k times. The
//! interval covers the sampling of test rows from the same source for a fixed model. It does not cover
//! another seed, another split or another training run. It is too narrow if rows depend on each other, for
//! example if a person has several rows.

use std::borrow::Cow;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::calibration::quantile;
use crate::metric::{Metric, Task};
use crate::predictions::Predictions;
use crate::reweighted::Reweighted;
use crate::undefined::Undefined;

/// Maximum number of rows for which [`BootstrapMethod::Auto`] chooses BCa. The BCa jackknife computes the metric once
/// per row.
pub const BCA_ROWS: usize = 3_000;

/// Maximum share of undefined resamples. Above this share the bootstrap returns an error.
pub(crate) const UNDEFINED_SHARE: f64 = 0.05;

/// Method that derives an interval from the resamples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootstrapMethod {
    /// BCa up to [`BCA_ROWS`] rows, percentile for more rows.
    Auto,
    /// From the α/2-quantile of the resampled values to their (1 − α/2)-quantile (Efron 1979).
    Percentile,
    /// Bias-corrected and accelerated (Efron 1987, "Better Bootstrap Confidence Intervals"): the quantiles
    /// Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))) for z = Φ⁻¹(α/2) and Φ⁻¹(1 − α/2).
    Bca,
}

/// Settings of a bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapSettings {
    /// Number of resamples, B.
    pub resamples: usize,
    /// Miscoverage rate α; half of it on either side of the interval.
    pub alpha: f64,
    /// Method that derives the interval from the resamples.
    pub method: BootstrapMethod,
}

impl Default for BootstrapSettings {
    /// 95 per cent interval from 2,000 resamples.
    fn default() -> Self {
        Self { resamples: 2_000, alpha: 0.05, method: BootstrapMethod::Auto }
    }
}

/// Time limit of [`BootstrapSettings::bounded`] in nanoseconds.
const BOUND: f64 = 1.6e9;

/// Minimum number of resamples of [`BootstrapSettings::bounded`].
const FEWEST: usize = 100;

impl BootstrapSettings {
    /// Returns the default settings, with fewer resamples if the bootstrap would take longer than about two
    /// seconds on one core. The minimum is 100 resamples. The number depends only on rows, classes and
    /// metric.
    ///
    /// The time per row was measured: 40 ns, plus 2.5 ns per class for several classes (6.5 ns for areas
    /// under curves). Every metric with one or two outputs has 2,000 resamples up to 20,000 rows. 20,000 rows
    /// of 50 classes have 219 resamples for an area and 484 for other metrics.
    pub fn bounded(rows: &Predictions<'_>, metric: Metric) -> Self {
        let time = rows.rows() as f64 * Self::nanoseconds(rows.task(), metric);
        let full = Self::default();
        let fits = |resamples: usize| resamples as f64 * time <= BOUND;
        if rows.rows() <= BCA_ROWS && fits(full.resamples + rows.rows()) {
            return full;
        }
        let resamples = ((BOUND / time) as usize).clamp(FEWEST, full.resamples);
        Self { resamples, method: BootstrapMethod::Percentile, ..full }
    }

    /// Returns the time of a resample for each row.
    pub(crate) fn nanoseconds(task: Task, metric: Metric) -> f64 {
        let each = match task {
            Task::Regression | Task::Binary => 0.0,
            Task::Multiclass { .. } if matches!(metric, Metric::AucRoc | Metric::AucPr) => 6.5,
            Task::Multiclass { .. } => 2.5,
        };
        40.0 + each * task.classes() as f64
    }
}

/// Bootstrap interval of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Metric of all rows.
    pub estimate: f64,
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
    /// Miscoverage rate α.
    pub alpha: f64,
    /// Method of this interval: percentile or BCa. BCa falls back to percentile if its corrections are
    /// undefined: if all resamples are on one side of the estimate, or if the metric needs the row that the
    /// jackknife leaves out.
    pub method: BootstrapMethod,
    /// Number of resamples that were drawn.
    pub resamples: usize,
    /// Number of resamples with an undefined metric, for example without a row of some class. The interval
    /// uses the other resamples.
    pub undefined: usize,
}

/// Computes the bootstrap interval of a metric. A row that is drawn k times counts with k times its weight.
pub fn bootstrap(
    rows: &Predictions<'_>,
    metric: Metric,
    settings: BootstrapSettings,
    rng: &mut ChaCha8Rng,
) -> Result<Interval, BootstrapError> {
    rows.score(metric)?;
    let reweighted = Reweighted::new(*rows, metric);
    let value = |counts: &[f64]| {
        let weights: Cow<'_, [f64]> = match rows.weights() {
            None => counts.into(),
            Some(weights) => weights.iter().zip(counts).map(|(weight, count)| weight * count).collect(),
        };
        reweighted.score(&weights)
    };
    bootstrap_of(rows.rows(), value, settings, rng)
}

/// Computes the bootstrap interval of any statistic of `rows` rows. `statistic` receives the count of each
/// row and returns `None` if the statistic is undefined. Values that are not finite count as undefined.
pub fn bootstrap_of(
    rows: usize,
    statistic: impl Fn(&[f64]) -> Option<f64>,
    settings: BootstrapSettings,
    rng: &mut ChaCha8Rng,
) -> Result<Interval, BootstrapError> {
    let BootstrapSettings { resamples, alpha, method } = settings;
    if resamples < 2 || !(alpha > 0.0 && alpha < 1.0) {
        return Err(BootstrapError::Settings { resamples, alpha });
    }
    if rows < 2 {
        return Err(BootstrapError::Rows(rows));
    }
    let statistic = |counts: &[f64]| statistic(counts).filter(|value| value.is_finite());
    let estimate = statistic(&vec![1.0; rows]).ok_or(BootstrapError::NoEstimate)?;
    let mut values = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        let mut counts = vec![0.0; rows];
        (0..rows).for_each(|_| counts[rng.random_range(0..rows as u64) as usize] += 1.0);
        values.extend(statistic(&counts));
    }
    let undefined = resamples - values.len();
    if undefined as f64 > UNDEFINED_SHARE * resamples as f64 {
        return Err(BootstrapError::OftenUndefined { undefined, resamples });
    }
    values.sort_by(f64::total_cmp);
    let wants_bca = method == BootstrapMethod::Bca || (method == BootstrapMethod::Auto && rows <= BCA_ROWS);
    let jackknife = wants_bca.then(|| jackknife(rows, &statistic)).flatten();
    let corrected = jackknife.and_then(|jackknife| bca(&values, estimate, &jackknife, alpha));
    let (method, [lower, upper]) = match corrected {
        Some(shares) => (BootstrapMethod::Bca, shares),
        None => (BootstrapMethod::Percentile, [alpha / 2.0, 1.0 - alpha / 2.0]),
    };
    let [lower, upper] = [lower, upper].map(|share| quantile(&values, share));
    Ok(Interval { estimate, lower, upper, alpha, method, resamples, undefined })
}

/// Returns the statistic without each row, or `None` if one of these values is undefined.
fn jackknife(rows: usize, statistic: &impl Fn(&[f64]) -> Option<f64>) -> Option<Vec<f64>> {
    let mut counts = vec![1.0; rows];
    let without = |row: usize| {
        counts[row] = 0.0;
        let value = statistic(&counts);
        counts[row] = 1.0;
        value
    };
    (0..rows).map(without).collect()
}

/// Returns the two quantile levels of the sorted resamples that bound the BCa interval.
pub(crate) fn bca(values: &[f64], estimate: f64, jackknife: &[f64], alpha: f64) -> Option<[f64; 2]> {
    // Ties count half: classification metrics take few distinct values.
    let below = values.partition_point(|value| *value < estimate);
    let not_above = values.partition_point(|value| *value <= estimate);
    let share = (below + not_above) as f64 / 2.0 / values.len() as f64;
    let mean = jackknife.iter().sum::<f64>() / jackknife.len() as f64;
    let power = |exponent| jackknife.iter().map(|value| (mean - value).powi(exponent)).sum::<f64>();
    let acceleration = power(3) / (6.0 * power(2).powf(1.5));

    let normal = Normal::standard();
    let bias = normal.inverse_cdf(share);
    let corrected = [alpha / 2.0, 1.0 - alpha / 2.0].map(|share| {
        let z = bias + normal.inverse_cdf(share);
        normal.cdf(bias + z / (1.0 - acceleration * z))
    });
    // A correction can be infinite or NaN, or so large that it reverses the interval.
    let sound = bias.is_finite() && acceleration.is_finite() && corrected[0] < corrected[1];
    sound.then_some(corrected)
}

/// Error of a bootstrap.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Invalid settings.
    #[error(
        "an interval needs at least 2 resamples and 0 < alpha < 1, not {resamples} and {alpha}; use 2000 and 0.05"
    )]
    Settings {
        /// Number of resamples.
        resamples: usize,
        /// Miscoverage rate α.
        alpha: f64,
    },
    /// Too few rows.
    #[error("an interval needs at least 2 rows, not {0}; add test rows")]
    Rows(usize),
    /// The metric is undefined for the rows.
    #[error(transparent)]
    Undefined(#[from] Undefined),
    /// The statistic is undefined for the rows.
    #[error("the statistic is undefined for the original rows")]
    NoEstimate,
    /// Too many resamples leave the metric undefined.
    #[error(
        "the metric is undefined for {undefined} of {resamples} resamples, above the limit of {UNDEFINED_SHARE}; a class \
         has too few rows"
    )]
    OftenUndefined {
        /// Number of resamples with an undefined metric.
        undefined: usize,
        /// Number of resamples.
        resamples: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_and_classes_have_fewer_resamples() {
        let check = |task: Task, rows: usize, metric: Metric, resamples: usize, method: BootstrapMethod| {
            let mut output = vec![0.0; rows * task.width()];
            output.chunks_mut(task.width()).for_each(|row| row[0] = 1.0);
            let truth = vec![0.0; rows];
            let rows = Predictions::new(task, &truth, &output).expect("right");
            let found = BootstrapSettings::bounded(&rows, metric);
            assert_eq!((found.resamples, found.method), (resamples, method), "{task:?}, {metric}");
        };
        check(Task::Regression, 3_000, Metric::MedianAbsoluteError, 2_000, BootstrapMethod::Auto);
        check(Task::Regression, 3_001, Metric::Rmse, 2_000, BootstrapMethod::Percentile);
        check(Task::Binary, 20_000, Metric::AucRoc, 2_000, BootstrapMethod::Percentile);
        // 1.6 s / (40,000 · 40 ns), and 1.6 s / (20,000 · (40 + 50 · 6.5) ns).
        check(Task::Binary, 40_000, Metric::Accuracy, 1_000, BootstrapMethod::Percentile);
        check(Task::Multiclass { classes: 50 }, 20_000, Metric::AucPr, 219, BootstrapMethod::Percentile);
        check(Task::Multiclass { classes: 50 }, 20_000, Metric::Accuracy, 484, BootstrapMethod::Percentile);
        // A jackknife of 3,000 rows would take as long as 3,000 resamples.
        check(Task::Multiclass { classes: 10 }, 3_000, Metric::AucRoc, 2_000, BootstrapMethod::Auto);
        check(Task::Multiclass { classes: 15 }, 3_000, Metric::AucRoc, 2_000, BootstrapMethod::Percentile);
        check(Task::Multiclass { classes: 50 }, 3_000, Metric::AucRoc, 1_461, BootstrapMethod::Percentile);
        check(Task::Multiclass { classes: 50 }, 300_000, Metric::Accuracy, 100, BootstrapMethod::Percentile);
    }
}
