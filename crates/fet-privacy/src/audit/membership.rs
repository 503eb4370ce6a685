//! Membership inference: likelihood ratios from shadow values, and the separation of members from others by
//! scores.
//!
//! An attacker that can train shadow models with and without a target knows the distribution of the target's
//! statistic in both cases. Carlini et al. ("Membership Inference Attacks From First Principles", 2022) fit a
//! Gaussian to each case and score a target by the ratio of the two densities. The measure of success is the
//! share of members found at a *low* rate of false alarms, not the average over all rates. This module trains
//! no model.

use super::binomial::{highest, lowest};

/// Statistic of one target in shadow runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shadow {
    /// Values from runs with the target.
    pub inside: Vec<f64>,
    /// Values from runs without the target.
    pub outside: Vec<f64>,
}

/// Source of the standard deviations of a target's Gaussians.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// The target's shadow values, for about 64 shadow runs or more.
    Own,
    /// All targets: one deviation inside and one outside, for fewer shadow runs (Carlini et al. 2022, section
    /// VI.C).
    Pooled,
}

/// Returns a score for each target, higher if the target looks more like a member: log N(x; μ_in, σ_in²) −
/// log N(x; μ_out, σ_out²) of its observed statistic x (Carlini et al. 2022, equation 4). The score is 0 for
/// a target without shadow values inside or outside.
///
/// `observed` and `shadows` have one entry for each target.
pub fn likelihood_ratios(observed: &[f64], shadows: &[Shadow], deviation: Deviation) -> Vec<f64> {
    let pooled = [|shadow: &Shadow| shadow.inside.clone(), |shadow: &Shadow| shadow.outside.clone()]
        .map(|side| pooled_variance(shadows.iter().map(side)));
    let variances = |shadow: &Shadow| match deviation {
        Deviation::Own => [variance(&shadow.inside), variance(&shadow.outside)],
        Deviation::Pooled => pooled,
    };
    let score = |(&x, shadow): (&f64, &Shadow)| {
        if shadow.inside.is_empty() || shadow.outside.is_empty() {
            return 0.0;
        }
        let [inside, outside] = variances(shadow);
        log_density(x, mean(&shadow.inside), inside) - log_density(x, mean(&shadow.outside), outside)
    };
    observed.iter().zip(shadows).map(score).collect()
}

/// Smallest variance; smaller ones are rounding errors.
const LEAST_VARIANCE: f64 = 1e-24;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

fn variance(values: &[f64]) -> f64 {
    squares(values) / (values.len().max(2) - 1) as f64
}

/// Returns the pooled variance around each target's mean.
fn pooled_variance(targets: impl Iterator<Item = Vec<f64>>) -> f64 {
    let (mut sum, mut free) = (0.0, 0usize);
    for values in targets.filter(|values| !values.is_empty()) {
        sum += squares(&values);
        free += values.len() - 1;
    }
    sum / free.max(1) as f64
}

fn log_density(x: f64, mean: f64, variance: f64) -> f64 {
    let variance = variance.max(LEAST_VARIANCE);
    -0.5 * (x - mean).powi(2) / variance - 0.5 * variance.ln()
}

/// Estimate with an interval that contains the true value with probability at least 1 − α.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Estimated value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Returns a frequency with its exact interval, α/2 on each side (Clopper and Pearson 1934). Without
    /// trials, the interval is [0, 1].
    fn from_frequency(found: usize, trials: usize, alpha: f64) -> Self {
        if trials == 0 {
            return Self { value: 0.0, low: 0.0, high: 1.0 };
        }
        let (found, trials) = (found as u64, trials as u64);
        Self {
            value: found as f64 / trials as f64,
            low: lowest(found, trials, alpha / 2.0),
            high: highest(found, trials, alpha / 2.0),
        }
    }
}

/// Separation of members from others by their scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Separation {
    /// Scores of members, ascending.
    members: Vec<f64>,
    /// Scores of others, ascending.
    others: Vec<f64>,
    /// Disjoint pairs of a member's and another target's score, in the original order.
    pairs: Vec<(f64, f64)>,
}

