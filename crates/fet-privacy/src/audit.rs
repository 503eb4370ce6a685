//! Audits of a mechanism from outside: lower bounds on ε from its outputs.
//!
//! An attacker that distinguishes two neighbouring inputs better than (ε, δ) allows has refuted the claim.
//! Each bound is a statistical lower bound: a mechanism that passes may still be broken in a way that the
//! statistic does not detect. [`epsilon_lower_bound`] needs many runs and assumes nothing. [`mu_lower_bound`]
//! refutes claims of Gaussian differential privacy with far fewer runs. [`one_run`] needs one run with many
//! canaries. [`membership`] scores targets and assumes no claim.

mod binomial;
pub mod membership;
pub mod one_run;

pub use binomial::{highest, lowest};

use crate::accountant::normal::log_cdf;

/// Returns the smallest ε that is compatible with the outcomes, at level α.
///
/// `with` and `without` hold a statistic of the outputs on two neighbouring inputs. `threshold` must be
/// chosen without looking at these outcomes ([`chosen_threshold`] looks at others). If the mechanism is (ε,
/// δ)-private, the result exceeds ε with probability at most α. The frequencies of E = {statistic >
/// threshold} on the two inputs are bounded at α/2 each (Clopper and Pearson, exact). P(E) <= e^ε Q(E) + δ
/// holds both for E and for its complement, which have the same two bounds.
pub fn epsilon_lower_bound(with: &[f64], without: &[f64], threshold: f64, delta: f64, alpha: f64) -> f64 {
    let [least, most] = rates(with, without, threshold, alpha);
    let bound =
        |hit: f64, miss: f64| if hit - delta > 0.0 { ((hit - delta) / miss.max(0.0)).ln() } else { 0.0 };
    bound(least, most).max(bound(1.0 - most, 1.0 - least)).max(0.0)
}

/// Returns the smallest μ that is compatible with the outcomes at level α, if the mechanism claims μ-Gaussian
/// differential privacy (Dong, Roth, Su 2022). The claim implies Φ⁻¹(P(E)) − Φ⁻¹(Q(E)) <= μ for every event E
/// (Nasr et al., "Tight Auditing of Differentially Private Machine Learning", 2023, use this inequality). A
/// threshold in the middle works best.
///
/// The claim is stronger than one pair (ε, δ): it implies [`crate::accountant::gaussian::epsilon`] at every
/// δ. The accountant makes this claim for releases without sampling.
pub fn mu_lower_bound(with: &[f64], without: &[f64], threshold: f64, alpha: f64) -> f64 {
    let [least, most] = rates(with, without, threshold, alpha);
    if least <= 0.0 || most >= 1.0 {
        return 0.0;
    }
    (quantile(least) - quantile(most)).max(0.0)
}

/// Returns the threshold at which these outcomes give the largest lower bound. Compute the bound itself from
/// *other* outcomes.
pub fn chosen_threshold(with: &[f64], without: &[f64], delta: f64, alpha: f64) -> f64 {
    const MOST: usize = 200;
    let mut all = [with, without].concat();
    all.sort_by(f64::total_cmp);
    let step = all.len().div_ceil(MOST).max(1);
    let candidates = all.iter().step_by(step).copied();
    let bound = |threshold| epsilon_lower_bound(with, without, threshold, delta, alpha);
    let better = |best: (f64, f64), threshold| {
        let found = bound(threshold);
        if found > best.1 { (threshold, found) } else { best }
    };
    candidates.fold((0.0, 0.0), better).0
}

/// Returns a lower bound on the rate above the threshold with the record and an upper bound on the rate
/// without it, at joint level α.
fn rates(with: &[f64], without: &[f64], threshold: f64, alpha: f64) -> [f64; 2] {
    let above = |all: &[f64]| all.iter().filter(|&&x| x > threshold).count() as u64;
    let least = lowest(above(with), with.len() as u64, alpha / 2.0);
    [least, highest(above(without), without.len() as u64, alpha / 2.0)]
}

