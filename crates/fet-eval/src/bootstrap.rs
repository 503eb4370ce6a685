//! How far a metric may be off because the test rows are few: bootstrap intervals.
//!
//! B times n rows are drawn with replacement; a row that is drawn k times counts k times. The interval speaks of other
//! test rows from the same source, the model held fixed: not of another seed, another split or another training. Rows
//! that depend on each other (several of one person) make it too narrow.

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

/// Up to so many rows [`Method::Auto`] is BCa, whose jackknife computes the metric once for each row.
pub const BCA_ROWS: usize = 3_000;

/// More undefined resamples than this share are no basis for an interval.
const UNDEFINED_SHARE: f64 = 0.05;

/// How an interval follows from the resamples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// BCa up to [`BCA_ROWS`] rows, else percentile.
    Auto,
    /// From the α/2-quantile of the resampled values to their (1 − α/2)-quantile (Efron 1979).
    Percentile,
    /// Bias-corrected and accelerated (Efron 1987, "Better Bootstrap Confidence Intervals"): the quantiles
    /// Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))) for z = Φ⁻¹(α/2) and Φ⁻¹(1 − α/2).
    Bca,
}

/// The settings of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// B, how many resamples are drawn.
    pub resamples: usize,
    /// The interval is meant to miss with this probability, half of it on either side.
    pub alpha: f64,
    /// How the interval follows from them.
    pub method: Method,
}

impl Default for Settings {
    /// 95 per cent from 2,000 resamples.
    fn default() -> Self {
        Self { resamples: 2_000, alpha: 0.05, method: Method::Auto }
    }
}

/// The time that [`Settings::bounded`] allows, in nanoseconds.
const BOUND: f64 = 1.6e9;

/// The fewest resamples of [`Settings::bounded`].
const FEWEST: usize = 100;

impl Settings {
    /// The default, or fewer resamples where these would take longer than about two seconds on one core: as many as fit,
    /// but at least 100. The number follows from rows, classes and metric alone. What a row costs was measured: 40 ns, and
    /// for each of several classes 2.5 ns, for areas under curves 6.5 ns. Every metric of one or two outputs has its 2,000
    /// resamples up to 20,000 rows; 20,000 rows of 50 classes have 219 for an area and 484 for other metrics.
    pub fn bounded(rows: &Predictions<'_>, metric: Metric) -> Self {
        let each = match rows.task() {
            Task::Regression | Task::Binary => 0.0,
            Task::Multiclass { .. } if matches!(metric, Metric::AucRoc | Metric::AucPr) => 6.5,
            Task::Multiclass { .. } => 2.5,
        };
        let time = rows.rows() as f64 * (40.0 + each * rows.task().classes() as f64);
        let full = Self::default();
        let fits = |resamples: usize| resamples as f64 * time <= BOUND;
        if rows.rows() <= BCA_ROWS && fits(full.resamples + rows.rows()) {
            return full;
        }
        let resamples = ((BOUND / time) as usize).clamp(FEWEST, full.resamples);
        Self { resamples, method: Method::Percentile, ..full }
    }
}

/// An interval around a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The metric of all rows.
    pub estimate: f64,
    /// Its lower end.
    pub lower: f64,
    /// Its upper end.
    pub upper: f64,
    /// The probability with which it is meant to miss.
    pub alpha: f64,
    /// How it was made: percentile or BCa. BCa falls back to percentile where its corrections are undefined: every
    /// resample on one side of the estimate, or a metric that needs the row that the jackknife leaves out.
    pub method: Method,
    /// The resamples that were drawn.
    pub resamples: usize,
    /// Those that left the metric undefined (say, without a row of some class); the interval is of the others.
    pub undefined: usize,
}

