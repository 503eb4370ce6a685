//! Number of repetitions that a paired t-test needs for a given difference.
//!
//! The calculation is the usual approximation of the noncentral t distribution by two quantiles of Student's t
//! (Sokal and Rohlf 1995, "Biometry", section 9.8): n is the smallest number with
//! n ≥ (t(1 - α/2; n - 1) + t(power; n - 1))² · (s / δ)². For d = δ / s of 0.2, 0.5, 0.8 and 1, α = 0.05 and a power
//! of 80 %, it gives the exact numbers 199, 34, 15 and 10.

use statrs::distribution::ContinuousCDF;

use super::{FEWEST, student};

/// Probability of a significant test.
pub(crate) const POWER: f64 = 0.8;

/// Maximum number of repetitions.
pub(crate) const MOST: usize = 1_000;

/// Paired t-test whose power is of interest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Power {
    /// Standard deviation of the paired differences.
    pub(crate) deviation: f64,
    /// Significance level α of the two-sided test.
    pub(crate) level: f64,
    /// Share of the variance that more repetitions do not reduce: 0 for seeds, and test rows divided by training
    /// and validation rows for folds.
    pub(crate) correlated: f64,
}

impl Power {
    /// Returns the difference that the test finds with probability [`POWER`] from `n` repetitions.
    pub(crate) fn detectable(&self, n: usize) -> Option<f64> {
        let student = student(n.checked_sub(1).filter(|degrees| *degrees > 0)?)?;
        let sum = student.inverse_cdf(1.0 - self.level / 2.0) + student.inverse_cdf(POWER);
        Some(sum * self.deviation * (1.0 / n as f64 + self.correlated).sqrt())
    }

    /// Returns the number of repetitions from which the test finds `difference` with probability [`POWER`].
    /// Returns `None` if [`MOST`] repetitions are too few.
    pub(crate) fn needed(&self, difference: f64) -> Option<usize> {
        let is_enough = |n: usize| self.detectable(n).is_some_and(|least| least <= difference.abs());
        // The detectable difference falls with n.
        if !is_enough(MOST) {
            return None;
        }
        let (mut low, mut high) = (FEWEST - 1, MOST);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if is_enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use fet_eval::{ChaCha8Rng, SeedableRng};
    use rand::RngExt;

    use super::super::paired::PairedComparison;
    use super::*;

    const PLAIN: Power = Power { deviation: 1.0, level: 0.05, correlated: 0.0 };

    /// Expected: exact calculations with the noncentral t distribution (G*Power 3.1, paired t-test, two-sided,
    /// α = 0.05, power 0.8).
    #[test]
    fn numbers_of_pairs_are_those_of_the_noncentral_t() {
        for (effect, expected) in [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)] {
            assert_eq!(PLAIN.needed(effect), Some(expected), "{effect}");
            assert_eq!(PLAIN.needed(-effect), Some(expected), "{effect}");
        }
        assert_eq!(Power { deviation: 3.0, ..PLAIN }.needed(1.5), Some(34), "only the ratio matters");
        assert_eq!(PLAIN.needed(100.0), Some(FEWEST));
        assert_eq!(PLAIN.needed(0.0), None);
        assert_eq!(Power { deviation: 0.0, ..PLAIN }.needed(0.1), Some(FEWEST));
        assert!(Power { level: 0.01, ..PLAIN }.needed(0.5) > Some(34));
        // Folds: however many, the standard error stays above √(1/4) of the deviation.
        let folds = Power { correlated: 0.25, ..PLAIN };
        assert_eq!(folds.needed(1.3), None);
        assert!(folds.needed(1.6).is_some_and(|needed| needed > 10));
    }

    /// With the number of pairs that `needed` returns, the test must be significant in 80 % of studies. Of 2,000
    /// simulated studies the count is binomial with mean 1,600 and standard deviation 17.9, plus at most 3 % because
    /// the number is whole. The test fails beyond 4 standard deviations, α = 6e-5.
    #[test]
    fn needed_pairs_have_the_stated_power() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for effect in [0.5, 1.0] {
            let n = PLAIN.needed(effect).expect("few");
            let mut hits = 0;
            for _ in 0..2_000 {
                // The sum of twelve uniform numbers minus 6 is almost normal.
                let mut normal = || (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
                let pairs: Vec<(f64, f64)> = (0..n).map(|_| (effect + normal(), 0.0)).collect();
                let comparison = PairedComparison::from_pairs(&pairs, 0.0, || Err(String::new()));
                hits += usize::from(comparison.and_then(|found| found.test).expect("a test").p < 0.05);
            }
            assert!((1_528..=1_732).contains(&hits), "{hits} of 2,000 for {effect}");
        }
    }
}
