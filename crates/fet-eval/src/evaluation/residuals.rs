//! Residuals of a regression.

use serde::{Deserialize, Serialize};

use crate::calibration::quantile;
use crate::predictions::Predictions;

/// The number of bins.
const BINS: usize = 30;
/// Quantiles at the ends of the histogram. Rows beyond them are only counted, so that single rows do not
/// determine the width of the bins.
const ENDS: [f64; 2] = [0.005, 0.995];
/// Reported quantiles.
const SHARES: [f64; 7] = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];

/// Distribution of the residual p − y, predicted minus true. Quantiles are linear interpolations, as in
/// numpy. Weights of rows count in bins but not in quantiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residuals {
    /// Weighted mean: the bias of the predictions.
    pub mean: f64,
    /// Weighted standard deviation; 0 for one row.
    pub deviation: f64,
    /// Lower edge of the first bin: the 0.5 % quantile.
    pub lower: f64,
    /// Upper edge of the last bin: the 99.5 % quantile.
    pub upper: f64,
    /// Total weight of the rows of each bin, or their number if the rows have no weights. The 30 bins have
    /// equal width and include their lower edge; the last bin includes its upper edge. If both ends are
    /// equal, there is one bin.
    pub counts: Vec<f64>,
    /// Weight of the rows below the first bin.
    pub below: f64,
    /// Weight of the rows above the last bin.
    pub above: f64,
    /// Quantiles 1, 5, 25, 50, 75, 95 and 99 %.
    pub quantiles: Vec<Quantile>,
}

/// Quantile of the residuals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// Share of rows at or below the value, from 0 to 1.
    pub share: f64,
    /// Residual at this quantile.
    pub value: f64,
}

impl Residuals {
    /// Returns the residuals of a regression, or `None` if a residual exceeds the range of `f64`.
    pub(super) fn from_predictions(rows: &Predictions<'_>) -> Option<Self> {
        let residuals: Vec<(f64, f64)> =
            rows.counted().map(|row| (rows.predicted(row) - rows.truth(row), rows.weight(row))).collect();
        let mut sorted: Vec<f64> = residuals.iter().map(|(residual, _)| *residual).collect();
        sorted.sort_by(f64::total_cmp);
        let [lower, upper] = ENDS.map(|share| quantile(&sorted, share));
        if !(sorted[sorted.len() - 1] - sorted[0]).is_finite() {
            return None;
        }
        let weights: f64 = residuals.iter().map(|(_, weight)| weight).sum();
        let mean = residuals.iter().map(|(residual, weight)| residual * weight).sum::<f64>() / weights;
        let square = |(residual, weight): &(f64, f64)| (residual - mean).powi(2) * weight;
        let deviation = (residuals.iter().map(square).sum::<f64>() / weights).sqrt();
        if !(mean.is_finite() && deviation.is_finite()) {
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
                // A single bin has width 0: 0/0 is NaN, and NaN as an index is 0.
                counts[(place as usize).min(bins - 1)] += weight;
            }
        }
        let quantiles = SHARES.map(|share| Quantile { share, value: quantile(&sorted, share) });
        Some(Self { mean, deviation, lower, upper, counts, below, above, quantiles: quantiles.to_vec() })
    }
}
