//! Numbers: filled in if missing, clipped and scaled.

use serde::{Deserialize, Serialize};

use super::range::FittedRange;
use super::rules::Scaling;

/// Clipping quantiles of robust scaling.
const QUANTILES: [f64; 2] = [0.01, 0.99];

/// Preparation of a column of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    /// Value that is scaled to 0 and replaces missing numbers, in the column's unit.
    center: f64,
    /// Divisor of the numbers; 0 means no scaling.
    scale: f64,
    /// Clipping quantiles, if any.
    quantiles: Option<[f64; 2]>,
    /// Range of the fitted values, or the declared range.
    range: FittedRange,
}

impl Numbers {
    /// Fits the preparation to these numbers. There must be at least one number, and none may be missing.
    pub(super) fn fit(mut values: Vec<f64>, scaling: Scaling) -> Self {
        let range = FittedRange::fit(values.iter().copied());
        let mut quantiles = None;
        if scaling == Scaling::Robust {
            values.sort_by(f64::total_cmp);
            let [low, high] = QUANTILES.map(|share| quantile(&values, share));
            // If most values are equal, the quantiles coincide and no value is clipped.
            if low < high {
                quantiles = Some([low, high]);
                values.iter_mut().for_each(|value| *value = value.clamp(low, high));
            }
        }
        let count = values.len().max(1) as f64;
        // Subtract the first value, so that large numbers with small differences keep their digits.
        let origin = values.first().copied().unwrap_or(0.0);
        let mean = values.iter().map(|value| value - origin).sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - origin - mean).powi(2)).sum::<f64>() / count;
        let center = origin + mean;
        match scaling {
            // The mean still replaces a missing number.
            Scaling::None => Self { center, scale: 0.0, quantiles: None, range },
            _ => {
                let deviation = variance.sqrt();
                let varies = deviation > 1e-12 * center.abs().max(f64::MIN_POSITIVE);
                Self { center, scale: if varies { deviation } else { 1.0 }, quantiles, range }
            }
        }
    }

    /// Creates the preparation from a declared range.
    pub(super) fn within([low, high]: [f64; 2]) -> Self {
        Self {
            center: 0.5 * (low + high),
            scale: (high - low) / 12f64.sqrt(),
            quantiles: None,
            range: FittedRange::declared([low, high]),
        }
    }

    /// Returns the range of the fitted values, or the declared range.
    pub(super) fn range(&self) -> &FittedRange {
        &self.range
    }

    /// Returns a number as the model sees it: 0 if all fitted numbers are equal.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        if self.range.is_constant() {
            return 0.0;
        }
        let value = if value.is_nan() { self.center } else { value };
        let value = self.quantiles.map_or(self.range.clamp(value), |[low, high]| value.max(low).min(high));
        // A scale of 0 means no scaling.
        if self.scale == 0.0 { value } else { (value - self.center) / self.scale }
    }
}

/// Returns the quantile of sorted values, with linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
