//! Best methods by the validation rows, and the answer that they give on the test rows.

use anyhow::Context;
use fet_eval::Metric;
use fet_study::CollectedCell;

use super::compare::gain;
use super::plan::{MethodPair, Receives};
use super::verdict::{self, Answer, Figures, Gain, MethodResult, Recommendation, Verdict};

/// Returns the cells of a variant.
pub(super) fn of_variant<'a>(cells: &'a [CollectedCell], name: &str) -> Vec<&'a CollectedCell> {
    cells.iter().filter(|cell| cell.variant == name).collect()
}

/// Returns the mean figures of a variant.
pub(super) fn figures(cells: &[&CollectedCell]) -> Figures {
    let mean = |value: fn(&CollectedCell) -> f64| {
        cells.iter().map(|cell| value(cell)).sum::<f64>() / cells.len() as f64
    };
    Figures {
        validation: mean(|cell| cell.report.best.validation),
        test: mean(|cell| cell.report.best.test),
        seconds: mean(|cell| cell.report.cost.seconds),
    }
}

/// Best methods by the validation rows.
pub(super) struct Choice<'a> {
    pub(super) alone: (usize, &'a MethodPair),
    pub(super) with: (usize, &'a MethodPair),
    pub(super) federated: Option<(usize, &'a MethodPair)>,
    pub(super) metric: Metric,
}

impl<'a> Choice<'a> {
    pub(super) fn new(
        methods: &'a [MethodPair],
        results: &[MethodResult],
        metric: Metric,
    ) -> anyhow::Result<Self> {
        let at = |index: usize| (index, &methods[index]);
        let missing = "no run has a finite validation figure";
        let alone = verdict::best(metric, results, |result| Some(result.alone)).context(missing)?;
        let with = verdict::best(metric, results, |result| Some(result.with)).context(missing)?;
        let is_federated = |result: &MethodResult| result.receives == Receives::Representations;
        let federated = verdict::best(metric, results, |result| is_federated(result).then_some(result.with));
        Ok(Self {
            alone: at(alone),
            with: at(with),
            federated: federated.filter(|best| *best != with).map(at),
            metric,
        })
    }

    pub(super) fn answer(
        &self,
        results: &[MethodResult],
        over_random: Option<Gain>,
        cells: &[CollectedCell],
        constant: Option<f64>,
    ) -> anyhow::Result<Answer> {
        let alone = of_variant(cells, self.alone.1.control);
        let over_alone = |method: &MethodPair| gain(&of_variant(cells, method.name), &alone, self.metric);
        let best = over_alone(self.with.1)?;
        let federated_gain = self.federated.map(|(_, method)| over_alone(method)).transpose()?;
        let error = verdict::error(self.metric, results[self.alone.0].alone.test);
        let beats_constant = constant.is_none_or(|constant| {
            self.metric.direction().improves(results[self.with.0].with.test, constant)
        });
        let verdict = match verdict::verdict(&best, over_random.as_ref(), error) {
            Verdict::Yes if !beats_constant => Verdict::NotShown,
            verdict => verdict,
        };
        Ok(Answer {
            verdict,
            recommended: self.recommend(verdict, federated_gain.as_ref()),
            alone: self.alone.0,
            with: self.with.0,
            federated: self.federated.map(|(at, _)| at),
            gain: best,
            federated_gain,
            over_random,
        })
    }

    /// Returns the method to use: a federated one if the other parties help it, too.
    fn recommend(&self, verdict: Verdict, federated: Option<&Gain>) -> Recommendation {
        let method = match (verdict, self.federated) {
            (Verdict::No | Verdict::NotShown, _) => {
                let (name, sets) = (self.alone.1.control.to_string(), self.alone.1.alone.clone());
                return Recommendation { name, receives: None, sets };
            }
            (Verdict::Yes, Some((_, method))) if federated.is_some_and(|gain| gain.lower > 0.0) => method,
            (Verdict::Yes, _) => self.with.1,
        };
        let (name, sets) = (method.name.to_string(), method.with.clone());
        Recommendation { name, receives: Some(method.receives), sets }
    }
}
