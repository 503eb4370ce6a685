//! Paired test over seeds of the difference between a variant and its base, with effect size and Holm's
//! correction.
//!
//! A seed gives every variant the same rows, batches and random streams, so effects common to a seed
//! cancel in the differences. The test is Student's t-test on these differences. The exact sign-flip test is
//! also reported. It assumes no distribution, but its p cannot be below 2/2^n: with five seeds, 0.0625.
//!
//! The folds of a cross-validation share training rows, so that Student's test finds differences too often. Folds
//! have the corrected resampled t-test (Nadeau and Bengio 2003; for several seeds Bouckaert and Frank 2004), and no
//! sign-flip test.

use fet_eval::paired::PairedDifference;
use statrs::distribution::ContinuousCDF;

use super::power::Power;
use super::{CONFIDENCE, FEWEST, half_width, mean, standard_deviation, student};

/// Maximum number of differences for the exact test, which enumerates all sign assignments.
const MOST_FLIPPED: usize = 20;

/// Comparison of a variant with its base.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PairedComparison {
    /// Number of seeds that both have.
    pub(crate) n: usize,
    /// Mean of variant minus base.
    pub(crate) difference: f64,
    /// Test, if there are enough seeds.
    pub(crate) test: Option<Test>,
    /// Intervals over test rows and splits, or the reason why they are undefined.
    pub(crate) over_rows: Result<PairedDifference, String>,
}

/// Result of the test.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Test {
    /// Half the width of the difference's 95 % interval.
    pub(crate) half_width: f64,
    /// Two-sided p of Student's paired test.
    pub(crate) p: f64,
    /// p, corrected for the number of comparisons (Holm); set by `correct`.
    pub(crate) corrected: f64,
    /// Power at the significance level divided by the number of comparisons; set by `correct`.
    pub(crate) power: Power,
    /// Two-sided p of the exact sign-flip test.
    pub(crate) exact: Option<f64>,
    /// Cohen's d of paired values: the mean of the differences divided by their standard deviation; `None` if
    /// all differences are equal.
    pub(crate) effect: Option<f64>,
}

impl PairedComparison {
    /// Compares pairs of (variant, base), one per seed or fold. Returns `None` without pairs. `correlated` is that
    /// of [`half_width`]. `over_rows` compares the predictions of the same runs.
    pub(crate) fn from_pairs(
        pairs: &[(f64, f64)],
        correlated: f64,
        over_rows: impl FnOnce() -> Result<PairedDifference, String>,
    ) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(variant, base)| variant - base).collect();
        let n = differences.len();
        (n > 0).then(|| Self {
            n,
            difference: mean(&differences),
            test: test(&differences, correlated),
            over_rows: over_rows(),
        })
    }
}

/// Corrects the p-values of a family of comparisons with Holm's step-down method, which keeps the probability of
/// any false difference in the family below 1 - `CONFIDENCE`.
pub(crate) fn correct<'a>(family: impl Iterator<Item = &'a mut PairedComparison>) {
    let mut tests: Vec<&mut Test> = family.filter_map(|comparison| comparison.test.as_mut()).collect();
    tests.sort_by(|a, b| a.p.total_cmp(&b.p));
    let count = tests.len();
    let mut least = 0.0_f64;
    for (index, test) in tests.into_iter().enumerate() {
        least = least.max(test.p * (count - index) as f64).min(1.0);
        test.corrected = least;
        test.power.level = (1.0 - CONFIDENCE) / count as f64;
    }
}

fn test(differences: &[f64], correlated: f64) -> Option<Test> {
    let n = differences.len();
    if n < FEWEST {
        return None;
    }
    let (mean, deviation) = (mean(differences), standard_deviation(differences)?);
    // Equal differences can differ by rounding.
    let largest = differences.iter().map(|d| d.abs()).fold(0.0, f64::max);
    let deviation = if deviation > 1e-12 * largest { deviation } else { 0.0 };
    let p = match (deviation > 0.0, mean == 0.0) {
        (true, _) => {
            let t = mean / (deviation * (1.0 / n as f64 + correlated).sqrt());
            2.0 * student(n - 1)?.cdf(-t.abs())
        }
        (false, true) => 1.0,
        // If all differences are equal and not 0, Student's t is infinite and p is 0.
        (false, false) => 0.0,
    };
    let effect = (deviation > 0.0).then(|| mean / deviation);
    let power = Power { deviation, level: 1.0 - CONFIDENCE, correlated };
    let exact = flip(differences).filter(|_| correlated == 0.0);
    Some(Test { half_width: half_width(differences, correlated)?, p, corrected: p, power, exact, effect })
}

