//! The values that a reader derives from a release. All of this is post-processing.
//!
//! 1. Consistency: weighted least squares over the levels, so that the cells of a level add up to the cell
//!    around them (Hay, Rastogi, Miklau, Suciu 2010).
//! 2. Shrinkage: the mean of a cell moves towards the mean of the cell around it, by the ratio of signal and
//!    noise. The variances of both levels' means and of single records come from the release itself, as those
//!    of the largest likelihood.

use super::design::{Design, UNIT};
use super::pyramid::Pyramid;

/// Values of each cell of the finest level.
#[derive(Debug, Clone, PartialEq)]
pub struct Surface {
    pyramid: Pyramid,
    cells: Vec<Estimate>,
}

/// Values of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Number of records, at least 0.
    pub count: f64,
    /// Mean of each column, in [−1, 1], and the standard deviation of its error.
    pub means: Vec<[f64; 2]>,
}

/// One coordinate of the totals in units of one record, level by level.
type Levels = Vec<Vec<f64>>;

impl Surface {
    /// Reads a release of this design; returns `None` if it has another number of integers.
    pub fn new(design: &Design, released: &[i64]) -> Option<Self> {
        if released.len() != design.len() {
            return None;
        }
        let pyramid = design.pyramid().clone();
        let weights: Vec<f64> = std::iter::once(UNIT as f64)
            .chain(std::iter::repeat_n(design.weight(), design.columns()))
            .collect();
        let mut coordinates = weights.iter().enumerate().map(|(coordinate, weight)| {
            consistent(&pyramid, level_by_level(&pyramid, released, [coordinate, weights.len()], *weight))
        });
        let counts = coordinates.next().expect("a release has counts");
        let rest = variances(&pyramid);
        // Variances of counts and of sums at each level.
        let noise = |weight: f64| -> Vec<f64> {
            rest.iter().map(|factor| factor * (design.deviation() / weight).powi(2)).collect()
        };
        let of_counts = noise(UNIT as f64);
        let means: Vec<Vec<[f64; 2]>> = coordinates
            .map(|sums| shrunk(&pyramid, [&counts, &sums], [&of_counts, &noise(design.weight())]))
            .collect();
        let finest = counts.last().expect("a pyramid has a level");
        let cells = (0..finest.len()).map(|cell| Estimate {
            count: finest[cell].max(0.0),
            means: means.iter().map(|column| column[cell]).collect(),
        });
        let cells = cells.collect();
        Some(Self { pyramid, cells })
    }

    /// Returns the values of the cell that is nearest to a key.
    pub fn at(&self, key: &[f64]) -> &Estimate {
        &self.cells[self.pyramid.nearest(key)]
    }
}

/// Returns one coordinate of a release, `place` of `width`, in units of `weight`.
fn level_by_level(pyramid: &Pyramid, released: &[i64], [place, width]: [usize; 2], weight: f64) -> Levels {
    let mut values = released.iter().skip(place).step_by(width).map(|&value| value as f64 / weight);
    (0..pyramid.levels()).map(|level| values.by_ref().take(pyramid.cells(level)).collect()).collect()
}

/// Returns each level's sums of the cells of the next level.
fn sums_of_children(pyramid: &Pyramid, level: usize, children: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; pyramid.cells(level)];
    children.iter().enumerate().for_each(|(cell, value)| sums[pyramid.parent(level + 1, cell)] += value);
    sums
}

/// Variance of each level after its own value and the sum of the next level are averaged, from the coarsest;
/// in units of the noise of one value.
fn averaged_variances(pyramid: &Pyramid) -> Vec<f64> {
    let mut variances = vec![1.0];
    for _ in 1..pyramid.levels() {
        let below = pyramid.children() as f64 * variances[variances.len() - 1];
        variances.push(1.0 / (1.0 + 1.0 / below));
    }
    variances.reverse();
    variances
}

