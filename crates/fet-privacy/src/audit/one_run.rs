//! Lower bound on ε from one run with many canaries (Steinke, Nasr, Jagielski: "Privacy Auditing with One (1)
//! Training Run", NeurIPS 2023).
//!
//! An independent fair coin decides for each of m canaries if it is put in or left out (or chooses one of two
//! records). An observer of the outputs of one run guesses r of the coins and abstains from the others (their
//! algorithm 1). If the mechanism is (ε, δ)-private for each canary, guesses are right no more often than
//! those of a randomised response of ε, except for an excess that δ allows (their theorem 5.2).

use super::binomial::{at_least, mass};

/// Guesses made in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    /// m: number of canaries, each in or out by an independent coin.
    pub canaries: usize,
    /// r: number of guesses, fixed before the outputs are seen.
    pub made: usize,
    /// v: number of right guesses.
    pub right: usize,
}

impl Guesses {
    /// Guesses "in" for the `each` highest scores and "out" for the `each` lowest, and abstains from the rest.
    ///
    /// `scores` and `inside` have one entry for each canary. `each` is at most half the number of canaries, and is chosen
    /// without looking at the scores.
    pub fn of_extremes(scores: &[f64], inside: &[bool], each: usize) -> Self {
        let canaries = scores.len().min(inside.len());
        let each = each.min(canaries / 2);
        let mut order: Vec<usize> = (0..canaries).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));
        let lowest = order[..each].iter().filter(|&&canary| !inside[canary]).count();
        let highest = order[canaries - each..].iter().filter(|&&canary| inside[canary]).count();
        Self { canaries, made: 2 * each, right: lowest + highest }
    }

    /// Returns the largest probability of `right` or more right guesses if the mechanism is (ε, δ)-private.
    ///
    /// With q = e^ε/(1 + e^ε) and f(v) = P[Binomial(r, q) >= v], it is f(v) if δ = 0 (their theorem 5.2
    /// without its second term). Otherwise it is f(v) + 2mδ·max_{1≤i≤v} (f(v−i) − f(v))/i (their theorem 5.2;
    /// algorithm in their appendix D).
    pub fn p_value(&self, epsilon: f64, delta: f64) -> f64 {
        let (made, right) = (self.made as u64, self.right as u64);
        let q = 1.0 / (1.0 + (-epsilon).exp());
        let by_chance = at_least(made, q, right);
        if delta == 0.0 {
            return by_chance;
        }
        let (mut short, mut steepest) = (0.0, 0.0f64);
        for by in 1..=right {
            short += mass(made, q, right - by);
            steepest = steepest.max(short / by as f64);
        }
        (by_chance + 2.0 * self.canaries as f64 * delta * steepest).min(1.0)
    }

    /// Returns the smallest ε that is compatible with the guesses at level α: if the mechanism is (ε,
    /// δ)-private, the result exceeds ε with probability at most α.
    pub fn epsilon_lower_bound(&self, delta: f64, alpha: f64) -> f64 {
        if self.p_value(0.0, delta) > alpha {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        while self.p_value(high, delta) <= alpha {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.p_value(middle, delta) <= alpha { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guesses(canaries: usize, made: usize, right: usize) -> Guesses {
        Guesses { canaries, made, right }
    }

    /// If all r guesses are right at level α, q^r = α and therefore ε = log(q/(1−q)) with q = α^{1/r}.
    #[test]
    fn the_pure_form_is_that_of_a_coin() {
        for (made, alpha) in [(10, 0.05), (100, 0.05), (1_000, 1e-3)] {
            let q = f64::powf(alpha, 1.0 / made as f64);
            let expected = (q / (1.0 - q)).ln();
            let found = guesses(made, made, made).epsilon_lower_bound(0.0, alpha);
            assert!((found - expected).abs() < 1e-9, "{made}: {found}, not {expected}");
        }
        // If only half of the guesses are right, they reveal nothing.
        assert_eq!(guesses(100, 100, 50).epsilon_lower_bound(0.0, 0.05), 0.0);
    }

    /// A larger δ only lowers the bound, and δ = 1 lowers it to zero. If δ = 0, abstaining from canaries
    /// without any information costs nothing.
    #[test]
    fn the_approximate_form_is_below_the_pure_one() {
        let mut last = f64::INFINITY;
        for delta in [0.0, 1e-6, 1e-4, 1e-3, 1e-2, 1.0] {
            let found = guesses(400, 200, 190).epsilon_lower_bound(delta, 0.05);
            assert!(found <= last, "{delta}: {found} after {last}");
            last = found;
        }
        assert_eq!(last, 0.0);
        let bound = |canaries| guesses(canaries, 200, 190).epsilon_lower_bound(0.0, 0.05);
        assert_eq!(bound(200), bound(4_000));
        assert!(guesses(400, 200, 190).epsilon_lower_bound(1e-6, 0.05) > 0.9 * bound(400));
    }

    /// Compares with the maximum over i of theorem 5.2, written out from the definition of f for every i.
    #[test]
    fn the_second_term_is_the_steepest_fall_of_the_first() {
        let (canaries, made, right, epsilon, delta) = (60, 30, 25, 1.0, 1e-3);
        let q = 1.0 / (1.0 + f64::exp(-epsilon));
        let f = |v: usize| (v..=made).map(|k| mass(made as u64, q, k as u64)).sum::<f64>();
        let steepest = (1..=right).map(|i| (f(right - i) - f(right)) / i as f64).fold(0.0, f64::max);
        let expected = f(right) + 2.0 * canaries as f64 * delta * steepest;
        let found = guesses(canaries, made, right).p_value(epsilon, delta);
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn the_extremes_are_guessed_and_the_rest_is_left_out() {
        let scores = [0.9, -3.0, 0.1, 2.0, -0.2, 0.0];
        let inside = [true, false, true, false, true, false];
        let found = Guesses::of_extremes(&scores, &inside, 2);
        // In: 3 (wrong) and 0 (right). Out: 1 (right) and 4 (wrong).
        assert_eq!(found, guesses(6, 4, 2));
        assert_eq!(Guesses::of_extremes(&scores, &inside, 50).made, 6);
    }
}