/// Returns the share of all sign assignments of the differences whose sum is at least as far from 0 as the
/// observed sum.
fn flip(differences: &[f64]) -> Option<f64> {
    let n = differences.len();
    if n > MOST_FLIPPED {
        return None;
    }
    let sum = |signs: u32| -> f64 {
        let signed = |(index, d): (usize, &f64)| if signs >> index & 1 == 1 { -d } else { *d };
        differences.iter().enumerate().map(signed).sum()
    };
    let found = sum(0).abs();
    // The tolerance counts sums that differ only by rounding.
    let enough = found - 1e-12 * differences.iter().map(|d| d.abs()).sum::<f64>();
    let far = (0..1_u32 << n).filter(|&signs| sum(signs).abs() >= enough).count();
    Some(far as f64 / f64::from(1_u32 << n))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares pairs of runs without predictions.
    fn compare(pairs: &[(f64, f64)]) -> Option<PairedComparison> {
        PairedComparison::from_pairs(pairs, 0.0, || Err("no predictions".into()))
    }

    fn close(found: f64, expected: f64, what: &str) {
        assert!(
            (found - expected).abs() < 1e-6 * expected.abs().max(1e-6),
            "{what}: {found}, not {expected}"
        );
    }

    /// Student's own data (1908) on sleep, as in R: `t.test(extra ~ group, sleep, paired = TRUE)` gives
    /// t = -4.0621, df = 9, p = 0.002833, interval -2.4598858 to -0.7001142.
    #[test]
    fn students_sleepers() {
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = one.into_iter().zip(two).collect();
        let comparison = compare(&pairs).expect("pairs");
        let test = comparison.test.expect("enough pairs");
        close(comparison.difference, -1.58, "difference");
        assert!((test.p - 0.002_833).abs() < 5e-7, "{test:?}");
        close(comparison.difference - test.half_width, -2.459_885_8, "lower end");
        close(comparison.difference + test.half_width, -0.700_114_2, "upper end");
        close(test.effect.expect("they vary"), -4.062_127_683_382_037 / 10.0_f64.sqrt(), "effect");
        // One difference is 0 and the other differences have one sign: 2 of 2^9 assignments, for either sign
        // of the 0.
        close(test.exact.expect("few enough"), 2.0 / 512.0, "exact p");
    }

    #[test]
    fn distinguishes_few_pairs_from_equal_pairs() {
        let test = |differences: &[f64]| {
            let pairs: Vec<(f64, f64)> = differences.iter().map(|&d| (d, 0.0)).collect();
            compare(&pairs).map(|comparison| comparison.test)
        };
        assert_eq!(test(&[]), None);
        assert_eq!(test(&[1.0, 2.0]), Some(None), "two pairs have a difference and no test");
        let equal = test(&[0.0, 0.0, 0.0]).flatten().expect("a test");
        assert_eq!((equal.p, equal.effect, equal.exact), (1.0, None, Some(1.0)));
        let shifted = test(&[2.0, 2.0, 2.0]).flatten().expect("a test");
        assert_eq!((shifted.p, shifted.effect, shifted.exact), (0.0, None, Some(0.25)));
        let rounded = test(&[41.0 / 60.0 - 40.0 / 60.0, 42.0 / 60.0 - 41.0 / 60.0, 1.0 / 60.0]);
        assert_eq!(rounded.flatten().expect("a test").effect, None, "they differ only by rounding");
    }

    /// Five folds with the differences 1 to 5: the standard error is √(2.5 · (1/5 + 1/4)), so t = 2.8284 with 4 degrees
    /// of freedom, and p = 0.0474. Student's test would have t = 4.2426 and p = 0.0132 (R: `2 * pt(-t, 4)`).
    #[test]
    fn folds_have_the_corrected_resampled_test() {
        let pairs: Vec<(f64, f64)> = (1..6).map(|d| (f64::from(d), 0.0)).collect();
        let test = |correlated| {
            let found = PairedComparison::from_pairs(&pairs, correlated, || Err(String::new()));
            found.and_then(|comparison| comparison.test).expect("a test")
        };
        assert!((test(0.25).p - 0.047_4).abs() < 1e-4, "{:?}", test(0.25));
        assert!((test(0.0).p - 0.013_2).abs() < 1e-4, "{:?}", test(0.0));
        assert!(test(0.25).exact.is_none() && test(0.0).exact.is_some());
        close(test(0.25).half_width / test(0.0).half_width, 1.5, "√(0.45 / 0.2)");
    }

    /// Computed by hand: 0.01 · 4, 0.013 · 3 (raised to the previous value), 0.03 · 2, 0.04 (raised again).
    #[test]
    fn holm_steps_down() {
        let of = |p: f64| {
            let power = Power { deviation: 1.0, level: 0.05, correlated: 0.0 };
            let test = Test { half_width: 1.0, p, corrected: p, power, exact: None, effect: None };
            let over_rows = Err(String::new());
            Some(PairedComparison { n: 3, difference: 1.0, test: Some(test), over_rows })
        };
        let untested = compare(&[(1.0, 0.0)]);
        let mut all = [of(0.04), None, of(0.01), untested, of(0.03), of(0.013)];
        correct(all.iter_mut().flatten());
        let found: Vec<f64> =
            all.iter().flatten().filter_map(|c| c.test.as_ref()).map(|t| t.corrected).collect();
        for (found, expected) in found.iter().zip([0.06, 0.04, 0.06, 0.04]) {
            close(*found, expected, "corrected");
        }
        let level =
            all[0].as_ref().and_then(|comparison| comparison.test.as_ref()).map(|test| test.power.level);
        assert!(level.is_some_and(|level| (level - 0.0125).abs() < 1e-12), "a quarter of 0.05");
        let mut large = [of(0.7), of(0.8)];
        correct(large.iter_mut().flatten());
        assert!(large.iter().flatten().all(|c| c.test.as_ref().is_some_and(|t| t.corrected == 1.0)));
    }

    /// Without a true difference, p must be below 0.05 in 5 % of studies. The test simulates 4,000 studies of
    /// 5 seeds with normal noise. The count is binomial with mean 200 and standard deviation 13.8. The test
    /// fails beyond 4 standard deviations, α = 6e-5.
    #[test]
    fn test_keeps_its_level() {
        let mut state = 1_u64;
        let mut uniform = || {
            // SplitMix64 with a fixed start, so that the test is deterministic.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut normal =
            || (-2.0 * uniform().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
        let mut below = 0;
        for _ in 0..4_000 {
            let pairs: Vec<(f64, f64)> = (0..5).map(|_| (normal(), normal())).collect();
            let test = compare(&pairs).and_then(|comparison| comparison.test).expect("a test");
            below += usize::from(test.p < 0.05);
        }
        assert!((145..=255).contains(&below), "{below} of 4,000");
    }
}
