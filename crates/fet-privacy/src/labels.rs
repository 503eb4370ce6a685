//! Mechanisms for one label: randomised response for classes, and Laplace noise on a grid for numbers.
//!
//! A mechanism is applied once to each label. Computations on its answers, over any number of epochs, cost
//! nothing more (post-processing). Both mechanisms are ε-differentially private for one label (δ = 0). ε is
//! computed from the same probabilities that the samplers use: the samplers work with integers only and are
//! exact for uniform bits. The bits come from a pseudorandom generator, so the guarantee is computational.
//! The mechanisms are independent of training and messages.

use rand::Rng;

/// Invalid parameters of a mechanism.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// A value outside its range.
    #[error("`{field}` {rule}; it is {value}")]
    Value {
        /// Name of the parameter.
        field: &'static str,
        /// Requirement on the value.
        rule: &'static str,
        /// Value that violates the requirement.
        value: f64,
    },
}

/// Smallest and largest ε.
pub const EPSILON_RANGE: (f64, f64) = (1e-3, 20.0);

fn check_epsilon(epsilon: f64) -> Result<(), LabelError> {
    let (least, most) = EPSILON_RANGE;
    if (least..=most).contains(&epsilon) {
        return Ok(());
    }
    Err(LabelError::Value { field: "epsilon", rule: "must be from 1e-3 to 20", value: epsilon })
}

/// 2^64, the number of values that the sampler draws from.
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Randomised response with a prior (Ghazi, Golowich, Kumar, Manurangsi, Zhang 2021, algorithm 2:
/// RRWithPrior).
///
/// An answer is always one of the k classes that are most likely under the prior. If the true class is one of
/// them, the answer is true with probability e^ε/(e^ε + k − 1), and each of the other classes has probability
/// 1/(e^ε + k − 1). If not, the answer is one of the k classes at random. The mechanism chooses k to maximise
/// the probability of a true answer. With a uniform prior, k is the number of classes: plain randomised response.
///
/// **Law.** For all labels y, y' and answers a: P(a|y) <= e^ε P(a|y'). With t for the probability of a true
/// answer, two of the k labels give t/((1 − t)/(k − 1)) = e^ε, and 1/k lies between t and (1 − t)/(k − 1).
#[derive(Debug, Clone, PartialEq)]
pub struct RandomisedResponse {
    classes: usize,
    /// Classes that can be answers, ascending.
    kept: Vec<usize>,
    /// Probability of a true answer for a kept class, in units of 2^-64, rounded down.
    truth: u64,
}

impl RandomisedResponse {
    /// Creates the mechanism with one class for each probability of the prior. The prior must not be computed
    /// from the protected labels.
    pub fn new(epsilon: f64, prior: &[f64]) -> Result<Self, LabelError> {
        check_epsilon(epsilon)?;
        let error = |rule, value| LabelError::Value { field: "prior", rule, value };
        if prior.len() < 2 {
            return Err(error("must have at least two classes", prior.len() as f64));
        }
        if let Some(&value) = prior.iter().find(|p| !(0.0..=1.0).contains(*p)) {
            return Err(error("must hold probabilities", value));
        }
        let sum: f64 = prior.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(error("must add up to 1", sum));
        }
        let mut order: Vec<usize> = (0..prior.len()).collect();
        order.sort_by(|&a, &b| prior[b].total_cmp(&prior[a]).then(a.cmp(&b)));
        let (mut mass, mut best, mut most) = (0.0, 1, 0.0);
        for (index, &class) in order.iter().enumerate() {
            mass += prior[class];
            let right = mass * truth_probability(epsilon, index + 1);
            if right > most {
                (best, most) = (index + 1, right);
            }
        }
        let mut kept = order[..best].to_vec();
        kept.sort_unstable();
        // Rounded down by more than the error of the exponential, so that ε is never exceeded.
        let truth = truth_probability(epsilon, best) * (1.0 - 1e-15) * WHOLE;
        // A float of 2^64 becomes the largest integer.
        Ok(Self { classes: prior.len(), kept, truth: truth as u64 })
    }

    /// Creates plain randomised response.
    pub fn uniform(epsilon: f64, classes: usize) -> Result<Self, LabelError> {
        Self::new(epsilon, &vec![1.0 / classes as f64; classes])
    }

    /// Returns the probability of `answer` if the label is `label`.
    pub fn probability(&self, answer: usize, label: usize) -> f64 {
        let kept = self.kept.len() as f64;
        match (self.kept.binary_search(&answer), self.kept.binary_search(&label)) {
            (Err(_), _) => 0.0,
            (Ok(_), Err(_)) => 1.0 / kept,
            (Ok(_), Ok(_)) if self.kept.len() == 1 => 1.0,
            (Ok(answer), Ok(label)) if answer == label => self.truth as f64 / WHOLE,
            (Ok(_), Ok(_)) => (WHOLE - self.truth as f64) / WHOLE / (kept - 1.0),
        }
    }

    /// Returns ε: the largest logarithm of a ratio of probabilities of one answer, over all answers and pairs
    /// of labels.
    pub fn epsilon(&self) -> f64 {
        let mut worst = 0.0f64;
        for &answer in &self.kept {
            let all = (0..self.classes).map(|label| self.probability(answer, label));
            let (low, high) = all.fold((1.0f64, 0.0f64), |(low, high), p| (low.min(p), high.max(p)));
            worst = worst.max((high / low).ln());
        }
        worst
    }

    /// Draws the answer for `label`.
    ///
    /// # Panics
    /// If `label` is not one of the classes.
    pub fn answer(&self, label: usize, rng: &mut impl Rng) -> usize {
        assert!(label < self.classes, "a label must be one of {} classes", self.classes);
        let kept = self.kept.len();
        match self.kept.binary_search(&label) {
            Ok(_) if kept == 1 => label,
            Ok(_) if rng.next_u64() < self.truth => label,
            Ok(place) => {
                let other = below(kept - 1, rng);
                self.kept[other + usize::from(other >= place)]
            }
            Err(_) => self.kept[below(kept, rng)],
        }
    }
}

