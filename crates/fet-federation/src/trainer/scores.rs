//! Scores of the primary's model: predictions of evaluated rows, and all metrics.

use fet_core::objective::LabelScale;
use fet_core::registry::Violation;
use fet_core::rng::ChaCha8Rng;
use fet_eval::conformal::Conformal;
use fet_eval::evaluation::Evaluation;
use fet_eval::{Metric, Predictions};

/// The best model's predictions for a split's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The rows, in their order.
    pub rows: Vec<usize>,
    /// True label of each row: a number or a class.
    pub truth: Vec<f64>,
    /// [`LabelScale::predictions`] of each row.
    pub values: Vec<f64>,
}

/// Rules by which predictions are scored.
pub(super) struct Scoring {
    /// Metric that selects the epoch.
    metric: Metric,
    scale: LabelScale,
    /// Name of the column that groups test rows, if there is one, and its value for each record.
    groups: Option<(String, Vec<String>)>,
}

impl Scoring {
    /// Makes the rules. Refuses a metric that the task or these labels of the validation rows do not define.
    pub(super) fn new(
        metric: Metric,
        scale: LabelScale,
        groups: Option<(String, Vec<String>)>,
        validation: &[f64],
    ) -> Result<Self, Violation> {
        let task = scale.objective.scored();
        let refuse = |rule: String| Err(Violation::new("scores.metric", rule, format!("\"{metric}\"")));
        if !metric.fits(task) {
            let known: Vec<&str> = Metric::for_task(task).map(Metric::name).collect();
            return refuse(format!("must be one for this task: {}", known.join(", ")));
        }
        let scoring = Self { metric, scale, groups };
        // The labels alone determine whether a metric is defined.
        let even = 1.0 / task.classes().max(1) as f64;
        let rows = validation.len();
        let outputs = vec![even; rows * task.width()];
        let Ok(predictions) = Predictions::new(task, validation, &outputs) else { return Ok(scoring) };
        match predictions.score(metric) {
            Ok(_) => Ok(scoring),
            Err(why) => refuse(format!("must be defined on the {rows} validation rows ({why})")),
        }
    }

    /// Returns the metric that selects the epoch.
    pub(super) fn metric(&self) -> Metric {
        self.metric
    }

    /// Returns the predictions that activated outputs for these rows make.
    pub(super) fn evaluated(&self, rows: &[usize], labels: &[f64], outputs: &[f32]) -> Evaluated {
        Evaluated {
            rows: rows.to_vec(),
            truth: rows.iter().map(|&row| labels[row]).collect(),
            values: self.scale.predictions(outputs),
        }
    }

    /// Returns the metric that selects the epoch; NaN if it is not defined.
    pub(super) fn score(&self, evaluated: &Evaluated) -> f64 {
        self.predictions(evaluated).and_then(|rows| rows.score(self.metric).ok()).unwrap_or(f64::NAN)
    }

    /// Returns every metric of validation and test rows, also by group if the settings name a column. `rng`
    /// draws the bootstrap samples.
    pub(super) fn evaluation(
        &self,
        [validation, test]: &[Evaluated; 2],
        rng: &mut ChaCha8Rng,
    ) -> Option<Evaluation> {
        let of_tested =
            |values: &[String]| -> Vec<String> { test.rows.iter().map(|&row| values[row].clone()).collect() };
        let groups = self.groups.as_ref().map(|(name, values)| (name.as_str(), of_tested(values)));
        let groups = groups.as_ref().map(|(name, values)| (*name, values.as_slice()));
        let (validation, test) = (self.predictions(validation)?, self.predictions(test)?);
        Some(Evaluation::compute(self.metric, &validation, &test, groups, rng))
    }

    /// Returns the bound on the predictions of new rows with this probability, from the errors on the
    /// validation rows.
    pub(super) fn conformal(&self, validation: &Evaluated, coverage: f64) -> Option<Conformal> {
        Conformal::new(&self.predictions(validation)?, 1.0 - coverage).ok()
    }

    /// Returns the predictions in the form for scores; `None` if an output is NaN.
    fn predictions<'a>(&self, evaluated: &'a Evaluated) -> Option<Predictions<'a>> {
        Predictions::new(self.scale.objective.scored(), &evaluated.truth, &evaluated.values).ok()
    }
}
