//! Scores of the model: outputs for the validation and the test rows, and all metrics.

use fet_core::parameters::host;
use fet_core::registry::Violation;
use fet_core::rng::{Purpose, stream};
use fet_eval::conformal::Conformal;
use fet_eval::evaluation::Evaluation;
use fet_eval::{Metric, Predictions};

use super::phases::Watch;
use super::{RunError, Trainer};
use crate::schedule::Part;

/// Result of evaluating a split's rows.
pub(super) struct Outcome {
    /// Metric that selects the epoch; may be NaN.
    pub(super) score: f64,
    /// Activated outputs, row by row, in the order of the split.
    pub(super) outputs: Vec<f32>,
}

/// The best model's predictions for a split's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The rows, in their order.
    pub rows: Vec<usize>,
    /// True label of each row: a number or a class.
    pub truth: Vec<f64>,
    /// [`fet_core::objective::Objective::predictions`] of each row.
    pub values: Vec<f64>,
}

impl Trainer {
    /// Returns the names of the classes; empty if the classes are numbers.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Returns the row of a record in the primary's file, both from 0.
    pub fn file_row(&self, record: usize) -> usize {
        self.file_rows.get(record).copied().unwrap_or(record)
    }

    /// Returns the metric that selects the epoch.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Returns the outputs for a split's rows: all parties take part, without dropout.
    pub(super) fn evaluate(&mut self, part: Part, epoch: usize) -> Result<Outcome, RunError> {
        let mut outputs = Vec::new();
        let mut watch = Watch::start();
        for (round, rows) in self.schedule.evaluation(part, epoch) {
            let active = self.active_parties(round);
            let memory = self.memory(round, &rows, &active)?.map(|(memory, _)| memory);
            let output = self.predicted(&self.records, &rows, memory);
            self.show_outputs(round, &rows, &output);
            outputs.extend(host(output));
        }
        watch.lap(&mut self.phases.evaluate);
        let evaluated = self.evaluated_as(part, &outputs);
        let score = self.predictions(&evaluated).and_then(|rows| rows.score(self.metric).ok());
        Ok(Outcome { score: score.unwrap_or(f64::NAN), outputs })
    }

    /// Returns the best model's predictions for the validation and the test rows; `None` before the first
    /// epoch.
    pub fn evaluated(&self) -> Option<[Evaluated; 2]> {
        let [validation, test] = self.evaluated.as_ref()?;
        Some([self.evaluated_as(Part::Validation, validation), self.evaluated_as(Part::Test, test)])
    }

    /// Returns every metric of the best model, also by group if the settings name a column. Returns `None`
    /// before the first epoch.
    pub fn evaluation(&self) -> Option<Evaluation> {
        let [validation, test] = self.evaluated()?;
        let of_tested =
            |values: &[String]| -> Vec<String> { test.rows.iter().map(|&row| values[row].clone()).collect() };
        let groups = self.groups.as_ref().map(|(name, values)| (name.as_str(), of_tested(values)));
        let groups = groups.as_ref().map(|(name, values)| (*name, values.as_slice()));
        let (validation, test) = (self.predictions(&validation)?, self.predictions(&test)?);
        let mut rng = stream(self.seed, 0, Purpose::Bootstrap, 0);
        Some(Evaluation::of(self.metric, &validation, &test, groups, &mut rng))
    }

    /// Returns the bound on the predictions of new rows with this probability, from the best model's errors
    /// on the validation rows.
    pub fn conformal(&self, coverage: f64) -> Option<Conformal> {
        let [validation, _] = self.evaluated()?;
        Conformal::new(&self.predictions(&validation)?, 1.0 - coverage).ok()
    }

    /// Returns the outputs of the best epoch, for a checkpoint.
    pub(crate) fn best_outputs(&self) -> Option<&[Vec<f32>; 2]> {
        self.evaluated.as_ref()
    }

    /// Restores the outputs of the best epoch from a checkpoint.
    pub(crate) fn keep_outputs(&mut self, outputs: Option<[Vec<f32>; 2]>) {
        self.evaluated = outputs;
    }

    fn evaluated_as(&self, part: Part, outputs: &[f32]) -> Evaluated {
        let rows = match part {
            Part::Validation => &self.split().validation,
            Part::Test => &self.split().test,
        };
        Evaluated {
            rows: rows.clone(),
            truth: rows.iter().map(|&row| self.labels[row]).collect(),
            values: self.objective.predictions(outputs),
        }
    }

    /// Returns the predictions in the form for scores; `None` if an output is NaN.
    fn predictions<'a>(&self, evaluated: &'a Evaluated) -> Option<Predictions<'a>> {
        Predictions::new(self.objective.scored(), &evaluated.truth, &evaluated.values).ok()
    }

    /// Refuses a metric that the task or the validation rows do not define.
    pub(super) fn check_metric(&self) -> Result<(), Violation> {
        let task = self.objective.scored();
        let refuse =
            |rule: String| Err(Violation::new("scores.metric", rule, format!("\"{}\"", self.metric)));
        if !self.metric.fits(task) {
            let known: Vec<&str> = Metric::of(task).map(Metric::name).collect();
            return refuse(format!("must be one for this task: {}", known.join(", ")));
        }
        // The labels alone determine whether a metric is defined.
        let even = 1.0 / task.classes().max(1) as f64;
        let rows = self.split().validation.len();
        let outputs = vec![even; rows * task.width()];
        let truth: Vec<f64> = self.split().validation.iter().map(|&row| self.labels[row]).collect();
        let Ok(predictions) = Predictions::new(task, &truth, &outputs) else { return Ok(()) };
        match predictions.score(self.metric) {
            Ok(_) => Ok(()),
            Err(why) => refuse(format!("must be defined on the {rows} validation rows ({why})")),
        }
    }
}
