//! Difference of a metric between two variants, with an interval over test rows and an interval over test rows
//! and repetitions.
//!
//! Both variants have several runs, one for each seed or fold. Two runs of the same repetition have the same
//! test rows, so effects common to a row cancel in the difference D of the metric.
//!
//! | interval | answers | method |
//! |---|---|---|
//! | over rows | do these models differ on other test rows? | bootstrap of the rows (BCa, Efron 1987) |
//! | over rows and splits | do other runs on other rows differ? | sum of variances, below |
//!
//! # Over rows
//!
//! A resample draws rows from all test rows of all runs. A drawn row counts in every run that tests it, for both
//! variants. Runs with the same test rows therefore keep their common row effects. The interval is also at least
//! ± t standard errors wide. The degrees of freedom are the number of rows that determine the variance, minus one: if
//! two classifiers differ on five rows only, no bootstrap is reliable, and t widens the interval.
//!
//! # Over rows and splits
//!
//! With S repetitions, the mean difference has the variance
//!
//! ```text
//! s² / S + c
//! ```
//!
//! s² is the sample variance of D over the repetitions, and c the mean covariance of D between two repetitions.
//! Repetitions with the same test rows share the effects of these rows, which s² therefore lacks. The bootstrap
//! over rows estimates this part of c. If all repetitions test the same rows, the sum is the usual estimate for
//! crossed random effects (Searle, Casella and McCulloch 1992). For such effects no bootstrap of rows and
//! repetitions is exact (McCullagh 2000), and resampling both is too wide (Owen 2007). The interval uses
//! Student's t with Satterthwaite's (1946) degrees of freedom.
//!
//! If the splits differ, the training rows of two repetitions also overlap. Then the interval is at least as wide
//! as that of the corrected resampled t-test: c = s² · test rows / (training and validation rows), with S - 1
//! degrees of freedom (Nadeau and Bengio 2003, "Inference for the Generalization Error"; for repeated
//! cross-validation Bouckaert and Frank 2004). If all repetitions have the same split, the interval holds for
//! these training rows.
//!
//! The interval over rows and splits always contains the interval over rows. Both assume independent rows: they
//! are too narrow if, for example, a person has several rows.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::bootstrap::{BCA_ROWS, BootstrapMethod, BootstrapSettings, UNDEFINED_SHARE, bca};
use crate::calibration::quantile;
use crate::metric::{Metric, Task};
use crate::predictions::{PredictionError, Predictions};
use crate::reweighted::Reweighted;
use crate::undefined::Undefined;

/// Test rows of one run, with their labels and predictions.
///
/// # Shapes
/// - rows: N, all different
/// - truth: N; a number, or the index of a class
/// - output: [N, `task.width()`], row by row, as in [`Predictions`]
#[derive(Debug, Clone, PartialEq)]
pub struct TestedRun {
    /// Seed of the run.
    pub seed: u64,
    /// Fold of the run; 0 without cross-validation.
    pub fold: usize,
    /// Prediction task.
    pub task: Task,
    /// Row numbers that identify the rows over all runs.
    pub rows: Vec<u64>,
    /// Labels.
    pub truth: Vec<f64>,
    /// Predictions.
    pub output: Vec<f64>,
    /// Number of training and validation rows.
    pub fitted: usize,
}

/// Difference of a metric between a variant and its control: variant minus control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedDifference {
    /// Number of repetitions that both variants have.
    pub pairs: usize,
    /// Mean difference over the repetitions.
    pub estimate: f64,
    /// Interval over rows, for the models of these runs.
    pub over_rows: Ends,
    /// Interval over rows and splits. `None` for a single repetition.
    pub over_rows_and_splits: Option<Ends>,
    /// Miscoverage rate α of both intervals.
    pub alpha: f64,
    /// Number of different test rows over all repetitions.
    pub rows: usize,
    /// True if all repetitions test the same rows.
    pub same_rows: bool,
    /// Number of resamples with a defined difference.
    pub resamples: usize,
}

/// Ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Ends {
    /// Returns true if the interval contains 0: the sign of the difference is open.
    pub fn contains_zero(&self) -> bool {
        self.lower <= 0.0 && self.upper >= 0.0
    }
}

/// Time limit of [`bounded_settings`] in nanoseconds: a study compares many variants.
const BOUND: f64 = 0.5e9;

/// Minimum number of resamples of [`bounded_settings`].
const FEWEST: usize = 100;

/// Returns settings for [`difference`] that take about half a second on one core: BCa with 2,000 resamples
/// for few rows, fewer resamples for many rows, at least 100.
pub fn bounded_settings(runs: &[TestedRun], metric: Metric) -> BootstrapSettings {
    let full = BootstrapSettings::default();
    let each = runs.first().map_or(0.0, |run| BootstrapSettings::nanoseconds(run.task, metric));
    let time = 2.0 * each * runs.iter().map(|run| run.rows.len() as f64).sum::<f64>();
    let rows = runs.iter().flat_map(|run| &run.rows).collect::<BTreeSet<_>>().len();
    let fits = (BOUND / time) as usize;
    if rows <= BCA_ROWS && full.resamples + rows <= fits {
        return BootstrapSettings { method: BootstrapMethod::Bca, ..full };
    }
    let resamples = fits.clamp(FEWEST, full.resamples);
    BootstrapSettings { resamples, method: BootstrapMethod::Percentile, ..full }
}

/// Compares the runs of a variant with the runs of its control that have the same seed and fold.
///
/// With the method percentile, the interval over rows is the one by standard errors; with the others it also spans the
/// BCa interval if there are at most [`BCA_ROWS`] rows. The same generator gives the same result.
pub fn difference(
    variant: &[TestedRun],
    control: &[TestedRun],
    metric: Metric,
    settings: BootstrapSettings,
    rng: &mut ChaCha8Rng,
) -> Result<PairedDifference, PairedError> {
    let BootstrapSettings { resamples, alpha, method } = settings;
    if resamples < 2 || !(alpha > 0.0 && alpha < 1.0) {
        return Err(PairedError::Settings { resamples, alpha });
    }
    let sorted = sorted_pairs(variant, control)?;
    let (places, rows) = places(&sorted);
    if rows < 2 {
        return Err(PairedError::Rows(rows));
    }
    let pairs: Vec<Pair<'_>> = sorted
        .iter()
        .zip(places)
        .map(|([first, second], places)| Pair::new([first, second], places, metric))
        .collect::<Result<_, _>>()?;
    let differences = each(&pairs, &vec![1.0; rows]).ok_or(PairedError::NoEstimate)?;
    let mut draws: Vec<Vec<f64>> = Vec::with_capacity(resamples);
    let mut counts = vec![0.0; rows];
    for _ in 0..resamples {
        counts.fill(0.0);
        (0..rows).for_each(|_| counts[rng.random_range(0..rows as u64) as usize] += 1.0);
        draws.extend(each(&pairs, &counts));
    }
    let undefined = resamples - draws.len();
    if undefined as f64 > UNDEFINED_SHARE * resamples as f64 {
        return Err(PairedError::OftenUndefined { undefined, resamples });
    }
    let estimate = mean(&differences);
    let row_variance = RowVariance::new(&draws, rows);
    let mut means: Vec<f64> = draws.iter().map(|draw| mean(draw)).collect();
    means.sort_by(f64::total_cmp);
    let without = if rows <= BCA_ROWS { without_each_row(&pairs, &differences, rows) } else { None };
    let degrees = match &without {
        Some(without) => effective_rows(without) - 1.0,
        None => (1.0 / excess_kurtosis(&means)).min(rows as f64) - 1.0,
    };
    let half = student(degrees, alpha)? * row_variance.of_mean.sqrt();
    let wants_bca = method != BootstrapMethod::Percentile;
    let corrected = without.filter(|_| wants_bca).and_then(|without| bca(&means, estimate, &without, alpha));
    let [lower, upper] =
        corrected.map_or([estimate; 2], |shares| shares.map(|share| quantile(&means, share)));
    let over_rows = Ends { lower: lower.min(estimate - half), upper: upper.max(estimate + half) };
    let same_rows = sorted.iter().all(|[first, _]| first.rows == sorted[0][0].rows);
    let share = (!same_rows).then(|| {
        let tested: usize = sorted.iter().map(|[first, _]| first.rows.len()).sum();
        let fitted: usize = sorted.iter().map(|[first, _]| first.fitted).sum();
        tested as f64 / fitted as f64
    });
    let over_rows_and_splits = match differences.len() {
        1 => None,
        _ => {
            let half = half_width(&differences, (row_variance.between, degrees), share, alpha)?;
            Some(Ends {
                lower: over_rows.lower.min(estimate - half),
                upper: over_rows.upper.max(estimate + half),
            })
        }
    };
    Ok(PairedDifference {
        pairs: pairs.len(),
        estimate,
        over_rows,
        over_rows_and_splits,
        alpha,
        rows,
        same_rows,
        resamples: draws.len(),
    })
}

