//! Pools the evaluations of one variant's cells over seeds.
//!
//! Metrics keep one value for each seed; `write` averages and formats them. Matrices, curves and histograms
//! combine all seeds.

use fet_eval::records::Report;
use fet_eval::{Bin, Estimate, Evaluation, Metric, Residuals, Scores};

use super::repetition::Repetition;
use super::results::FinishedCell;
use super::row::Row;
use super::statistics::mean;

/// Number of bins of a calibration curve: equal steps from 0 to 1, as in `fet-eval`.
pub(crate) const CALIBRATION_BINS: usize = 15;
/// Number of bins of the common histogram of all seeds.
const RESIDUAL_BINS: usize = 30;

/// Values of a figure over seeds, and the reasons for undefined values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Values {
    /// Seed and value.
    pub(crate) values: Vec<(Repetition, f64)>,
    /// Seeds without a value, each with the reason.
    pub(crate) undefined: Vec<(Repetition, String)>,
}

/// A calibration curve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calibration {
    /// Bins of all seeds together.
    pub(crate) all: Vec<Bin>,
    /// Points (predicted, observed) of each seed.
    pub(crate) seeds: Vec<Vec<(f64, f64)>>,
}

/// Distribution of the residuals, as the mean over seeds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Histogram {
    /// Bins from left to right: both ends, and the share of the rows.
    pub(crate) bins: Vec<((f64, f64), f64)>,
    /// Shares of the rows below and above the bins of their seed.
    pub(crate) outside: (f64, f64),
    /// Quantiles: share, value.
    pub(crate) quantiles: Vec<(f64, f64)>,
}

/// Scores of groups of rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ByGroup {
    /// Column that names the groups.
    pub(crate) column: String,
    /// Groups, in descending order of rows.
    pub(crate) groups: Vec<GroupOver>,
    /// All other rows. The groups among these rows may differ from seed to seed.
    pub(crate) others: Option<GroupOver>,
}

/// One group over seeds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GroupOver {
    /// Name of the group.
    pub(crate) name: String,
    /// Number of rows, for each seed that has the group.
    pub(crate) rows: Vec<f64>,
    /// Scores, for each seed that has the group.
    pub(crate) scores: Vec<Scores>,
}

