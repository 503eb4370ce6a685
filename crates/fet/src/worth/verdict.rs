//! Answer of `fet worth`: the best methods, the gain from the other parties, and the verdict.

use fet_eval::Metric;
use serde::Serialize;

use super::plan::Receives;

/// Improvement of the metric from one variant to another, positive if the second is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Gain {
    /// Mean over splits, in the metric's unit.
    pub(super) mean: f64,
    /// Lower end of the 95 % interval over test rows and splits.
    pub(super) lower: f64,
    /// Upper end of that interval.
    pub(super) upper: f64,
    /// Number of different test rows over all splits.
    pub(super) rows: usize,
}

/// Number of different test rows below which no verdict is "no": two methods often predict the same there.
pub(super) const FEW_TESTED: usize = 100;

/// Result of a method.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MethodResult {
    /// Name of the method.
    pub(super) name: String,
    /// Data that the primary receives from the other parties.
    pub(super) receives: Receives,
    /// Figures on the primary's own columns.
    pub(super) alone: Figures,
    /// Figures with the other parties.
    pub(super) with: Figures,
    /// Gain from the other parties.
    pub(super) gain: Gain,
}

/// Figures of a variant, as means over splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Figures {
    /// Metric on the validation rows, which choose the best method.
    pub(super) validation: f64,
    /// Metric on the test rows.
    pub(super) test: f64,
    /// Mean seconds of a run.
    pub(super) seconds: f64,
}

/// Verdict on federating.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// The other parties improve the prediction.
    Yes,
    /// The other parties improve the prediction by less than [`SMALL`], or make it worse.
    No,
    /// The rows are too few to decide.
    NotShown,
}

/// Gain, as a share of the error without the other parties, below which federating is not worth its effort.
pub(super) const SMALL: f64 = 0.01;

/// Best methods, by the validation rows.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Answer {
    /// Verdict.
    pub(super) verdict: Verdict,
    /// Index of the best method on the primary's own columns.
    pub(super) alone: usize,
    /// Index of the best method with the other parties.
    pub(super) with: usize,
    /// Index of the best method that keeps all columns at their parties; `None` if it is `with`.
    pub(super) federated: Option<usize>,
    /// Gain of the best method with the other parties over the best method alone.
    pub(super) gain: Gain,
    /// Gain of the best federated method over the best method alone, if it is not `with`.
    pub(super) federated_gain: Option<Gain>,
    /// Gain of the best method with the other parties over itself with random links.
    pub(super) over_random: Option<Gain>,
    /// Method to use.
    pub(super) recommended: Recommendation,
}

impl Answer {
    /// Returns the gains that a verdict of "yes" needs.
    pub(super) fn gains(&self) -> Vec<&Gain> {
        [Some(&self.gain), self.over_random.as_ref()].into_iter().flatten().collect()
    }
}

/// Method that the command recommends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Recommendation {
    /// Name of the method, or of its variant on the primary's own columns.
    pub(super) name: String,
    /// Data that the primary receives from the other parties; `None` if the method uses its own columns alone.
    pub(super) receives: Option<Receives>,
    /// Settings, each as `path=value`.
    pub(super) sets: Vec<String>,
}

/// Returns the index of the method with the best validation figure.
pub(super) fn best(
    metric: Metric,
    results: &[MethodResult],
    figures: impl Fn(&MethodResult) -> Option<Figures>,
) -> Option<usize> {
    let known = results.iter().enumerate().filter_map(|(at, result)| Some((at, figures(result)?.validation)));
    let known = known.filter(|(_, value)| value.is_finite());
    let better = |new: f64, old: f64| metric.direction().improves(new, old);
    known
        .fold(None, |best, (at, value)| match best {
            Some((_, old)) if !better(value, old) => best,
            _ => Some((at, value)),
        })
        .map(|(at, _)| at)
}