/// Variance of each level's consistent values, from the coarsest, in units of the noise of one value.
fn variances(pyramid: &Pyramid) -> Vec<f64> {
    let (averaged, children) = (averaged_variances(pyramid), pyramid.children() as f64);
    let mut variances = vec![averaged[0]];
    for own in &averaged[1..] {
        // The difference from the mean of the siblings does not depend on their sum.
        let before = variances[variances.len() - 1];
        variances.push(own * (1.0 - 1.0 / children) + before / (children * children));
    }
    variances
}

/// Returns the values of least squares among those whose cells add up to the cell around them.
fn consistent(pyramid: &Pyramid, mut values: Levels) -> Levels {
    let (averaged, children) = (averaged_variances(pyramid), pyramid.children() as f64);
    for level in (0..pyramid.levels() - 1).rev() {
        let sums = sums_of_children(pyramid, level, &values[level + 1]);
        let own = 1.0 / (1.0 + 1.0 / (children * averaged[level + 1]));
        // The weight of the own value is the inverse of its variance, 1, over both inverses.
        values[level].iter_mut().zip(sums).for_each(|(value, sum)| *value = own * *value + (1.0 - own) * sum);
    }
    for level in 1..pyramid.levels() {
        let sums = sums_of_children(pyramid, level - 1, &values[level]);
        let (before, from) = values.split_at_mut(level);
        for (cell, value) in from[0].iter_mut().enumerate() {
            let parent = pyramid.parent(level, cell);
            *value += (before[level - 1][parent] - sums[parent]) / children;
        }
    }
    values
}

/// Variances that the shrinkage of a level uses.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    /// Variance of the cells' means around the means of the cells around them.
    means: f64,
    /// Variance of a record around the mean of its cell.
    records: f64,
}

/// Returns the mean and the deviation of its error for each cell of the finest level.
fn shrunk(
    pyramid: &Pyramid,
    [counts, sums]: [&Levels; 2],
    [of_counts, of_sums]: [&[f64]; 2],
) -> Vec<[f64; 2]> {
    let whole: f64 = counts[0].iter().sum();
    let cells = counts[0].len() as f64;
    // Without records the mean is the middle of the range.
    let known = whole * whole > 9.0 * cells * of_counts[0];
    let mean = if known { (sums[0].iter().sum::<f64>() / whole).clamp(-1.0, 1.0) } else { 0.0 };
    // A mean that nothing shows is uniform on [−1, 1]. The values of records have a variance of at most 1 − mean².
    let noise = cells * (of_sums[0] + mean * mean * of_counts[0]);
    let error = if known { (noise + whole * (1.0 - mean * mean)) / (whole * whole) } else { 1.0 / 3.0 };
    let mut before = vec![[mean, error.min(1.0 / 3.0).sqrt()]];
    for level in 0..pyramid.levels() {
        let around = |cell: usize| if level == 0 { before[0] } else { before[pyramid.parent(level, cell)] };
        let cells: Vec<Observed> = (0..pyramid.cells(level))
            .map(|cell| {
                let [mean, deviation] = around(cell);
                Observed {
                    around: [mean, deviation],
                    records: counts[level][cell].max(0.0),
                    difference: sums[level][cell] - mean * counts[level][cell],
                    noise: of_sums[level] + mean * mean * of_counts[level],
                }
            })
            .collect();
        let spread = likeliest(&cells);
        before = cells.iter().map(|cell| cell.mean(spread)).collect();
    }
    before
}

/// A cell of one level, as the release shows it.
struct Observed {
    /// Mean of the cell around it, and its deviation.
    around: [f64; 2],
    records: f64,
    /// Sum of the records' differences from `around`.
    difference: f64,
    /// Variance of the noise in `difference`.
    noise: f64,
}

impl Observed {
    /// Returns the variance of `difference` without and with the spread of the means.
    fn variances(&self, spread: Spread) -> [f64; 2] {
        let rest = self.noise + spread.records * self.records;
        [rest, rest + spread.means * self.records * self.records]
    }