/// Returns Φ⁻¹ of a probability above 0 and below 1.
fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if log_cdf(middle) < probability.ln() { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
pub(crate) mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::accountant::gaussian;

    /// Draws a standard normal number (Box and Muller).
    pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Returns Φ(x).
    pub(crate) fn cdf(x: f64) -> f64 {
        log_cdf(x).exp()
    }

    /// Draws statistics from N(μ, 1) and N(0, 1): the worst case of μ-Gaussian differential privacy.
    fn worlds(mu: f64, runs: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let with = (0..runs).map(|_| mu + normal(&mut rng)).collect();
        (with, (0..runs).map(|_| normal(&mut rng)).collect())
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, expected) in
            [(0.5, 0.0), (0.975, 1.959_964), (1e-6, -4.753_424), (0.999, 3.090_232)]
        {
            let found = quantile(probability);
            assert!((found - expected).abs() < 1e-6, "{probability}: {found}");
        }
    }

    /// A bound at level α = 0.1 may exceed the known ε in at most a share α of 800 audits. The number of
    /// violations is binomial. If the law holds, at most 1 in 10⁶ such tests fails.
    #[test]
    fn bounds_exceed_the_truth_no_more_often_than_they_say() {
        const AUDITS: u64 = 800;
        let alpha = 0.1;
        for mu in [0.5, 2.0] {
            let delta = 0.1;
            let truth = gaussian::epsilon(mu, delta);
            // At a likelihood ratio of e^ε the inequality is an equality, so that every error shows.
            let worst = truth / mu + mu / 2.0;
            let mut exceeded = [0u64; 4];
            for seed in 0..AUDITS {
                let (with, without) = worlds(mu, 100, seed);
                let chosen = chosen_threshold(&with[..50], &without[..50], delta, alpha);
                let found = [
                    epsilon_lower_bound(&with, &without, worst, delta, alpha) > truth,
                    epsilon_lower_bound(&with[50..], &without[50..], chosen, delta, alpha) > truth,
                    mu_lower_bound(&with, &without, mu / 2.0, alpha) > mu,
                    one_run_of(mu, 100, seed).epsilon_lower_bound(delta, alpha) > truth,
                ];
                exceeded.iter_mut().zip(found).for_each(|(all, one)| *all += u64::from(one));
            }
            for (bound, exceeded) in exceeded.into_iter().enumerate() {
                let least = lowest(exceeded, AUDITS, 1e-6);
                assert!(least <= alpha, "bound {bound}, μ = {mu}: {exceeded} of {AUDITS} audits");
            }
            // The bound on μ is not vacuous: it sometimes exceeds the true value.
            assert!(exceeded[2] > 0, "μ = {mu}: {exceeded:?}");
        }
    }

    /// Returns guesses of m canaries, each of which moves a separate output by μ.
    fn one_run_of(mu: f64, canaries: usize, seed: u64) -> one_run::Guesses {
        let mut rng = ChaCha8Rng::seed_from_u64(1_000_000 + seed);
        let inside: Vec<bool> = (0..canaries).map(|_| rng.random()).collect();
        let scores: Vec<f64> =
            inside.iter().map(|&one| mu * f64::from(u8::from(one)) + normal(&mut rng)).collect();
        one_run::Guesses::of_extremes(&scores, &inside, canaries / 4)
    }

    /// With many runs, the bounds approach the true values.
    #[test]
    fn bounds_come_near_the_truth_where_there_are_many_runs() {
        let (mu, delta, alpha) = (1.0, 0.05, 0.05);
        let truth = gaussian::epsilon(mu, delta);
        let (with, without) = worlds(mu, 200_000, 7);
        let chosen = chosen_threshold(&with[..50_000], &without[..50_000], delta, alpha);
        let found = epsilon_lower_bound(&with[50_000..], &without[50_000..], chosen, delta, alpha);
        assert!(found > 0.9 * truth && found <= truth, "{found} of {truth}");
        let found = mu_lower_bound(&with, &without, mu / 2.0, alpha);
        assert!(found > 0.98 * mu && found <= mu, "{found} of {mu}");
        // In one run, guesses of the extremes reveal less; the bound grows with the number of canaries.
        let bound = |canaries| one_run_of(2.0, canaries, 1).epsilon_lower_bound(1e-5, alpha);
        let (few, many) = (bound(100), bound(20_000));
        assert!(many > few && many > 2.0 && many < gaussian::epsilon(2.0, 1e-5), "{few}, {many}");
    }

    /// A few hundred runs refute a claim of half the true μ.
    #[test]
    fn a_false_claim_is_refuted() {
        let (mu, alpha) = (3.0, 1e-3);
        let (with, without) = worlds(mu, 500, 11);
        assert!(mu_lower_bound(&with, &without, mu / 2.0, alpha) > mu / std::f64::consts::SQRT_2);
        let claim = gaussian::epsilon(mu / 2.0, 0.3);
        let found = epsilon_lower_bound(&with, &without, 2.0, 0.3, alpha);
        assert!(found > claim, "{found} refutes {claim}");
    }
}