impl Values {
    /// Returns the values without their seeds.
    pub(crate) fn alone(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    fn push(&mut self, seed: Repetition, value: Result<f64, String>) {
        match value {
            Ok(value) => self.values.push((seed, value)),
            Err(reason) => self.undefined.push((seed, reason)),
        }
    }
}

impl GroupOver {
    /// Returns the values of a metric, for each seed that defines the metric.
    pub(crate) fn values(&self, metric: Metric) -> Vec<f64> {
        self.scores.iter().filter_map(|scores| scores.get(metric)).collect()
    }
}

/// Returns the metrics that any evaluation has, in the order of [`Metric::ALL`].
pub(crate) fn metrics(results: &[FinishedCell<'_>]) -> Vec<Metric> {
    let has = |metric: &Metric| {
        results.iter().any(|result| scores_task_of(&result.report.evaluation.test, *metric))
    };
    Metric::ALL.into_iter().filter(has).collect()
}

/// Returns a metric of each seed on the test rows, without the seeds whose task does not have the metric.
pub(crate) fn metric(row: &Row<'_>, metric: Metric) -> Values {
    let mut values = Values::default();
    for (seed, evaluation) in evaluations(row).filter(|(_, own)| scores_task_of(&own.test, metric)) {
        let reason = || evaluation.test.reason(metric).unwrap_or_default().to_string();
        values.push(seed, evaluation.test.get(metric).ok_or_else(reason));
    }
    values
}

/// Returns half the width of each seed's bootstrap interval.
pub(crate) fn half_widths(row: &Row<'_>) -> Values {
    let mut values = Values::default();
    for (seed, evaluation) in evaluations(row) {
        let half = match &evaluation.interval {
            Estimate::Interval(interval) => Ok((interval.upper - interval.lower) / 2.0),
            Estimate::Undefined(reason) => Err(reason.clone()),
        };
        values.push(seed, half);
    }
    values
}

/// Returns the names of the classes and the sum of all seeds' confusion matrices. Returns `None` if a seed
/// lacks a matrix, or if the classes of two seeds differ.
pub(crate) fn confusion(reports: &[&Report]) -> Option<(Vec<String>, Vec<Vec<f64>>)> {
    let mut all: Option<(Vec<String>, Vec<Vec<f64>>)> = None;
    for report in reports {
        let cells = &report.evaluation.confusion.as_ref()?.cells;
        let names = names(&report.class_names, cells.len());
        match &mut all {
            None => all = Some((names, cells.clone())),
            Some((known, sums)) if *known == names => {
                for (sum, cell) in sums.iter_mut().flatten().zip(cells.iter().flatten()) {
                    *sum += cell;
                }
            }
            Some(_) => return None,
        }
    }
    all
}

/// Returns the calibration curve, or `None` if no seed has one.
pub(crate) fn calibration(reports: &[&Report]) -> Option<Calibration> {
    let curves = reports.iter().map(|report| report.evaluation.calibration.as_slice());
    let curves: Vec<&[Bin]> = curves.filter(|bins| !bins.is_empty()).collect();
    let mut sums = vec![(0.0, 0.0, 0.0); CALIBRATION_BINS];
    for bin in curves.iter().copied().flatten() {
        // The mean of values in (lower, upper] is in the same interval.
        let place = (bin.predicted * CALIBRATION_BINS as f64).ceil() as usize;
        let (predicted, observed, weight) = &mut sums[place.clamp(1, CALIBRATION_BINS) - 1];
        *predicted += bin.weight * bin.predicted;
        *observed += bin.weight * bin.observed;
        *weight += bin.weight;
    }
    let bin = |(predicted, observed, weight): (f64, f64, f64)| Bin {
        predicted: predicted / weight,
        observed: observed / weight,
        weight,
    };
    let all: Vec<Bin> = sums.into_iter().filter(|sums| sums.2 > 0.0).map(bin).collect();
    let points = |bins: &&[Bin]| bins.iter().map(|bin| (bin.predicted, bin.observed)).collect();
    (!all.is_empty()).then(|| Calibration { all, seeds: curves.iter().map(points).collect() })
}

/// Returns the residuals, or `None` if no seed has any.
pub(crate) fn residuals(reports: &[&Report]) -> Option<Histogram> {
    let all: Vec<&Residuals> =
        reports.iter().filter_map(|report| report.evaluation.residuals.as_ref()).collect();
    let first = all.first()?;
    let low = all.iter().map(|one| one.lower).fold(f64::INFINITY, f64::min);
    let high = all.iter().map(|one| one.upper).fold(f64::NEG_INFINITY, f64::max);
    let bins = if low < high { RESIDUAL_BINS } else { 1 };
    let edge = |at: usize| low + (high - low) * at as f64 / bins as f64;
    let mut shares = vec![0.0; bins];
    let mut outside = (0.0, 0.0);
    for one in &all {
        let rows = one.below + one.above + one.counts.iter().sum::<f64>();
        let part = |count: f64| count / rows / all.len() as f64;
        outside = (outside.0 + part(one.below), outside.1 + part(one.above));
        let width = (one.upper - one.lower) / one.counts.len() as f64;
        for (at, count) in one.counts.iter().enumerate() {
            let own = (one.lower + at as f64 * width, one.lower + (at + 1) as f64 * width);
            spread(part(*count), own, &mut shares, (low, high));
        }
    }
    let quantile = |at: usize| {
        let values: Vec<f64> = all.iter().filter_map(|one| Some(one.quantiles.get(at)?.value)).collect();
        (first.quantiles[at].share, mean(&values))
    };
    Some(Histogram {
        bins: shares.into_iter().enumerate().map(|(at, share)| ((edge(at), edge(at + 1)), share)).collect(),
        outside,
        quantiles: (0..first.quantiles.len()).map(quantile).collect(),
    })
}

/// Returns the scores of groups, or `None` if no seed has any.
pub(crate) fn groups(row: &Row<'_>) -> Option<ByGroup> {
    let mut found: Option<ByGroup> = None;
    for (_, evaluation) in evaluations(row) {
        let Some(own) = &evaluation.groups else { continue };
        let by_group = found.get_or_insert_with(|| ByGroup {
            column: own.column.clone(),
            groups: Vec::new(),
            others: None,
        });
        for group in &own.groups {
            let known = by_group.groups.iter().position(|known| known.name == group.name);
            let at = known.unwrap_or_else(|| {
                by_group.groups.push(GroupOver { name: group.name.clone(), ..GroupOver::default() });
                by_group.groups.len() - 1
            });
            by_group.groups[at].rows.push(group.rows as f64);
            by_group.groups[at].scores.push(group.scores.clone());
        }
        if let Some(others) = &own.others {
            let all = by_group.others.get_or_insert_with(GroupOver::default);
            all.rows.push(others.rows as f64);
            all.scores.push(others.scores.clone());
        }
    }
    if let Some(by_group) = &mut found {
        let rows = |group: &GroupOver| group.rows.iter().sum::<f64>();
        by_group.groups.sort_by(|a, b| rows(b).total_cmp(&rows(a)));
    }
    found
}

fn evaluations<'a>(row: &'a Row<'a>) -> impl Iterator<Item = (Repetition, &'a Evaluation)> {
    row.results.iter().map(|result| (result.cell.repetition, &result.report.evaluation))
}

/// Returns true if `scores` belong to the task of `metric`.
fn scores_task_of(scores: &Scores, metric: Metric) -> bool {
    scores.iter().any(|(own, _)| own == metric)
}

/// Returns the names of the classes, or their numbers if the names are not known.
fn names(known: &[String], classes: usize) -> Vec<String> {
    if known.len() == classes {
        known.to_vec()
    } else {
        (0..classes).map(|class| class.to_string()).collect()
    }
}

/// Adds `share`, spread evenly over the interval `own`, to equal bins from `low` to `high`.
fn spread(share: f64, own: (f64, f64), bins: &mut [f64], (low, high): (f64, f64)) {
    let width = (high - low) / bins.len() as f64;
    let last = bins.len() - 1;
    let place = |value: f64| if width > 0.0 { (((value - low) / width) as usize).min(last) } else { 0 };
    let (first, end) = (place(own.0), place(own.1));
    if first == end || own.1 <= own.0 {
        bins[first] += share;
        return;
    }
    for (at, bin) in bins.iter_mut().enumerate().take(end + 1).skip(first) {
        let (left, right) = (low + at as f64 * width, low + (at + 1) as f64 * width);
        let overlap = own.1.min(right) - own.0.max(left);
        *bin += share * (overlap / (own.1 - own.0)).max(0.0);
    }
}

#[cfg(test)]
#[path = "pooled/tests.rs"]
mod tests;
