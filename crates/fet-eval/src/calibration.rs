//! Calibration curves: observed frequency of a class against its predicted probability.
//!
//! A bin contains the rows with a probability in (lower edge, upper edge]; the first bin includes its lower
//! edge. Edges are equal steps from 0 to 1, or quantiles of the probabilities (linear interpolation, as in
//! numpy, without weights). Empty bins are left out. The curve is scikit-learn's `calibration_curve` with
//! weights.

use serde::{Deserialize, Serialize};

use crate::metric::Task;
use crate::predictions::Predictions;
use crate::undefined::Undefined;

/// Binning of predicted probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bins {
    /// Given number of bins of equal width.
    Uniform(usize),
    /// Given number of bins with about the same number of rows.
    Quantile(usize),
}

impl Default for Bins {
    /// 15 bins of equal width: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.
    fn default() -> Self {
        Self::Uniform(15)
    }
}

/// Non-empty bin of a calibration curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// Mean predicted probability.
    pub predicted: f64,
    /// Share of the bin's rows that are of the class.
    pub observed: f64,
    /// Total weight of the bin's rows, or their number if the rows have no weights.
    pub weight: f64,
}

/// Returns the calibration curve of `class` against all other classes, from the lowest bin up.
pub fn curve(rows: &Predictions<'_>, class: usize, bins: Bins) -> Result<Vec<Bin>, Undefined> {
    let events = rows.counted().map(|row| Event {
        probability: rows.probability(row, class),
        happened: rows.class(row) == class,
        weight: rows.weight(row),
    });
    if class >= rows.task().classes() {
        return Err(Undefined::Curve { class, bins: bins.count() });
    }
    binned(events.collect(), class, bins)
}

/// Returns the reliability curve of a classifier. It uses the probability of class 1 for a binary task, and
/// the confidence of the predicted class for a multi-class task (Guo et al. 2017, equation 3).
pub fn reliability(rows: &Predictions<'_>, bins: Bins) -> Result<Vec<Bin>, Undefined> {
    match rows.task() {
        Task::Regression | Task::Binary => curve(rows, 1, bins),
        Task::Multiclass { .. } => {
            let event = |row| {
                let class = rows.predicted_class(row);
                Event {
                    probability: rows.probability(row, class),
                    happened: rows.class(row) == class,
                    weight: rows.weight(row),
                }
            };
            binned(rows.counted().map(event).collect(), 0, bins)
        }
    }
}

/// Computes the expected calibration error of the curve [`reliability`]: Σ over bins of (weight / total
/// weight) · |observed − predicted|.
pub fn expected_error(rows: &Predictions<'_>, bins: Bins) -> Result<f64, Undefined> {
    let binned = reliability(rows, bins)?;
    let all: f64 = binned.iter().map(|bin| bin.weight).sum();
    Ok(binned.iter().map(|bin| bin.weight / all * (bin.observed - bin.predicted).abs()).sum())
}

/// Predicted probability of an event and its outcome.
struct Event {
    probability: f64,
    happened: bool,
    weight: f64,
}

impl Bins {
    fn count(self) -> usize {
        match self {
            Self::Uniform(count) | Self::Quantile(count) => count,
        }
    }

    /// Returns the edges between bins.
    fn edges(self, events: &[Event]) -> Vec<f64> {
        let step = 1.0 / self.count() as f64;
        let shares = (1..self.count()).map(|edge| edge as f64 * step);
        match self {
            Self::Uniform(_) => shares.collect(),
            Self::Quantile(_) => {
                let mut sorted: Vec<f64> = events.iter().map(|event| event.probability).collect();
                sorted.sort_by(f64::total_cmp);
                // Converts to per cent and back as scikit-learn does, so that an edge on a tie falls on the
                // same side.
                shares.map(|share| quantile(&sorted, share * 100.0 / 100.0)).collect()
            }
        }
    }
}

fn binned(events: Vec<Event>, class: usize, bins: Bins) -> Result<Vec<Bin>, Undefined> {
    if bins.count() == 0 {
        return Err(Undefined::Curve { class, bins: 0 });
    }
    let edges = bins.edges(&events);
    let mut sums = vec![(0.0, 0.0, 0.0); bins.count()];
    for event in events {
        let bin = edges.partition_point(|edge| *edge < event.probability);
        let (predicted, observed, weight) = &mut sums[bin];
        *predicted += event.weight * event.probability;
        *observed += if event.happened { event.weight } else { 0.0 };
        *weight += event.weight;
    }
    let bin = |(predicted, observed, weight): (f64, f64, f64)| Bin {
        predicted: predicted / weight,
        observed: observed / weight,
        weight,
    };
    Ok(sums.into_iter().filter(|sums| sums.2 > 0.0).map(bin).collect())
}

/// Returns the `share`-quantile of sorted values, by linear interpolation in numpy's order of operations.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * share;
    let below = place.floor();
    let (low, part) = (below as usize, place - below);
    let (a, b) = (sorted[low], sorted[(low + 1).min(sorted.len() - 1)]);
    if part >= 0.5 { b - (b - a) * (1.0 - part) } else { a + (b - a) * part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_curves_without_bins_or_class_and_matches_numpys_quantiles() {
        let rows = Predictions::new(Task::Binary, &[0.0, 1.0], &[0.2, 0.6]).expect("right");
        assert!(curve(&rows, 1, Bins::Uniform(0)).is_err());
        assert!(curve(&rows, 2, Bins::Uniform(3)).is_err());
        let number = Predictions::new(Task::Regression, &[0.0, 1.0], &[0.2, 0.6]).expect("right");
        assert!(curve(&number, 0, Bins::Uniform(3)).is_err());
        let sorted = [1.0, 2.0, 4.0, 8.0];
        // numpy.quantile([1, 2, 4, 8], ...)
        for (share, expect) in [(0.0, 1.0), (0.25, 1.75), (0.5, 3.0), (0.9, 6.8), (1.0, 8.0)] {
            assert!((quantile(&sorted, share) - expect).abs() < 1e-12, "{share}");
        }
    }
}
