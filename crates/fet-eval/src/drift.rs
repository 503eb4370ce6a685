//! Comparison of new values with a summary of earlier values, by two-sample statistics.
//!
//! - **Numbers**: the Kolmogorov–Smirnov distance, the maximum difference between the two distribution
//!   functions. The summary stores its distribution function at 100 values or fewer, and the maximum is over these
//!   values. A missing cell counts as less than every number.
//! - **Categories**: the total variation distance, half the sum of the differences between the shares. A
//!   χ²-test of homogeneity gives the p-value, with rare categories pooled until every expected count is at
//!   least 5 (Cochran 1954).
//!
//! Both distances are the share of rows that must change for equal distributions, from 0 to 1. A row of a
//! sample of m changes them by at most 1/m. By McDiarmid's inequality a distance is therefore within ±√(ln 40 /
//! 2 · (1/n + 1/m)) of its mean with probability 95 %. That is [`Shift::margin`].
//!
//! [`moved`] selects the columns with a distance of at least [`LEAST`] that is significant after Holm's
//! correction over all columns: many rows make every small difference significant, and few rows make large
//! distances by chance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Minimum distance of a column that has moved.
pub const LEAST: f64 = 0.1;
/// Probability that some column of like rows counts as moved, at most.
pub const ALPHA: f64 = 0.01;
/// Maximum number of stored values of a distribution function.
const STEPS: usize = 100;
/// Maximum number of stored categories.
const CATEGORIES: usize = 200;
/// Minimum expected count of a χ²-test.
const EXPECTED: f64 = 5.0;

/// Summary of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Summary {
    /// Numbers.
    Numbers {
        /// Number of rows.
        rows: usize,
        /// Number of rows without a number.
        missing: usize,
        /// Pairs of a value and the share of rows at or below it, by ascending value. Rows without a number
        /// count as below.
        steps: Vec<[f64; 2]>,
    },
    /// Categories.
    Categories {
        /// Number of rows.
        rows: usize,
        /// Number of rows of the most frequent categories by name. The empty name is that of missing cells.
        counts: BTreeMap<String, usize>,
    },
}

/// Values of a column to compare.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells<'a> {
    /// Numbers; NaN for a missing cell.
    Numbers(Vec<f64>),
    /// Categories; an empty name for a missing cell.
    Categories(Vec<&'a str>),
}

/// Distance of new values from a summary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// The distance, from 0 to 1.
    pub distance: f64,
    /// Half of the width of the distance's 95 % interval.
    pub margin: f64,
    /// Probability of such a distance if the rows are like the summarised ones.
    pub p_value: f64,
    /// Median of the summarised and of the new numbers; `None` for categories, or without numbers.
    pub medians: Option<[f64; 2]>,
}

impl Summary {
    /// Summarises a column.
    pub fn new(cells: &Cells<'_>) -> Self {
        match cells {
            Cells::Numbers(values) => {
                let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
                sorted.sort_by(f64::total_cmp);
                let mut distinct = sorted.clone();
                distinct.dedup();
                if distinct.len() > STEPS {
                    distinct = (1..=STEPS).map(|step| sorted[step * sorted.len() / STEPS - 1]).collect();
                    distinct.dedup();
                }
                let missing = values.len() - sorted.len();
                let step = |value: f64| [value, below(&sorted, missing, value)];
                Self::Numbers { rows: values.len(), missing, steps: distinct.into_iter().map(step).collect() }
            }
            Cells::Categories(names) => {
                let mut all: Vec<(&str, usize)> = counted(names).into_iter().collect();
                all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                all.truncate(CATEGORIES);
                let counts = all.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
                Self::Categories { rows: names.len(), counts }
            }
        }
    }

