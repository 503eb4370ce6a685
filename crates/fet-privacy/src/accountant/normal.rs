//! Tails of the normal distribution, as logarithms because the tails underflow.

use std::f64::consts::{PI, SQRT_2};

/// Returns log Φ(x).
pub(crate) fn log_cdf(x: f64) -> f64 {
    if x > -30.0 {
        let upper = 0.5 * libm::erfc(x / SQRT_2);
        // Near 1, only the complement is known precisely.
        return if x > 0.0 { (-upper).ln_1p() } else { (0.5 * libm::erfc(-x / SQRT_2)).ln() };
    }
    // Asymptotic series; at x = -30 its sixth term is below 1e-13.
    let inverse = 1.0 / (x * x);
    let series = 1.0 - inverse * (1.0 - inverse * (3.0 - inverse * (15.0 - 105.0 * inverse)));
    -0.5 * x * x - (-x).ln() - 0.5 * (2.0 * PI).ln() + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// log(erfc(-x/√2)/2) from Python's `math.erfc`, or from `scipy.stats.norm.logcdf` where `math.erfc`
    /// underflows.
    #[test]
    fn tails_are_those_of_the_tables() {
        for (x, expected) in [
            (0.0, -std::f64::consts::LN_2),
            (-1.0, -1.841_021_645_009_263_6),
            (3.0, -0.001_350_809_964_748_202_6),
            (-10.0, -53.231_285_150_512_46),
            (-29.9, -451.322_912_458_528_55),
            (-40.0, -804.608_442_013_754),
        ] {
            let found = log_cdf(x);
            assert!((found - expected).abs() < 1e-12 * expected.abs(), "{x}: {found}");
        }
        // The two branches agree where they meet.
        let (left, right) = (log_cdf(-30.0 - 1e-9), log_cdf(-30.0 + 1e-9));
        assert!((left - right).abs() < 1e-6, "{left} {right}");
    }
}