/// Returns the probability of a true answer for one of k kept classes.
fn truth_probability(epsilon: f64, kept: usize) -> f64 {
    1.0 / (1.0 + (kept as f64 - 1.0) * (-epsilon).exp())
}

/// Draws a uniform number below `bound`.
pub(crate) fn below(bound: usize, rng: &mut impl Rng) -> usize {
    uniform(bound as u64, rng) as usize
}

/// Draws a uniform 64-bit number below `bound`. Rejects numbers in the incomplete last cycle.
fn uniform(bound: u64, rng: &mut impl Rng) -> u64 {
    let rounds = u64::MAX - u64::MAX % bound;
    loop {
        let number = rng.next_u64();
        if number < rounds {
            return number % bound;
        }
    }
}

/// Number of grid steps between the bounds.
pub const GRID: u32 = 1 << 12;

/// Laplace noise on a grid, for a label within bounds.
///
/// The label is clipped to [low, high] and rounded to one of [`GRID`] + 1 equidistant points. The answer is
/// that point plus n steps with P(n) ∝ e^{−ε|n|/GRID}, the discrete Laplace distribution (Ghosh, Roughgarden,
/// Sundararajan 2009). On a grid, the low bits of floats reveal nothing (Mironov 2012).
///
/// **Law.** Two labels are at most GRID steps apart. Therefore P(a|y) <= e^ε P(a|y').
#[derive(Debug, Clone, PartialEq)]
pub struct GridLaplace {
    low: f64,
    high: f64,
    /// ε in units of 1/[`UNIT`], rounded down.
    epsilon: u64,
}

/// Number of units per 1 of ε.
const UNIT: u64 = 1 << 32;

impl GridLaplace {
    /// Creates the mechanism for labels from `low` to `high`. These bounds must not be computed from the
    /// protected labels.
    pub fn new(epsilon: f64, low: f64, high: f64) -> Result<Self, LabelError> {
        check_epsilon(epsilon)?;
        if !low.is_finite() {
            return Err(LabelError::Value { field: "low", rule: "must be finite", value: low });
        }
        if !(high.is_finite() && high > low) {
            return Err(LabelError::Value {
                field: "high",
                rule: "must be finite and above `low`",
                value: high,
            });
        }
        // Exact: the value is at most 20 · 2^32, and an integer after rounding.
        Ok(Self { low, high, epsilon: (epsilon * UNIT as f64).floor() as u64 })
    }