/// Returns the mean difference without each row, or `None` if one of these values is undefined. Only the runs that
/// test the row are computed again.
fn without_each_row(pairs: &[Pair<'_>], differences: &[f64], rows: usize) -> Option<Vec<f64>> {
    let mut testing: Vec<Vec<usize>> = vec![Vec::new(); rows];
    for (index, pair) in pairs.iter().enumerate() {
        pair.places.iter().for_each(|&place| testing[place].push(index));
    }
    let (mut counts, mut own) = (vec![1.0; rows], Vec::new());
    let mut without = |row: usize| {
        counts[row] = 0.0;
        let mut changed = differences.to_vec();
        for &index in &testing[row] {
            changed[index] = pairs[index].difference(&counts, &mut own)?;
        }
        counts[row] = 1.0;
        Some(mean(&changed))
    };
    (0..rows).map(&mut without).collect()
}

/// Returns Student's quantile at 1 - α/2, with at least one degree of freedom.
fn student(degrees: f64, alpha: f64) -> Result<f64, PairedError> {
    let student = StudentsT::new(0.0, 1.0, degrees.max(1.0)).map_err(|_| PairedError::NoEstimate)?;
    Ok(student.inverse_cdf(1.0 - alpha / 2.0))
}

/// Returns the number of rows that determine the variance: (Σd²)² / Σd⁴ for the rows' influences d. It is a third of
/// the rows for normal influences. If two classifiers differ on few rows, it is the number of these rows.
fn effective_rows(without: &[f64]) -> f64 {
    let mean = mean(without);
    let sum = |power: i32| without.iter().map(|value| (value - mean).powi(power)).sum::<f64>();
    if sum(2) > 0.0 { sum(2).powi(2) / sum(4) } else { without.len() as f64 }
}

/// Returns the excess kurtosis of the resampled means, which estimates 1 / [`effective_rows`] without a jackknife.
/// Returns 0 if it is within three standard errors (√(24 / resamples)) of 0.
fn excess_kurtosis(means: &[f64]) -> f64 {
    let centre = mean(means);
    let moment =
        |power: i32| means.iter().map(|value| (value - centre).powi(power)).sum::<f64>() / means.len() as f64;
    let excess = moment(4) / moment(2).powi(2) - 3.0;
    if excess > 3.0 * (24.0 / means.len() as f64).sqrt() { excess } else { 0.0 }
}

/// Returns the standard error of the mean of `differences` by the corrected resampled t-test (Nadeau and Bengio
/// 2003): s √(1/S + ratio), where `ratio` is the number of test rows divided by the number of training and validation rows.
/// Returns `None` for fewer than two differences.
pub fn resampled_error(differences: &[f64], ratio: f64) -> Option<f64> {
    let count = differences.len() as f64;
    (differences.len() > 1).then(|| (variance(differences) * (1.0 / count + ratio)).sqrt())
}

/// Returns half the width of the interval over rows and splits, without the interval over rows. `between` is the
/// covariance between repetitions with its degrees of freedom.
fn half_width(
    differences: &[f64],
    (between, degrees): (f64, f64),
    ratio: Option<f64>,
    alpha: f64,
) -> Result<f64, PairedError> {
    let count = differences.len() as f64;
    let (own, between) = (variance(differences) / count, between.max(0.0));
    let sum = own + between;
    if sum == 0.0 {
        return Ok(0.0);
    }
    let parts = own.powi(2) / (count - 1.0) + between.powi(2) / degrees.max(1.0);
    let half = student(sum.powi(2) / parts, alpha)? * sum.sqrt();
    let corrected = ratio.and_then(|ratio| resampled_error(differences, ratio));
    Ok(match corrected {
        None => half,
        Some(error) => half.max(student(count - 1.0, alpha)? * error),
    })
}

/// Variances of the differences over resampled rows.
struct RowVariance {
    /// Variance of the mean difference.
    of_mean: f64,
    /// Mean covariance between the differences of two repetitions; 0 for a single repetition.
    between: f64,
}

impl RowVariance {
    fn new(draws: &[Vec<f64>], rows: usize) -> Self {
        // A bootstrap variance is too small by the factor (n - 1) / n.
        let scale = rows as f64 / (rows as f64 - 1.0);
        let means: Vec<f64> = draws.iter().map(|draw| mean(draw)).collect();
        let of_mean = scale * variance(&means);
        let pairs = draws.first().map_or(0, Vec::len);
        if pairs < 2 {
            return Self { of_mean, between: 0.0 };
        }
        let column = |pair: usize| draws.iter().map(|draw| draw[pair]).collect::<Vec<f64>>();
        let own = (0..pairs).map(|pair| scale * variance(&column(pair))).sum::<f64>() / pairs as f64;
        let between = (pairs as f64 * of_mean - own) / (pairs as f64 - 1.0);
        Self { of_mean, between }
    }
}

/// Two runs with the same test rows.
struct Pair<'a> {
    first: Reweighted<'a>,
    second: Reweighted<'a>,
    /// Place of each row among the rows of all runs.
    places: Vec<usize>,
}

