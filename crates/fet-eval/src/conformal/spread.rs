//! Spread of a regression's residuals near a prediction.

use serde::{Deserialize, Serialize};

use super::rank;

/// Minimum number of rows of a bin with a quantile: the standard error of the 90 % quantile of |normal
/// residuals| is then 13 % of it.
const LEAST_BIN: usize = 50;
/// Minimum expected number of rows of a bin with a residual above its quantile.
const LEAST_ABOVE: f64 = 5.0;
/// Minimum number of bins with quantiles. Fewer rows have bins with means.
const LEAST_QUANTILES: usize = 4;
/// Minimum number of rows of a bin with a mean: the standard error of the mean of |normal residuals| is then
/// 17 % of it.
const LEAST_BIN_OF_MEANS: usize = 20;
/// Minimum number of bins with means. Fewer bins miss a spread with its minimum in the middle.
const LEAST_MEANS: usize = 3;
/// Maximum number of bins.
const MOST_BINS: usize = 20;
/// Maximum ratio between the spread at an end and in the bin next to it.
const MOST_RATIO: f64 = 2.0;
/// Minimum spread, as a share of the mean over the bins. A score stays finite if all residuals of a bin are 0.
const FLOOR: f64 = 0.05;

/// Spread σ of the residuals as a function of the prediction.
///
/// The rows are cut into bins of equal size by prediction. σ of a bin is the (1 − α)-quantile of |y − p|, at
/// its median prediction; if the rows are too few for four quantiles, it is the mean of |y − p|. Between these points σ is linear. At the least and the greatest prediction σ follows
/// from the line through the nearest two points, within a factor of 2 of the nearest one. Beyond them it is
/// constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Pairs of prediction and σ, by ascending prediction.
    points: Vec<[f64; 2]>,
}

impl Spread {
    /// Fits σ to pairs of prediction and |y − p|. Returns `None` if there are too few rows, or if the
    /// predictions or residuals do not differ.
    pub(super) fn fit(mut pairs: Vec<[f64; 2]>, alpha: f64) -> Option<Self> {
        let of_quantiles = LEAST_BIN.max((LEAST_ABOVE / alpha).ceil() as usize);
        let has_quantiles = pairs.len() / of_quantiles >= LEAST_QUANTILES;
        let least = if has_quantiles { of_quantiles } else { LEAST_BIN_OF_MEANS };
        let bins = (pairs.len() / least).min(MOST_BINS);
        if bins < LEAST_MEANS {
            return None;
        }
        pairs.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
        let mut inner: Vec<[f64; 2]> = Vec::new();
        let mut start = 0;
        for bin in 1..=bins {
            let end = bin * pairs.len() / bins;
            // Rows with equal predictions share a bin.
            let same = pairs[end..].iter().take_while(|pair| pair[0] == pairs[end - 1][0]).count();
            if end + same - start < least {
                continue;
            }
            let bin = &pairs[start..end + same];
            let spread = if has_quantiles { quantile(bin, alpha)? } else { mean(bin) };
            inner.push([bin[bin.len() / 2][0], spread]);
            start = end + same;
        }
        let [first, last] = [pairs.first()?[0], pairs.last()?[0]];
        let mean = mean(&inner);
        if inner.len() < 2 || mean <= 0.0 || !mean.is_finite() {
            return None;
        }
        let lower = beyond(inner[0], inner[1], first);
        let upper = beyond(inner[inner.len() - 1], inner[inner.len() - 2], last);
        let mut points: Vec<[f64; 2]> = [lower].into_iter().chain(inner).chain([upper]).collect();
        points.dedup_by(|later, earlier| later[0] <= earlier[0]);
        points.iter_mut().for_each(|point| point[1] = point[1].max(FLOOR * mean));
        Some(Self { points })
    }

    /// Returns true if every σ is positive and finite, and the predictions ascend.
    pub(super) fn is_valid(&self) -> bool {
        let is_point = |point: &[f64; 2]| point[0].is_finite() && point[1].is_finite() && point[1] > 0.0;
        !self.points.is_empty()
            && self.points.iter().all(is_point)
            && self.points.windows(2).all(|two| two[0][0] < two[1][0])
    }