    fn mean(&self, spread: Spread) -> [f64; 2] {
        let [rest, whole] = self.variances(spread);
        let gain = spread.means * self.records / whole;
        let [mean, deviation] = self.around;
        // The share of the cell's own mean, in place of that of the cell around it.
        let share = gain * self.records;
        let error = spread.means * rest / whole + ((1.0 - share) * deviation).powi(2);
        [(mean + gain * self.difference).clamp(-1.0, 1.0), error.sqrt()]
    }
}

/// Returns the spread of the largest likelihood, on a grid of powers of 4.
fn likeliest(cells: &[Observed]) -> Spread {
    let steps = |count: i32| std::iter::once(0.0).chain((0..count).map(|power| 0.25f64.powi(power)));
    let mut best = (Spread { means: 0.0, records: 0.0 }, f64::NEG_INFINITY);
    for means in steps(10) {
        for records in steps(8) {
            let spread = Spread { means, records };
            let of_cell = |cell: &Observed| {
                let [_, variance] = cell.variances(spread);
                -variance.ln() - cell.difference * cell.difference / variance
            };
            let likelihood = cells.iter().map(of_cell).sum::<f64>();
            if likelihood > best.1 {
                best = (spread, likelihood);
            }
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pyramid() -> Pyramid {
        Pyramid::new(&[[0.0, 1.0], [0.0, 1.0]], 2, 8).expect("valid")
    }

    /// Consistent values add up, and no consistent change of them comes closer to the given values: the
    /// residual is orthogonal to each change of one finest cell and the cells around it.
    #[test]
    fn consistent_values_are_those_of_least_squares() {
        let pyramid = pyramid();
        let given: Levels = (0..3)
            .map(|level| (0..pyramid.cells(level)).map(|cell| ((cell * 7 + level * 3) % 11) as f64).collect())
            .collect();
        let found = consistent(&pyramid, given.clone());
        for level in 0..2 {
            let sums = sums_of_children(&pyramid, level, &found[level + 1]);
            assert!(sums.iter().zip(&found[level]).all(|(sum, value)| (sum - value).abs() < 1e-9), "{level}");
        }
        for cell in 0..64 {
            let (mut place, mut product) = (cell, 0.0);
            for level in (0..3).rev() {
                product += given[level][place] - found[level][place];
                if level > 0 {
                    place = pyramid.parent(level, place);
                }
            }
            assert!(product.abs() < 1e-9, "{cell}: {product}");
        }
    }

    /// The stated variance is that of the linear map, computed coordinate by coordinate.
    #[test]
    fn the_variance_of_consistent_values_is_stated() {
        let pyramid = pyramid();
        let zeros = || -> Levels { (0..3).map(|level| vec![0.0; pyramid.cells(level)]).collect() };
        let mut found = [0.0; 3];
        for level in 0..3 {
            for cell in 0..pyramid.cells(level) {
                let mut unit = zeros();
                unit[level][cell] = 1.0;
                let answer = consistent(&pyramid, unit);
                (0..3).for_each(|of| found[of] += answer[of][0].powi(2));
            }
        }
        for (found, stated) in found.iter().zip(variances(&pyramid)) {
            assert!((found - stated).abs() < 1e-12, "{found} {stated}");
        }
    }

    #[test]
    fn a_cell_without_records_takes_the_mean_around_it() {
        let cell =
            |records: f64, difference: f64| Observed { around: [0.5, 0.1], records, difference, noise: 4.0 };
        let spread = Spread { means: 0.04, records: 0.0 };
        assert_eq!(cell(0.0, 3.0).mean(spread)[0], 0.5);
        // Without noise worth mentioning the cell's own mean remains: 0.5 − 200/1000.
        let [mean, deviation] = cell(1000.0, -200.0).mean(spread);
        assert!((mean - 0.3).abs() < 1e-3 && deviation < 0.01, "{mean} {deviation}");
        // The error of a mean that moves half of the way lies between those of both ends.
        let [mean, deviation] = cell(10.0, -2.0).mean(spread);
        assert!((mean - 0.4).abs() < 1e-9 && (0.1..0.2).contains(&deviation), "{mean} {deviation}");
    }
}