impl<'a> Pair<'a> {
    fn new(
        [first, second]: [&'a Sorted; 2],
        places: Vec<usize>,
        metric: Metric,
    ) -> Result<Self, PairedError> {
        let reweighted = |run: &'a Sorted| -> Result<Reweighted<'a>, PairedError> {
            let rows = Predictions::new(run.task, &run.truth, &run.output)?;
            rows.score(metric)?;
            Ok(Reweighted::new(rows, metric))
        };
        Ok(Self { first: reweighted(first)?, second: reweighted(second)?, places })
    }

    fn difference(&self, counts: &[f64], own: &mut Vec<f64>) -> Option<f64> {
        own.clear();
        own.extend(self.places.iter().map(|&place| counts[place]));
        Some(self.first.score(own)? - self.second.score(own)?)
    }
}

/// Returns the difference of each pair under these counts of rows, or `None` if any is undefined.
fn each(pairs: &[Pair<'_>], counts: &[f64]) -> Option<Vec<f64>> {
    let mut own = Vec::new();
    pairs.iter().map(|pair| pair.difference(counts, &mut own)).collect()
}

/// Run with its rows in ascending order.
struct Sorted {
    task: Task,
    rows: Vec<u64>,
    truth: Vec<f64>,
    output: Vec<f64>,
    fitted: usize,
}

impl Sorted {
    fn new(run: &TestedRun) -> Result<Self, PairedError> {
        // Checks the lengths before the order is applied.
        Predictions::new(run.task, &run.truth, &run.output)?;
        let (wanted, got) = (run.truth.len(), run.rows.len());
        if wanted != got {
            return Err(PredictionError::Length { what: "row numbers", wanted, got }.into());
        }
        let mut order: Vec<usize> = (0..run.rows.len()).collect();
        order.sort_by_key(|&at| run.rows[at]);
        let rows: Vec<u64> = order.iter().map(|&at| run.rows[at]).collect();
        if let Some(row) = rows.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]) {
            return Err(PairedError::Twice { row, seed: run.seed });
        }
        let width = run.task.width();
        Ok(Self {
            task: run.task,
            rows,
            truth: order.iter().map(|&at| run.truth[at]).collect(),
            output: order.iter().flat_map(|&at| &run.output[at * width..][..width]).copied().collect(),
            fitted: run.fitted,
        })
    }
}

