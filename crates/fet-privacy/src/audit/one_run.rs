//! The bound of one run with many canaries (Steinke, Nasr, Jagielski: "Privacy Auditing with One (1) Training Run", NeurIPS 2023).
//!
//! Each of m canaries is put in or left out by a fair coin of its own (or is one of two records). Who sees the outputs of one run
//! guesses r of the coins and abstains from the others (their algorithm 1). If the mechanism is (ε, δ) for each canary, guesses
//! are right no more often than those of a randomised response of ε, but for what δ allows (their theorem 5.2).

use super::binomial::{at_least, mass};

/// What was guessed in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guesses {
    /// m: canaries, each in or out by a coin of its own.
    pub canaries: usize,
    /// r: guesses that were made; their number is fixed before the outputs are seen.
    pub made: usize,
    /// v: guesses that were right.
    pub right: usize,
}

impl Guesses {
    /// Guesses "in" for the `each` highest scores and "out" for the `each` lowest, and abstains from the rest.
    ///
    /// `scores` and `inside` have one entry for each canary; `each` is at most half as many, and is chosen without looking at the
    /// scores.
    pub fn of_extremes(scores: &[f64], inside: &[bool], each: usize) -> Self {
        let canaries = scores.len().min(inside.len());
        let each = each.min(canaries / 2);
        let mut order: Vec<usize> = (0..canaries).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]).then(a.cmp(&b)));
        let lowest = order[..each].iter().filter(|&&canary| !inside[canary]).count();
        let highest = order[canaries - each..].iter().filter(|&&canary| inside[canary]).count();
        Self { canaries, made: 2 * each, right: lowest + highest }
    }

    /// The probability that so many guesses or more are right at best, if the mechanism is (ε, δ).
    ///
    /// With q = e^ε/(1 + e^ε) and f(v) = P[Binomial(r, q) >= v] it is f(v) where δ = 0 (their theorem 5.2 without its second
    /// term), and f(v) + 2mδ·max_{1≤i≤v} (f(v−i) − f(v))/i otherwise (their theorem 5.2; algorithm in their appendix D).
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

    /// The least ε that the guesses are compatible with at level α: if the mechanism is (ε, δ), the result exceeds ε with
    /// probability α at most.
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

    /// All r guesses right at level α: q^r = α, so that ε = log(q/(1−q)) with q = α^{1/r}.
    #[test]
    fn the_pure_form_is_that_of_a_coin() {
        for (made, alpha) in [(10, 0.05), (100, 0.05), (1_000, 1e-3)] {
            let q = f64::powf(alpha, 1.0 / made as f64);
            let expected = (q / (1.0 - q)).ln();
            let found = guesses(made, made, made).epsilon_lower_bound(0.0, alpha);
            assert!((found - expected).abs() < 1e-9, "{made}: {found}, not {expected}");
        }
        // Half of the guesses betray nothing.
        assert_eq!(guesses(100, 100, 50).epsilon_lower_bound(0.0, 0.05), 0.0);
    }

    /// δ only ever takes away, ever more, and at 1 all of it; abstaining from canaries that one knows nothing of costs
    /// nothing where δ = 0.
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

    /// The maximum over i of theorem 5.2, written out from the definition of f for every i.
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