impl Separation {
    /// Creates the separation from the scores of targets and their membership. A NaN score counts as the
    /// lowest of all and is never above a threshold.
    pub fn from_scores(scores: &[f64], members: &[bool]) -> Self {
        let side = |wanted: bool| -> Vec<f64> {
            let chosen = scores.iter().zip(members).filter(|(_, member)| **member == wanted);
            chosen.map(|(&score, _)| if score.is_nan() { f64::NEG_INFINITY } else { score }).collect()
        };
        let (mut members, mut others) = (side(true), side(false));
        let pairs = members.iter().copied().zip(others.iter().copied()).collect();
        members.sort_by(f64::total_cmp);
        others.sort_by(f64::total_cmp);
        Self { members, others, pairs }
    }

    /// Returns the share of members with a score above all but `false_alarms` (a share) of the others'
    /// scores, and its exact interval. The threshold is the score of one of the others. With fewer than
    /// 1/`false_alarms` others, it is therefore the highest of their scores.
    pub fn true_positives(&self, false_alarms: f64, alpha: f64) -> Estimate {
        let allowed = (false_alarms * self.others.len() as f64 + 1e-9).floor() as usize;
        let threshold = match self.others.len().checked_sub(allowed + 1) {
            Some(place) => self.others[place],
            None => f64::NEG_INFINITY,
        };
        let found = self.members.len() - self.members.partition_point(|&score| score <= threshold);
        Estimate::from_frequency(found, self.members.len(), alpha)
    }

