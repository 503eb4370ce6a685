//! Numbers: filled in where missing, clipped, scaled.

use serde::{Deserialize, Serialize};

use super::{FittedRange, Scaling};

/// The quantiles that robust scaling clips to.
const QUANTILES: [f64; 2] = [0.01, 0.99];

/// A column of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    /// Replaces a missing number, in the column's own unit: it is scaled to 0.
    center: f64,
    /// Numbers are divided by it; 0 leaves them as they are.
    scale: f64,
    /// The quantiles that values are clipped to, if they are.
    quantiles: Option<[f64; 2]>,
    /// The range of the fitted values, or the declared one.
    range: FittedRange,
}

impl Numbers {
    /// By the statistics of these numbers, of which there is at least one; none is missing.
    pub(super) fn fit(mut values: Vec<f64>, scaling: Scaling) -> Self {
        let range = FittedRange::fit(values.iter().copied());
        let mut quantiles = None;
        if scaling == Scaling::Robust {
            values.sort_by(f64::total_cmp);
            let [low, high] = QUANTILES.map(|share| quantile(&values, share));
            // Most values are the same: there is nothing to clip to.
            if low < high {
                quantiles = Some([low, high]);
                values.iter_mut().for_each(|value| *value = value.clamp(low, high));
            }
        }
        let count = values.len().max(1) as f64;
        // From the first value on, so that large numbers that differ little keep their digits.
        let origin = values.first().copied().unwrap_or(0.0);
        let mean = values.iter().map(|value| value - origin).sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - origin - mean).powi(2)).sum::<f64>() / count;
        let center = origin + mean;
        match scaling {
            // A missing number is still filled in by the mean.
            Scaling::None => Self { center, scale: 0.0, quantiles: None, range },
            _ => {
                let deviation = variance.sqrt();
                let varies = deviation > 1e-12 * center.abs().max(f64::MIN_POSITIVE);
                Self { center, scale: if varies { deviation } else { 1.0 }, quantiles, range }
            }
        }
    }

    /// By a declared range.
    pub(super) fn within([low, high]: [f64; 2]) -> Self {
        Self {
            center: 0.5 * (low + high),
            scale: (high - low) / 12f64.sqrt(),
            quantiles: None,
            range: FittedRange::declared([low, high]),
        }
    }

    /// The range of the fitted values, or the declared one.
    pub(super) fn range(&self) -> &FittedRange {
        &self.range
    }

    /// A number as the model sees it: 0 where all fitted numbers are the same.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        if self.range.is_constant() {
            return 0.0;
        }
        let value = if value.is_nan() { self.center } else { value };
        let value = self.quantiles.map_or(self.range.clamp(value), |[low, high]| value.max(low).min(high));
        // A scale of 0 leaves numbers as they are.
        if self.scale == 0.0 { value } else { (value - self.center) / self.scale }
    }
}

/// The quantile of sorted values, between neighbours by their distance.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}