/// Returns the verdict for the gain over the best method alone and over random links.
///
/// `error` is the error of the best method alone, in the metric's unit. A gain counts only if the true links
/// improve on random links: any other gain comes from the method and not from the other parties' records.
pub(super) fn verdict(gain: &Gain, over_random: Option<&Gain>, error: f64) -> Verdict {
    let is_real = over_random.is_none_or(|random| random.lower > 0.0);
    let is_small = |gain: &Gain| gain.upper <= SMALL * error && gain.rows >= FEW_TESTED;
    if gain.lower > 0.0 && is_real {
        Verdict::Yes
    } else if is_small(gain) || over_random.is_some_and(is_small) {
        Verdict::No
    } else {
        Verdict::NotShown
    }
}

/// Returns the distance of a metric's value from a perfect prediction, in the metric's unit.
pub(super) fn error(metric: Metric, value: f64) -> f64 {
    match metric.direction() {
        fet_eval::Direction::Maximise => 1.0 - value,
        fet_eval::Direction::Minimise => value,
    }
    .abs()
}

/// Returns the number of labelled rows at which all these gains would be shown, if intervals shrink with the square
/// root of the number of rows. `None` if a gain is not positive.
pub(super) fn rows_needed(gains: &[&Gain], rows: usize) -> Option<usize> {
    let needed = |gain: &&Gain| {
        let half = (gain.upper - gain.lower) / 2.0;
        // A test of level 5 % with power 80 % needs a gain of 2.8 standard errors; the interval has 1.96.
        let ratio = half / 1.96 * 2.8 / gain.mean;
        (gain.mean > 0.0 && half.is_finite()).then(|| (rows as f64 * ratio.powi(2)).ceil() as usize)
    };
    gains.iter().map(needed).try_fold(0, |most, needed| needed.map(|needed| most.max(needed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(mean: f64, half: f64) -> Gain {
        Gain { mean, lower: mean - half, upper: mean + half, rows: FEW_TESTED }
    }

    #[test]
    fn a_gain_counts_only_over_random_links() {
        let check = |over_alone: Gain, over_random: Option<Gain>, expected: Verdict| {
            assert_eq!(
                verdict(&over_alone, over_random.as_ref(), 10.0),
                expected,
                "{over_alone:?} {over_random:?}"
            );
        };
        check(gain(1.0, 0.5), Some(gain(1.0, 0.5)), Verdict::Yes);
        check(gain(1.0, 0.5), Some(gain(0.0, 0.05)), Verdict::No);
        check(gain(1.0, 0.5), Some(gain(0.3, 0.5)), Verdict::NotShown);
        check(gain(1.0, 1.5), Some(gain(1.0, 0.5)), Verdict::NotShown);
        check(gain(-1.0, 0.5), None, Verdict::No);
        check(gain(0.02, 0.05), Some(gain(0.02, 0.2)), Verdict::No);
        check(gain(1.0, 0.5), None, Verdict::Yes);
        check(gain(1.0, f64::INFINITY), None, Verdict::NotShown);
    }

    #[test]
    fn equal_predictions_of_few_rows_are_no_evidence() {
        let equal = |rows: usize| Gain { rows, ..gain(0.0, 0.0) };
        assert_eq!(verdict(&gain(1.0, 2.0), Some(&equal(FEW_TESTED - 1)), 10.0), Verdict::NotShown);
        assert_eq!(verdict(&equal(FEW_TESTED - 1), None, 10.0), Verdict::NotShown);
        assert_eq!(verdict(&equal(FEW_TESTED), None, 10.0), Verdict::No);
    }

    #[test]
    fn the_rarest_evidence_decides_the_rows_needed() {
        let rows = rows_needed(&[&gain(0.7, 1.96)], 100).expect("positive");
        assert_eq!(rows, 1600, "2.8 / 0.7 = 4 standard errors, and 16 times the rows");
        assert_eq!(rows_needed(&[&gain(2.0, 0.1), &gain(0.7, 1.96)], 100), Some(1600));
        assert_eq!(rows_needed(&[&gain(0.7, 1.96), &gain(-0.1, 1.0)], 100), None);
    }
}