    /// Returns the grid point of a label, counted from 0.
    pub fn point(&self, label: f64) -> i64 {
        let place = (label.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        // NaN has no position and becomes the lowest point.
        (place * f64::from(GRID)).round() as i64
    }

    /// Returns the probability of the point `answer` if the label is at `point`.
    pub fn probability(&self, answer: i64, point: i64) -> f64 {
        let step = self.epsilon as f64 / UNIT as f64 / f64::from(GRID);
        (step / 2.0).tanh() * (-step * (answer - point).abs() as f64).exp()
    }

    /// Draws the answer for `label`, in the unit of the label.
    pub fn answer(&self, label: f64, rng: &mut impl Rng) -> f64 {
        let point = self.point(label) + discrete_laplace(self.epsilon, UNIT * u64::from(GRID), rng);
        self.low + point as f64 * (self.high - self.low) / f64::from(GRID)
    }
}

/// Draws n with P(n) ∝ e^{−|n|·s/t}, exactly (Canonne, Kamath, Steinke 2020, algorithm 2). The sampler uses
/// integers only and no logarithm of a float. Every answer has its exact probability, and an answer that is
/// possible for one label is possible for all labels.
fn discrete_laplace(s: u64, t: u64, rng: &mut impl Rng) -> i64 {
    loop {
        let low = uniform(t, rng);
        if !is_exp(low, t, rng) {
            continue;
        }
        let mut high = 0;
        while is_exp(1, 1, rng) {
            high += 1;
        }
        let size = ((u128::from(low) + u128::from(t) * high) / u128::from(s)) as i64;
        let is_negative = rng.next_u64() & 1 == 1;
        // Without this rejection, zero would be drawn twice as often.
        if !(is_negative && size == 0) {
            return if is_negative { -size } else { size };
        }
    }
}

/// Returns true with probability e^{−a/b}, for a ≤ b (algorithm 1 of the same paper).
fn is_exp(a: u64, b: u64, rng: &mut impl Rng) -> bool {
    let mut k = 1;
    // The k-th round occurs with probability below 1/k!, so the product stays far below 2^64.
    while uniform(b * k, rng) < a {
        k += 1;
    }
    k % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    const UNEVEN: [f64; 4] = [0.1, 0.6, 0.0, 0.3];

    fn mechanisms() -> Vec<(f64, RandomisedResponse)> {
        let mut all = Vec::new();
        for epsilon in [1e-3, 0.1, 0.5, 1.0, 3.0, 8.0, 20.0] {
            for classes in [2, 3, 10, 100] {
                all.push((epsilon, RandomisedResponse::uniform(epsilon, classes).expect("sound")));
            }
            all.push((epsilon, RandomisedResponse::new(epsilon, &UNEVEN).expect("sound")));
        }
        all
    }

    /// The exact ratio of all probabilities never exceeds ε, and equals ε if more than one class can be an
    /// answer.
    #[test]
    fn the_bound_is_tight_and_never_exceeded() {
        for (epsilon, mechanism) in mechanisms() {
            let found = mechanism.epsilon();
            assert!(found <= epsilon, "{epsilon}: {found} {mechanism:?}");
            let tight = if mechanism.kept.len() == 1 { 0.0 } else { epsilon };
            // e^20/2^64 is a billionth: the resolution of untrue answers at the largest ε.
            assert!((found - tight).abs() < 1e-6, "{epsilon}: {found} {mechanism:?}");
            for label in 0..mechanism.classes {
                let sum: f64 =
                    (0..mechanism.classes).map(|answer| mechanism.probability(answer, label)).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{epsilon}: {sum}");
            }
        }
    }

    /// RRTop-k by hand: with a small ε, only the most likely class can be an answer. With a larger ε, the
    /// next classes can be answers too. A class of probability 0 never is an answer.
    #[test]
    fn unlikely_classes_are_left_out_where_that_is_more_often_right() {
        for (epsilon, kept) in [(0.1, &[1][..]), (1.0, &[1, 3]), (3.0, &[0, 1, 3]), (20.0, &[0, 1, 3])] {
            let mechanism = RandomisedResponse::new(epsilon, &UNEVEN).expect("sound");
            assert_eq!(mechanism.kept, kept, "{epsilon}");
            let right = |k: usize| {
                let mass: f64 = [0.6, 0.3, 0.1, 0.0][..k].iter().sum();
                mass * epsilon.exp() / (epsilon.exp() + k as f64 - 1.0)
            };
            assert!((1..=4).all(|k| right(k) <= right(kept.len())), "{epsilon}");
        }
    }

    /// Frequencies of 40,000 answers for each label at α = 1e-6 (Hoeffding, over all entries of all tables).
    #[test]
    fn answers_are_as_frequent_as_stated() {
        const DRAWS: usize = 40_000;
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        for mechanism in [
            RandomisedResponse::uniform(0.5, 3).expect("sound"),
            RandomisedResponse::uniform(2.0, 10).expect("sound"),
            RandomisedResponse::new(1.0, &UNEVEN).expect("sound"),
        ] {
            let entries = 9.0 + 100.0 + 16.0;
            let margin = ((2.0 * entries / 1e-6f64).ln() / (2.0 * DRAWS as f64)).sqrt();
            for label in 0..mechanism.classes {
                let mut counts = vec![0usize; mechanism.classes];
                (0..DRAWS).for_each(|_| counts[mechanism.answer(label, &mut rng)] += 1);
                for (answer, &count) in counts.iter().enumerate() {
                    let (found, expected) =
                        (count as f64 / DRAWS as f64, mechanism.probability(answer, label));
                    assert!((found - expected).abs() < margin, "{label} {answer}: {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn the_grid_keeps_its_bound_and_its_distribution() {
        for epsilon in [0.5, 3.0, 20.0] {
            let mechanism = GridLaplace::new(epsilon, -10.0, 30.0).expect("sound");
            let (first, last) = (mechanism.point(-1e9), mechanism.point(1e9));
            assert_eq!((first, last), (0, i64::from(GRID)), "labels are clipped to the bounds");
            let ratio = |answer| {
                let p = |point| mechanism.probability(answer, point);
                ((p)(first) / (p)(last)).ln().abs()
            };
            let worst = (-5_000..10_000).map(ratio).fold(0.0, f64::max);
            assert!(worst <= epsilon * (1.0 + 1e-12) && worst > epsilon * (1.0 - 1e-9), "{epsilon}: {worst}");
        }
        // P(answer > y + 0.2 range) at α = 1e-6 by Hoeffding's inequality.
        let mechanism = GridLaplace::new(3.0, 0.0, 1.0).expect("sound");
        let mut rng = ChaCha20Rng::seed_from_u64(8);
        let draws: Vec<f64> = (0..100_000).map(|_| mechanism.answer(0.25, &mut rng)).collect();
        let margin = ((4.0 / 1e-6f64).ln() / 200_000.0).sqrt();
        for bound in [-0.5, 0.1, 0.25, 0.45, 1.0] {
            let found = draws.iter().filter(|&&x| x > bound).count() as f64 / draws.len() as f64;
            let point = (bound * f64::from(GRID)).floor() as i64;
            let most = point + 200_000;
            let expected: f64 =
                (point + 1..most).map(|n| mechanism.probability(n, mechanism.point(0.25))).sum();
            assert!((found - expected).abs() < margin, "{bound}: {found} {expected}");
        }
    }

    /// With 53-bit uniforms, the logarithm of a float leaves gaps. At ε = 1e-3, answers above 1.5e8 steps
    /// were impossible for one label and possible for the next, and smaller answers were multiples of large
    /// steps. The exact sampler has the moments of the discrete Laplace distribution at every ε: mean 0 and
    /// E|n| = 1/sinh(ε/GRID). Each is within six standard errors (α = 4e-9 for all).
    #[test]
    fn noise_has_the_exact_distribution_at_every_epsilon() {
        const DRAWS: usize = 20_000;
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        for epsilon in [1e-3, 1.0, 20.0] {
            let rate = (epsilon * UNIT as f64) as u64;
            let draws: Vec<f64> =
                (0..DRAWS).map(|_| discrete_laplace(rate, UNIT * u64::from(GRID), &mut rng) as f64).collect();
            let step = epsilon / f64::from(GRID);
            let (mean, size) = (
                draws.iter().sum::<f64>() / DRAWS as f64,
                draws.iter().map(|x| x.abs()).sum::<f64>() / DRAWS as f64,
            );
            // Var n ≤ 2/step², Var|n| ≤ 1/step² (both approach it as the step falls).
            let error = 6.0 / step / (DRAWS as f64).sqrt();
            assert!(mean.abs() < error * 2f64.sqrt(), "{epsilon}: {mean}");
            assert!((size - 1.0 / step.sinh()).abs() < error, "{epsilon}: {size}");
        }
        // A rate of 1: P(0) = tanh(1/2) = 0.4621, P(1) = P(0)/e, at α = 1e-6 by Hoeffding's inequality.
        let margin = ((2.0 * 3.0 / 1e-6f64).ln() / (2.0 * DRAWS as f64)).sqrt();
        let draws: Vec<i64> = (0..DRAWS).map(|_| discrete_laplace(7, 7, &mut rng)).collect();
        for (value, expected) in [(0, 0.4621), (1, 0.1700), (-1, 0.1700)] {
            let found = draws.iter().filter(|&&n| n == value).count() as f64 / DRAWS as f64;
            assert!((found - expected).abs() < margin, "{value}: {found}");
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        for (prior, rule) in [
            (&[1.0][..], "two classes"),
            (&[0.5, 0.6], "add up to 1"),
            (&[-0.5, 1.5], "probabilities"),
            (&[f64::NAN, 1.0], "probabilities"),
        ] {
            let error = RandomisedResponse::new(1.0, prior).expect_err("refused").to_string();
            assert!(error.contains("prior") && error.contains(rule), "{error}");
        }
        for epsilon in [0.0, -1.0, 21.0, f64::NAN, f64::INFINITY] {
            assert!(RandomisedResponse::uniform(epsilon, 2).is_err(), "{epsilon}");
            assert!(GridLaplace::new(epsilon, 0.0, 1.0).is_err(), "{epsilon}");
        }
        for (low, high) in [(1.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(GridLaplace::new(1.0, low, high).is_err(), "{low} {high}");
        }
    }
}
