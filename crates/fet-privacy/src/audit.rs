//! Auditing a mechanism from outside: what ε its outputs betray.
//!
//! Who can tell two neighbouring inputs apart better than (ε, δ) allows has refuted the claim. Each bound is a statistical one,
//! from below: a mechanism that passes may still be broken in a way the statistic does not see. [`epsilon_lower_bound`] needs many
//! runs and assumes nothing; [`mu_lower_bound`] refutes claims of Gaussian differential privacy with far fewer;
//! [`one_run`] needs one run with many canaries; [`membership`] scores targets and assumes no claim.

mod binomial;
pub mod membership;
pub mod one_run;

pub use binomial::{highest, lowest};

use crate::accountant::normal::log_cdf;

/// The least ε that outcomes are compatible with, at level α.
///
/// `with` and `without` are a statistic of the outputs on two neighbouring inputs, `threshold` a value chosen without
/// looking at them ([`chosen_threshold`] looks at others). If the mechanism is (ε, δ), the result exceeds ε with probability α
/// at most: the frequencies of E = {statistic > threshold} on either input are bounded at α/2 each (Clopper and Pearson, exact),
/// and P(E) <= e^ε Q(E) + δ both for E and for its complement, whose bounds are the same two.
pub fn epsilon_lower_bound(with: &[f64], without: &[f64], threshold: f64, delta: f64, alpha: f64) -> f64 {
    let [least, most] = rates(with, without, threshold, alpha);
    let bound =
        |hit: f64, miss: f64| if hit - delta > 0.0 { ((hit - delta) / miss.max(0.0)).ln() } else { 0.0 };
    bound(least, most).max(bound(1.0 - most, 1.0 - least)).max(0.0)
}

/// The least μ that outcomes are compatible with at level α, if the mechanism claims μ-Gaussian differential privacy (Dong,
/// Roth, Su 2022): then Φ⁻¹(P(E)) − Φ⁻¹(Q(E)) <= μ for every event E (used so by Nasr et al., "Tight Auditing of
/// Differentially Private Machine Learning", 2023). A threshold in the middle serves best.
///
/// The claim is more than one pair (ε, δ): it is [`crate::accountant::gaussian::epsilon`] at every δ, which is how releases
/// without sampling are accounted for.
pub fn mu_lower_bound(with: &[f64], without: &[f64], threshold: f64, alpha: f64) -> f64 {
    let [least, most] = rates(with, without, threshold, alpha);
    if least <= 0.0 || most >= 1.0 {
        return 0.0;
    }
    (quantile(least) - quantile(most)).max(0.0)
}

/// The threshold at which these outcomes betray most. The bound is to be taken from *other* outcomes.
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

/// The least rate of statistics above the threshold with the record and the largest without it, at level α together.
fn rates(with: &[f64], without: &[f64], threshold: f64, alpha: f64) -> [f64; 2] {
    let above = |all: &[f64]| all.iter().filter(|&&x| x > threshold).count() as u64;
    let least = lowest(above(with), with.len() as u64, alpha / 2.0);
    [least, highest(above(without), without.len() as u64, alpha / 2.0)]
}

/// Φ⁻¹ of a probability above 0 and below 1.
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

    /// A standard normal number (Box and Muller).
    pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random(), rng.random());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Φ.
    pub(crate) fn cdf(x: f64) -> f64 {
        log_cdf(x).exp()
    }

    /// Statistics of N(μ, 1) and N(0, 1): the worst case of μ-Gaussian differential privacy.
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

    /// The law of a bound at level α = 0.1: of 800 audits of a mechanism whose ε is known no more than α exceed it. The
    /// number that do is binomial; at most 1 in 10⁶ such tests fails where the law holds.
    #[test]
    fn bounds_exceed_the_truth_no_more_often_than_they_say() {
        const AUDITS: u64 = 800;
        let alpha = 0.1;
        for mu in [0.5, 2.0] {
            let delta = 0.1;
            let truth = gaussian::epsilon(mu, delta);
            // Where the likelihood ratio is e^ε the inequality is an equality, so that each error shows.
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
            // The bound on μ is not an empty one: it exceeds the truth now and then.
            assert!(exceeded[2] > 0, "μ = {mu}: {exceeded:?}");
        }
    }

    /// Guesses of m canaries, each of which moves an output of its own by μ.
    fn one_run_of(mu: f64, canaries: usize, seed: u64) -> one_run::Guesses {
        let mut rng = ChaCha8Rng::seed_from_u64(1_000_000 + seed);
        let inside: Vec<bool> = (0..canaries).map(|_| rng.random()).collect();
        let scores: Vec<f64> =
            inside.iter().map(|&one| mu * f64::from(u8::from(one)) + normal(&mut rng)).collect();
        one_run::Guesses::of_extremes(&scores, &inside, canaries / 4)
    }

    /// With many runs the bounds come near what they bound.
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
        // One run: what guesses of the extremes can betray is less, and grows with the canaries.
        let bound = |canaries| one_run_of(2.0, canaries, 1).epsilon_lower_bound(1e-5, alpha);
        let (few, many) = (bound(100), bound(20_000));
        assert!(many > few && many > 2.0 && many < gaussian::epsilon(2.0, 1e-5), "{few}, {many}");
    }

    /// A claim of half the truth is refuted by a few hundred runs.
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
