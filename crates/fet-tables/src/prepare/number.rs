//! Numbers: filled in where missing, clipped, scaled.

use serde::{Deserialize, Serialize};

use super::Scaling;

/// The quantiles that robust scaling clips to.
const QUANTILES: [f64; 2] = [0.01, 0.99];

/// A column of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Numbers {
    /// What stands for a missing number, in the column's own unit: it is scaled to 0.
    center: f64,
    scale: f64,
    /// Values are clipped to these, if there are any.
    limits: Option<[f64; 2]>,
}

impl Numbers {
    /// By the statistics of these numbers, of which there is at least one; none is missing.
    pub(super) fn fit(mut values: Vec<f64>, scaling: Scaling) -> Self {
        let mut limits = None;
        if scaling == Scaling::Robust {
            values.sort_by(f64::total_cmp);
            let [low, high] = QUANTILES.map(|share| quantile(&values, share));
            // Most values are the same: there is nothing to clip to.
            if low < high {
                limits = Some([low, high]);
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
            Scaling::None => Self { center, scale: 0.0, limits: None },
            _ => {
                let deviation = variance.sqrt();
                let varies = deviation > 1e-12 * center.abs().max(f64::MIN_POSITIVE);
                Self { center, scale: if varies { deviation } else { 1.0 }, limits }
            }
        }
    }

    /// By a declared range.
    pub(super) fn within([low, high]: [f64; 2]) -> Self {
        Self { center: 0.5 * (low + high), scale: (high - low) / 12f64.sqrt(), limits: Some([low, high]) }
    }

    /// A number as the model sees it.
    pub(super) fn scaled(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.center } else { value };
        let value = self.limits.map_or(value, |[low, high]| value.clamp(low, high));
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