/// The interval of a metric over its rows. Weights of rows are kept: a row drawn k times weighs k times as much.
pub fn bootstrap(
    rows: &Predictions<'_>,
    metric: Metric,
    settings: Settings,
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

/// The interval of any statistic of `rows` rows: `statistic` is given how often each row counts, and returns nothing if
/// these rows do not define it; a value that is not finite counts as nothing.
pub fn bootstrap_of(
    rows: usize,
    statistic: impl Fn(&[f64]) -> Option<f64>,
    settings: Settings,
    rng: &mut ChaCha8Rng,
) -> Result<Interval, BootstrapError> {
    let Settings { resamples, alpha, method } = settings;
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
    let wants_bca = method == Method::Bca || (method == Method::Auto && rows <= BCA_ROWS);
    let corrected = wants_bca.then(|| bca(&values, estimate, rows, &statistic, alpha)).flatten();
    let (method, [lower, upper]) = match corrected {
        Some(shares) => (Method::Bca, shares),
        None => (Method::Percentile, [alpha / 2.0, 1.0 - alpha / 2.0]),
    };
    let [lower, upper] = [lower, upper].map(|share| quantile(&values, share));
    Ok(Interval { estimate, lower, upper, alpha, method, resamples, undefined })
}

/// The two shares of the sorted resamples between which BCa's interval lies.
fn bca(
    values: &[f64],
    estimate: f64,
    rows: usize,
    statistic: &impl Fn(&[f64]) -> Option<f64>,
    alpha: f64,
) -> Option<[f64; 2]> {
    // A tie counts half: metrics of classes take few values.
    let below = values.partition_point(|value| *value < estimate);
    let not_above = values.partition_point(|value| *value <= estimate);
    let share = (below + not_above) as f64 / 2.0 / values.len() as f64;
    let mut counts = vec![1.0; rows];
    let jackknife: Option<Vec<f64>> = (0..rows)
        .map(|row| {
            counts[row] = 0.0;
            let value = statistic(&counts);
            counts[row] = 1.0;
            value
        })
        .collect();
    let jackknife = jackknife?;
    let mean = jackknife.iter().sum::<f64>() / rows as f64;
    let power = |exponent| jackknife.iter().map(|value| (mean - value).powi(exponent)).sum::<f64>();
    let acceleration = power(3) / (6.0 * power(2).powf(1.5));

    let normal = Normal::standard();
    let bias = normal.inverse_cdf(share);
    let corrected = [alpha / 2.0, 1.0 - alpha / 2.0].map(|share| {
        let z = bias + normal.inverse_cdf(share);
        normal.cdf(bias + z / (1.0 - acceleration * z))
    });
    // Not so where a correction is not finite, or so large that it turns the interval around.
    let sound = bias.is_finite() && acceleration.is_finite() && corrected[0] < corrected[1];
    sound.then_some(corrected)
}

/// Why there is no interval.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// Settings that make no interval.
    #[error(
        "an interval needs at least 2 resamples and 0 < alpha < 1, not {resamples} and {alpha}; take 2000 and 0.05"
    )]
    Settings {
        /// The number of resamples.
        resamples: usize,
        /// The probability to miss.
        alpha: f64,
    },
    /// Too few rows.
    #[error("an interval needs at least 2 rows, not {0}; test on more")]
    Rows(usize),
    /// No metric.
    #[error(transparent)]
    Undefined(#[from] Undefined),
    /// No statistic.
    #[error("the statistic is undefined for the rows themselves")]
    NoEstimate,
    /// Hardly a metric.
    #[error(
        "{undefined} of {resamples} resamples do not define the metric, more than {UNDEFINED_SHARE} of them; a class has \
         too few rows"
    )]
    OftenUndefined {
        /// Resamples without the metric.
        undefined: usize,
        /// All of them.
        resamples: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_and_classes_have_fewer_resamples() {
        let check = |task: Task, rows: usize, metric: Metric, resamples: usize, method: Method| {
            let mut output = vec![0.0; rows * task.width()];
            output.chunks_mut(task.width()).for_each(|row| row[0] = 1.0);
            let truth = vec![0.0; rows];
            let rows = Predictions::new(task, &truth, &output).expect("right");
            let found = Settings::bounded(&rows, metric);
            assert_eq!((found.resamples, found.method), (resamples, method), "{task:?}, {metric}");
        };
        check(Task::Regression, 3_000, Metric::MedianAbsoluteError, 2_000, Method::Auto);
        check(Task::Regression, 3_001, Metric::Rmse, 2_000, Method::Percentile);
        check(Task::Binary, 20_000, Metric::AucRoc, 2_000, Method::Percentile);
        // 1.6 s / (40,000 · 40 ns), and 1.6 s / (20,000 · (40 + 50 · 6.5) ns).
        check(Task::Binary, 40_000, Metric::Accuracy, 1_000, Method::Percentile);
        check(Task::Multiclass { classes: 50 }, 20_000, Metric::AucPr, 219, Method::Percentile);
        check(Task::Multiclass { classes: 50 }, 20_000, Metric::Accuracy, 484, Method::Percentile);
        // A jackknife of 3,000 rows would take as long as 3,000 resamples.
        check(Task::Multiclass { classes: 10 }, 3_000, Metric::AucRoc, 2_000, Method::Auto);
        check(Task::Multiclass { classes: 15 }, 3_000, Metric::AucRoc, 2_000, Method::Percentile);
        check(Task::Multiclass { classes: 50 }, 3_000, Metric::AucRoc, 1_461, Method::Percentile);
        check(Task::Multiclass { classes: 50 }, 300_000, Metric::Accuracy, 100, Method::Percentile);
    }
}