    /// Returns the distance of new values. `None` if either side has no rows, or another kind.
    pub fn compare(&self, cells: &Cells<'_>) -> Option<Shift> {
        match (self, cells) {
            (Self::Numbers { rows, missing, steps }, Cells::Numbers(values)) => {
                let margin = margin(*rows, values.len())?;
                let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
                sorted.sort_by(f64::total_cmp);
                let lacking = values.len() - sorted.len();
                let share = |missing: usize, rows: usize| missing as f64 / rows as f64;
                let first = (share(*missing, *rows) - share(lacking, values.len())).abs();
                let apart = |[value, share]: &[f64; 2]| (share - below(&sorted, lacking, *value)).abs();
                let distance = steps.iter().map(apart).fold(first, f64::max);
                let medians =
                    median(steps, share(*missing, *rows)).zip(sorted.get(sorted.len() / 2).copied());
                let p_value = kolmogorov(distance, *rows, values.len());
                Some(Shift { distance, margin, p_value, medians: medians.map(|(was, is)| [was, is]) })
            }
            (Self::Categories { rows, counts }, Cells::Categories(names)) => {
                let margin = margin(*rows, names.len())?;
                let found = counted(names);
                let known = |name: &str| counts.contains_key(name);
                let other: usize =
                    found.iter().filter(|(name, _)| !known(name)).map(|(_, count)| count).sum();
                let mut pairs: Vec<[usize; 2]> = counts
                    .iter()
                    .map(|(name, count)| [*count, found.get(name.as_str()).copied().unwrap_or(0)])
                    .collect();
                pairs.push([rows - pairs.iter().map(|pair| pair[0]).sum::<usize>().min(*rows), other]);
                let apart = |[was, is]: &[usize; 2]| {
                    (*was as f64 / *rows as f64 - *is as f64 / names.len() as f64).abs() / 2.0
                };
                let distance = pairs.iter().map(apart).sum();
                let p_value = homogeneity(pairs, [*rows, names.len()]);
                Some(Shift { distance, margin, p_value, medians: None })
            }
            _ => None,
        }
    }
}

/// Returns the places of the columns that have moved, by descending distance.
pub fn moved(shifts: &[Shift]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..shifts.len()).collect();
    order.sort_by(|&a, &b| shifts[a].p_value.total_cmp(&shifts[b].p_value));
    let significant =
        |(at, place): &(usize, usize)| shifts[*place].p_value <= ALPHA / (order.len() - at) as f64;
    let mut found: Vec<usize> =
        order.iter().copied().enumerate().take_while(significant).map(|(_, place)| place).collect();
    found.retain(|&place| shifts[place].distance >= LEAST);
    found.sort_by(|&a, &b| shifts[b].distance.total_cmp(&shifts[a].distance));
    found
}

fn counted<'a>(names: &[&'a str]) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    names.iter().for_each(|name| *counts.entry(*name).or_insert(0) += 1);
    counts
}

/// Returns the share of rows at or below a value, with missing cells below all values.
fn below(sorted: &[f64], missing: usize, value: f64) -> f64 {
    let count = missing + sorted.partition_point(|other| *other <= value);
    count as f64 / (missing + sorted.len()) as f64
}

/// Returns the median of the rows that have a number.
fn median(steps: &[[f64; 2]], missing: f64) -> Option<f64> {
    let half = missing + (1.0 - missing) / 2.0;
    steps.iter().find(|[_, share]| *share >= half).map(|[value, _]| *value)
}

fn margin(rows: usize, new: usize) -> Option<f64> {
    let spread = 1.0 / rows as f64 + 1.0 / new as f64;
    (rows > 0 && new > 0).then(|| (40f64.ln() / 2.0 * spread).sqrt())
}

/// Returns the asymptotic p-value of a Kolmogorov–Smirnov distance, with Stephens' correction for few rows
/// (1970). It is conservative for values that repeat.
fn kolmogorov(distance: f64, rows: usize, new: usize) -> f64 {
    let root = (rows as f64 * new as f64 / (rows as f64 + new as f64)).sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    if scaled < 0.3 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(k * k) * scaled * scaled).exp()
    };
    (1..=50).map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// Returns the p-value of the χ²-test that both samples have the same shares. Categories with low expected