/// Returns the pairs of runs with the same seed and fold, in the order of the variant's runs.
fn sorted_pairs(variant: &[TestedRun], control: &[TestedRun]) -> Result<Vec<[Sorted; 2]>, PairedError> {
    let controls: BTreeMap<(u64, usize), &TestedRun> =
        control.iter().map(|run| ((run.seed, run.fold), run)).collect();
    let mut pairs = Vec::new();
    for run in variant {
        let Some(other) = controls.get(&(run.seed, run.fold)) else { continue };
        let (first, second) = (Sorted::new(run)?, Sorted::new(other)?);
        if first.rows != second.rows || first.truth != second.truth || first.task != second.task {
            return Err(PairedError::OtherRows { seed: run.seed });
        }
        if first.fitted == 0 {
            return Err(PairedError::NoTraining { seed: run.seed });
        }
        pairs.push([first, second]);
    }
    if pairs.is_empty() { Err(PairedError::NoPairs) } else { Ok(pairs) }
}

/// Returns the place of each pair's rows among all rows, and the number of all rows. Rows with the same number and
/// different labels are different rows.
fn places(pairs: &[[Sorted; 2]]) -> (Vec<Vec<usize>>, usize) {
    let key = |run: &Sorted, at: usize| (run.rows[at], run.truth[at].to_bits());
    let mut all: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for [run, _] in pairs {
        all.extend((0..run.rows.len()).map(|at| (key(run, at), 0)));
    }
    all.values_mut().enumerate().for_each(|(place, value)| *value = place);
    let places =
        pairs.iter().map(|[run, _]| (0..run.rows.len()).map(|at| all[&key(run, at)]).collect()).collect();
    (places, all.len())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sample variance, which divides by n - 1.
fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// Error of a paired comparison.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PairedError {
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
    /// No repetition in common.
    #[error("the two variants lack a common seed and fold; run both with the same seeds")]
    NoPairs,
    /// Different test rows.
    #[error(
        "with seed {seed} the two variants were tested on different rows; give both the same data and split"
    )]
    OtherRows {
        /// Seed of the runs.
        seed: u64,
    },
    /// No training rows.
    #[error("with seed {seed} the number of training rows is 0; state the training and validation rows")]
    NoTraining {
        /// Seed of the runs.
        seed: u64,
    },
    /// Row number that appears twice in a run.
    #[error("row {row} appears twice among the test rows of seed {seed}; row numbers must differ")]
    Twice {
        /// Row number.
        row: u64,
        /// Seed of the run.
        seed: u64,
    },
    /// Too few rows.
    #[error("an interval needs at least 2 test rows, not {0}; add test rows")]
    Rows(usize),
    /// Invalid predictions.
    #[error(transparent)]
    Predictions(#[from] PredictionError),
    /// Metric that is undefined for a run's test rows.
    #[error(transparent)]
    Undefined(#[from] Undefined),
    /// Difference that exceeds the range of numbers.
    #[error("the difference exceeds the range of numbers")]
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
