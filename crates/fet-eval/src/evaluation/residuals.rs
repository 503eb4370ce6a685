//! The errors of a regression: how large and to which side.

use serde::{Deserialize, Serialize};

use crate::calibration::quantile;
use crate::predictions::Predictions;

/// The number of bins.
const BINS: usize = 30;
/// Outside of these quantiles rows are only counted, so that single ones do not decide the width of the bins.
const ENDS: [f64; 2] = [0.005, 0.995];
/// The quantiles that are told.
const SHARES: [f64; 7] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];

/// How p − y, predicted minus true, is distributed. Quantiles are linear interpolations, as numpy's; weights of rows do not
/// move them, and count in bins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residuals {
    /// Where the first bin begins: the 0.5 % quantile.
    pub lower: f64,
    /// Where the last bin ends: the 99.5 % quantile.
    pub upper: f64,
    /// The weight of the rows of each bin, without weights their number. There are 30 of the same width, each with its lower
    /// edge, the last also with its upper edge; or one, if both ends are the same.
    pub counts: Vec<f64>,
    /// The weight of the rows below the first bin.
    pub below: f64,
    /// The weight of the rows above the last bin.
    pub above: f64,
    /// The quantiles 1, 5, 25, 50, 75, 95 and 99 %.
    pub quantiles: Vec<Quantile>,
}

/// A quantile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// The share of rows that is not above the value, from 0 to 1.
    pub share: f64,
    /// The value.
    pub value: f64,
}

impl Residuals {
    /// The residuals of a regression; nothing if one exceeds the range of numbers.
    pub(super) fn of(rows: &Predictions<'_>) -> Option<Self> {
        let residuals: Vec<(f64, f64)> =
            rows.counted().map(|row| (rows.predicted(row) - rows.truth(row), rows.weight(row))).collect();
        let mut sorted: Vec<f64> = residuals.iter().map(|(residual, _)| *residual).collect();
        sorted.sort_by(f64::total_cmp);
        let [lower, upper] = ENDS.map(|share| quantile(&sorted, share));
        if !(sorted[sorted.len() - 1] - sorted[0]).is_finite() {
            return None;
        }
        let bins = if lower < upper { BINS } else { 1 };
        let (mut counts, mut below, mut above) = (vec![0.0; bins], 0.0, 0.0);
        for (residual, weight) in residuals {
            if residual < lower {
                below += weight;
            } else if residual > upper {
                above += weight;
            } else {
                let place = (residual - lower) / (upper - lower) * bins as f64;
                // One bin has no width: 0/0 is NaN, and as an index 0.
                counts[(place as usize).min(bins - 1)] += weight;
            }
        }
        let quantiles = SHARES.map(|share| Quantile { share, value: quantile(&sorted, share) });
        Some(Self { lower, upper, counts, below, above, quantiles: quantiles.to_vec() })
    }
}