    /// Returns σ at a prediction, in the label's unit.
    pub fn at(&self, predicted: f64) -> f64 {
        let right = self.points.partition_point(|point| point[0] < predicted);
        match (right.checked_sub(1).and_then(|left| self.points.get(left)), self.points.get(right)) {
            (Some(left), Some(right)) => {
                left[1] + (right[1] - left[1]) * (predicted - left[0]) / (right[0] - left[0])
            }
            (Some(end), None) | (None, Some(end)) => end[1],
            (None, None) => 1.0,
        }
    }
}

/// Returns the (1 − α)-quantile of a bin's residuals.
fn quantile(bin: &[[f64; 2]], alpha: f64) -> Option<f64> {
    let mut residuals: Vec<f64> = bin.iter().map(|pair| pair[1]).collect();
    residuals.sort_by(f64::total_cmp);
    Some(residuals[rank(bin.len(), alpha)? - 1])
}

/// Returns the mean of a bin's residuals.
fn mean(bin: &[[f64; 2]]) -> f64 {
    bin.iter().map(|pair| pair[1]).sum::<f64>() / bin.len() as f64
}

/// Returns the point at the end of the predictions, on the line through the nearest two points.
fn beyond(nearest: [f64; 2], next: [f64; 2], end: f64) -> [f64; 2] {
    let slope = (nearest[1] - next[1]) / (nearest[0] - next[0]);
    let value = nearest[1] + slope * (end - nearest[0]);
    [end, value.clamp(nearest[1] / MOST_RATIO, nearest[1] * MOST_RATIO)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals of ±(1 + p) times an evenly spaced share of 1: the 90 % quantile is 0.9 (1 + p).
    #[test]
    fn follows_the_residuals_up_to_the_ends() {
        let pairs: Vec<[f64; 2]> = (0..4000)
            .map(|row| {
                let p = f64::from(row) / 400.0;
                [p, (1.0 + p) * f64::from(row * 37 % 100) / 100.0]
            })
            .collect();
        let spread = Spread::fit(pairs, 0.1).expect("enough rows");
        for p in [0.0, 0.1, 0.25, 2.0, 5.0, 9.9] {
            let expect = 0.9 * (1.0 + p);
            assert!((spread.at(p) / expect - 1.0).abs() < 0.05, "{p}: {} for {expect}", spread.at(p));
        }
        assert_eq!((spread.at(-9.0), spread.at(99.0)), (spread.at(0.0), spread.at(9.9975)));
    }

    /// The same residuals in fewer rows: their mean is 0.495 (1 + p).
    #[test]
    fn follows_the_means_of_few_residuals() {
        for rows in [60, 146, 199] {
            let pairs: Vec<[f64; 2]> = (0..rows)
                .map(|row| {
                    let p = f64::from(row) * 10.0 / f64::from(rows);
                    [p, (1.0 + p) * f64::from(row * 37 % 100) / 100.0]
                })
                .collect();
            let spread = Spread::fit(pairs, 0.1).expect("enough rows");
            let [low, high] = [spread.at(1.0), spread.at(9.0)];
            assert!((3.0..8.0).contains(&(high / low)), "{rows} rows: {low} {high}, a ratio of 5");
        }
    }

    #[test]
    fn is_absent_without_enough_different_rows() {
        let pairs = |rows: usize, value: &dyn Fn(usize) -> [f64; 2]| (0..rows).map(value).collect::<Vec<_>>();
        let usual = |row: usize| [row as f64, (row % 7) as f64];
        assert!(Spread::fit(pairs(59, &usual), 0.1).is_none());
        assert!(Spread::fit(pairs(60, &usual), 0.1).is_some());
        assert!(Spread::fit(pairs(400, &|row| [1.0, (row % 7) as f64]), 0.1).is_none(), "one prediction");
        assert!(Spread::fit(pairs(400, &|row| [row as f64, 0.0]), 0.1).is_none(), "no residual");
    }

    #[test]
    fn stays_positive_and_serves_repeated_predictions() {
        // Predictions 0, 1 and 2; the residuals at 0 are all 0.
        let pairs: Vec<[f64; 2]> = (0..600).map(|row| [(row % 3) as f64, (row % 3) as f64]).collect();
        let spread = Spread::fit(pairs, 0.1).expect("enough rows");
        assert!(spread.at(0.0) > 0.0 && spread.at(0.0) < 0.1, "{spread:?}");
        assert_eq!((spread.at(1.0), spread.at(2.0)), (1.0, 2.0), "{spread:?}");
    }
}