/// counts are pooled.
fn homogeneity(mut pairs: Vec<[usize; 2]>, totals: [usize; 2]) -> f64 {
    let [rows, new] = totals.map(|total| total as f64);
    let expected = |pair: &[usize; 2]| {
        let all = (pair[0] + pair[1]) as f64;
        [all * rows / (rows + new), all * new / (rows + new)]
    };
    let is_small = |pair: &[usize; 2]| expected(pair).iter().any(|count| *count < EXPECTED);
    pairs.sort_by_key(|pair| pair[0] + pair[1]);
    let mut groups: Vec<[usize; 2]> = Vec::new();
    let mut pool = [0, 0];
    for pair in pairs {
        if is_small(&pair) || (pool != [0, 0] && is_small(&pool)) {
            pool = [pool[0] + pair[0], pool[1] + pair[1]];
        } else {
            groups.push(pair);
        }
    }
    if pool != [0, 0] {
        match groups.first_mut() {
            Some(least) if is_small(&pool) => *least = [least[0] + pool[0], least[1] + pool[1]],
            _ => groups.push(pool),
        }
    }
    if groups.len() < 2 {
        return 1.0;
    }
    let of = |pair: &[usize; 2]| {
        let expected = expected(pair);
        (0..2).map(|side| (pair[side] as f64 - expected[side]).powi(2) / expected[side]).sum::<f64>()
    };
    let statistic: f64 = groups.iter().map(of).sum();
    ChiSquared::new((groups.len() - 1) as f64).map_or(1.0, |law| law.sf(statistic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn distances_are_those_of_the_definitions() {
        let summary = Summary::new(&Cells::Numbers(vec![1.0, 2.0, 3.0, 4.0]));
        let shift = summary.compare(&Cells::Numbers(vec![3.0, 4.0, 5.0, 6.0])).expect("rows");
        assert_eq!((shift.distance, shift.medians), (0.5, Some([2.0, 5.0])));
        assert!((shift.margin - (40f64.ln() / 4.0).sqrt()).abs() < 1e-12);
        let missing = summary.compare(&Cells::Numbers(vec![f64::NAN, 2.0, f64::NAN, 4.0])).expect("rows");
        assert_eq!(missing.distance, 0.5);
        let summary = Summary::new(&Cells::Categories(vec!["a", "a", "b", ""]));
        let shift = summary.compare(&Cells::Categories(vec!["a", "b", "c", "c"])).expect("rows");
        assert_eq!(shift.distance, 0.5);
        assert_eq!(summary.compare(&Cells::Numbers(vec![1.0])), None);
        assert_eq!(summary.compare(&Cells::Categories(vec![])), None);
    }

    /// Kolmogorov's distribution exceeds 1.2238 with probability 0.1. The table of counts has χ² = 200 · (50 ·
    /// 30 − 50 · 70)² / (100 · 100 · 120 · 80) = 8.333, which one degree of freedom exceeds with probability
    /// 0.003892.
    #[test]
    fn p_values_equal_those_of_the_distributions() {
        let (rows, root) = (2_000_000, 1000.0);
        let distance = 1.223_848 / (root + 0.12 + 0.11 / root);
        assert!((kolmogorov(distance, rows, rows) - 0.1).abs() < 1e-4);
        assert!((homogeneity(vec![[50, 70], [50, 30]], [100, 100]) - 0.003_892).abs() < 1e-6);
        assert_eq!(homogeneity(vec![[100, 100]], [100, 100]), 1.0);
    }

    fn numbers(rows: usize, shift: f64, rng: &mut ChaCha8Rng) -> Cells<'static> {
        Cells::Numbers((0..rows).map(|_| shift + rng.random_range(0.0..1.0)).collect())
    }

    fn categories(rows: usize, share: f64, rng: &mut ChaCha8Rng) -> Cells<'static> {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let name = |rng: &mut ChaCha8Rng| {
            if rng.random_range(0.0..1.0) < share { "a" } else { names[rng.random_range(0..8usize)] }
        };
        Cells::Categories((0..rows).map(|_| name(rng)).collect())
    }

    /// Twenty columns of like rows count as moved in at most 1 % of 1,000 comparisons; a binomial test at
    /// α = 1e-3 allows 21. The distances of 30 rows exceed the minimum in most comparisons, so that a rule
    /// without a test would fail.
    #[test]
    fn like_rows_rarely_count_as_moved() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for new in [3, 30, 300] {
            let (mut warned, mut far) = (0, 0);
            for _ in 0..1000 {
                let shifts: Vec<Shift> = (0..20)
                    .map(|column| match column % 2 {
                        0 => Summary::new(&numbers(500, 0.0, &mut rng)).compare(&numbers(new, 0.0, &mut rng)),
                        _ => Summary::new(&categories(500, 0.1, &mut rng))
                            .compare(&categories(new, 0.1, &mut rng)),
                    })
                    .map(|shift| shift.expect("rows"))
                    .collect();
                warned += usize::from(!moved(&shifts).is_empty());
                far += usize::from(shifts.iter().any(|shift| shift.distance >= LEAST));
            }
            assert!(warned <= 21, "{warned} of 1000 with {new} rows");
            assert!(new == 300 || far > 900, "{far}");
        }
    }

    #[test]
    fn moved_columns_are_found_and_tiny_differences_are_not() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let like = Summary::new(&numbers(5_000, 0.0, &mut rng));
        let shares = Summary::new(&categories(5_000, 0.0, &mut rng));
        let shifts = [
            like.compare(&numbers(300, 0.0, &mut rng)),
            like.compare(&numbers(300, 0.3, &mut rng)),
            shares.compare(&categories(300, 0.5, &mut rng)),
            // A difference of 3 % is significant with 200,000 rows, but small.
            like.compare(&numbers(200_000, 0.03, &mut rng)),
        ]
        .map(|shift| shift.expect("rows"));
        assert!(shifts[3].p_value < 1e-3, "{:?}", shifts[3]);
        assert_eq!(moved(&shifts), [2, 1], "{shifts:?}");
        assert_eq!(moved(&[]), [0; 0]);
    }
}