    /// Returns the probability that a member has a higher score than another target. Ties count half, and 1/2
    /// is chance. The interval is exact for the frequency in disjoint pairs, which are independent. Ties
    /// widen the interval at both ends.
    pub fn auc(&self, alpha: f64) -> Estimate {
        let pairs = self.members.len() as f64 * self.others.len() as f64;
        if pairs == 0.0 {
            return Estimate { value: 0.5, low: 0.0, high: 1.0 };
        }
        let below = |&score: &f64| {
            let (less, most) = (
                self.others.partition_point(|&other| other < score),
                self.others.partition_point(|&other| other <= score),
            );
            0.5 * (less + most) as f64
        };
        let value = self.members.iter().map(below).sum::<f64>() / pairs;
        let count = |won: fn(&(f64, f64)) -> bool| self.pairs.iter().filter(|pair| won(pair)).count();
        let low =
            Estimate::from_frequency(count(|(member, other)| member > other), self.pairs.len(), alpha).low;
        let high =
            Estimate::from_frequency(count(|(member, other)| member >= other), self.pairs.len(), alpha).high;
        // All pairs contain more information than the disjoint pairs, whose interval may miss the estimate.
        Estimate { value, low: low.min(value), high: high.max(value) }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::tests::{cdf, normal};
    use super::*;

    /// Returns targets whose statistic is N(m_i + d, 1) for members and N(m_i, 1) for others. The level m_i
    /// of each target varies far more than d.
    fn targets(count: usize, distance: f64, runs: usize) -> (Vec<f64>, Vec<bool>, Vec<Shadow>) {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut all = (Vec::new(), Vec::new(), Vec::new());
        for target in 0..count {
            let level = 10.0 * normal(&mut rng);
            let member = target % 2 == 0;
            let mut draw = |inside: bool| level + distance * f64::from(u8::from(inside)) + normal(&mut rng);
            let shadow = Shadow {
                inside: (0..runs).map(|_| draw(true)).collect(),
                outside: (0..runs).map(|_| draw(false)).collect(),
            };
            all.0.push(draw(member));
            all.1.push(member);
            all.2.push(shadow);
        }
        all
    }

    /// With known Gaussians, the best test of d finds Φ(d − Φ⁻¹(1−f)) of the members at a rate f of false
    /// alarms, and its AUC is Φ(d/√2). At α = 1e-6, the intervals contain these values; scores without shadow
    /// values do not reach them.
    #[test]
    fn likelihood_ratios_find_what_the_best_test_finds() {
        let (observed, members, shadows) = targets(40_000, 3.0, 256);
        let alpha = 1e-6;
        for deviation in [Deviation::Own, Deviation::Pooled] {
            let scores = likelihood_ratios(&observed, &shadows, deviation);
            let separation = Separation::from_scores(&scores, &members);
            // Φ⁻¹ of 0.99 and 0.999.
            for (rate, quantile) in [(0.01, 2.326_348), (0.001, 3.090_232)] {
                let (found, expected) = (separation.true_positives(rate, alpha), cdf(3.0 - quantile));
                // The threshold is estimated as well: its error, and that of 256 shadow runs, is within 0.05.
                let near = found.low - 0.05 <= expected && expected <= found.high + 0.05;
                assert!(near, "{deviation:?} {rate}: {found:?}, not {expected}");
                assert!(found.low > 20.0 * rate, "{deviation:?} {rate}: {found:?}");
            }
            let (auc, expected) = (separation.auc(alpha), cdf(3.0 / std::f64::consts::SQRT_2));
            assert!((auc.value - expected).abs() < 0.005, "{auc:?}, not {expected}");
            assert!(auc.low <= expected && expected <= auc.high && auc.low > 0.9, "{auc:?}, not {expected}");
        }
        let without = Separation::from_scores(&observed, &members).auc(alpha);
        assert!(without.value < 0.65, "the levels hide what shadows reveal: {without:?}");
    }

    /// With only four shadow runs, the deviations of single targets are unreliable and a pooled deviation is
    /// better.
    #[test]
    fn pooled_deviations_are_better_where_shadows_are_few() {
        let (observed, members, shadows) = targets(4_000, 3.0, 4);
        let found = |deviation| {
            let scores = likelihood_ratios(&observed, &shadows, deviation);
            Separation::from_scores(&scores, &members).true_positives(0.01, 0.05).value
        };
        let (own, pooled) = (found(Deviation::Own), found(Deviation::Pooled));
        assert!(pooled > own + 0.1, "{own} and {pooled}");
    }

    #[test]
    fn scores_that_tell_nothing_find_as_many_as_false_alarms() {
        let (observed, members, shadows) = targets(20_000, 0.0, 64);
        let separation =
            Separation::from_scores(&likelihood_ratios(&observed, &shadows, Deviation::Own), &members);
        // α = 1e-6.
        let (auc, found) = (separation.auc(1e-6), separation.true_positives(0.01, 1e-6));
        assert!(auc.low <= 0.5 && 0.5 <= auc.high && (auc.value - 0.5).abs() < 0.02, "{auc:?}");
        assert!(found.low <= 0.012 && found.value < 0.02, "{found:?}");
    }

    #[test]
    fn small_cases_are_counted_by_hand() {
        let scores = [4.0, 3.0, 2.0, 1.0, 3.0, f64::NAN];
        let members = [true, true, false, false, false, true];
        let separation = Separation::from_scores(&scores, &members);
        // Members 4, 3, −∞; others 3, 2, 1. Wins: 3 + (2 + ½) + 0 of 9.
        assert!((separation.auc(0.05).value - 5.5 / 9.0).abs() < 1e-12);
        assert!((separation.true_positives(0.0, 0.05).value - 1.0 / 3.0).abs() < 1e-12);
        assert!((separation.true_positives(0.34, 0.05).value - 2.0 / 3.0).abs() < 1e-12);
        // NaN is never above a threshold.
        assert!((separation.true_positives(1.0, 0.05).value - 2.0 / 3.0).abs() < 1e-12);
        let nobody = Separation::from_scores(&[1.0], &[false]);
        assert_eq!((nobody.auc(0.05).value, nobody.true_positives(0.01, 0.05).value), (0.5, 0.0));
        let lacking = likelihood_ratios(&[1.0], &[Shadow::default()], Deviation::Own);
        assert_eq!(lacking, [0.0]);
    }
}
