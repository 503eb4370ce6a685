//! Binomial tails, and exact bounds on a probability from a count (Clopper and Pearson 1934).
//!
//! A tail is summed term by term, moving away from the mean. Libraries cut off the continued fraction of the
//! incomplete beta function after some hundred terms, which does not suffice for a million trials.

/// Returns P[Binomial(n, p) = k].
pub(super) fn mass(n: u64, p: f64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    let choices =
        libm::lgamma(n as f64 + 1.0) - libm::lgamma(k as f64 + 1.0) - libm::lgamma((n - k) as f64 + 1.0);
    // 0·log 0 is 0 here.
    let term = |count: u64, log: f64| if count == 0 { 0.0 } else { count as f64 * log };
    (choices + term(k, p.ln()) + term(n - k, (-p).ln_1p())).exp()
}

/// Returns P[Binomial(n, p) >= k].
pub(super) fn at_least(n: u64, p: f64, k: u64) -> f64 {
    match k {
        0 => return 1.0,
        k if k > n => return 0.0,
        _ if p <= 0.0 => return 0.0,
        _ if p >= 1.0 => return 1.0,
        _ => {}
    }
    let odds = p / (1.0 - p);
    if k as f64 > n as f64 * p {
        let up = |i: u64| (n - i) as f64 / (i + 1) as f64 * odds;
        return sum(mass(n, p, k), (k..n).map(up)).min(1.0);
    }
    let down = |i: u64| i as f64 / (n - i + 1) as f64 / odds;
    (1.0 - sum(mass(n, p, k - 1), (1..k).rev().map(down))).max(0.0)
}

/// Sums a first term and the terms that follow from it by these ratios, until they are negligible.
fn sum(first: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let (mut term, mut sum) = (first, first);
    for ratio in ratios {
        term *= ratio;
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Returns the smallest probability that is compatible with `found` successes in `trials` at level α,
/// one-sided: the p with P[Binomial(trials, p) >= found] = α.
pub fn lowest(found: u64, trials: u64, alpha: f64) -> f64 {
    if found == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, found as f64 / trials as f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if at_least(trials, middle, found) >= alpha { high = middle } else { low = middle }
    }
    low
}

/// Returns the largest probability that is compatible with `found` successes in `trials` at level α,
/// one-sided: the p with P[Binomial(trials, p) <= found] = α.
pub fn highest(found: u64, trials: u64, alpha: f64) -> f64 {
    1.0 - lowest(trials - found, trials, alpha)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_add_up_and_are_those_of_small_cases() {
        assert!((at_least(3, 0.5, 2) - 0.5).abs() < 1e-15);
        assert!((at_least(4, 0.25, 3) - 13.0 / 256.0).abs() < 1e-15);
        assert_eq!((at_least(5, 0.3, 0), at_least(5, 0.3, 6), at_least(5, 1.0, 5)), (1.0, 0.0, 1.0));
        for (n, p) in [(17, 0.2), (400, 0.9), (1_000_000, 1e-3)] {
            let mean = (f64::from(n) * p) as u64;
            for k in [mean.saturating_sub(7), mean, mean + 1, mean + 9] {
                let whole = at_least(u64::from(n as u32), p, k + 1) + mass(u64::from(n as u32), p, k);
                let found = at_least(u64::from(n as u32), p, k);
                assert!((whole - found).abs() < 1e-8 * whole, "{n} {p} {k}: {whole} {found}");
            }
        }
    }

    /// Table values of the two-sided 95 % interval (2.5 % on each side), to four places: Clopper and
    /// Pearson's example of 3 in 10, and others from common tables.
    #[test]
    fn bounds_are_those_of_the_tables() {
        for (found, trials, low, high) in [
            (0, 10, 0.0, 0.3085),
            (1, 10, 0.0025, 0.4450),
            (3, 10, 0.0667, 0.6525),
            (5, 10, 0.1871, 0.8129),
            (10, 10, 0.6915, 1.0),
            (10, 100, 0.0490, 0.1762),
        ] {
            let (least, most) = (lowest(found, trials, 0.025), highest(found, trials, 0.025));
            assert!((least - low).abs() < 6e-5, "{found} of {trials}: {least}, not {low}");
            assert!((most - high).abs() < 6e-5, "{found} of {trials}: {most}, not {high}");
        }
        // With no success in n trials at level α, p <= 1 − α^{1/n}.
        assert!((highest(0, 100, 1e-3) - (1.0 - 1e-3f64.powf(0.01))).abs() < 1e-12);
    }

    /// The tail at each bound is exactly α, so that no bound closer to the frequency is valid.
    #[test]
    fn at_a_bound_the_tail_is_the_level() {
        for (found, trials, alpha) in [(1, 7, 0.05), (300, 1_000, 1e-3), (999_000, 1_000_000, 1e-7)] {
            let least = lowest(found, trials, alpha);
            let tail = at_least(trials, least, found);
            assert!((tail / alpha - 1.0).abs() < 1e-6, "{found} of {trials}: {tail} and not {alpha}");
        }
    }
}
