//! `fet predict --labels`: metrics, bias and coverage on new rows with known labels, next to those of the run's
//! test rows.

use std::collections::BTreeMap;
use std::path::Path;

use fet_core::data::{Column, Task};
use fet_core::objective::Objective;
use fet_core::rng::{Purpose, stream};
use fet_eval::conformal::Conformal;
use fet_eval::{Coverage, Estimate, Evaluation, Interval, Metric, Predictions, ScoreValue};
use fet_federation::trainer::SavedModel;
use fet_io::input::input;
use fet_tables::{Kind, Options, Values};

use crate::bounds;
use crate::finished::FinishedRun;

/// Noun of the rows in warnings.
const ROWS: &str = "rows with a label";
/// Ratio of the quantiles of 99.5 % and 97.5 % of a normal distribution: a difference of metrics warns if its
/// 99 % interval, from two 95 % intervals, excludes 0.
const WIDER: f64 = 2.576 / 1.96;
/// Quantile of 99.95 % of a normal distribution: a bias warns at α = 1e-3, two-sided.
const BIASED: f64 = 3.291;

/// Known labels of new rows.
pub(crate) struct Labels {
    column: String,
    /// Number or class of each row; `None` where the label is missing.
    values: Vec<Option<f64>>,
}

/// Comparison of new rows with the test rows of a run.
pub(crate) struct Comparison {
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
}

/// Mean of predicted minus observed values, and the standard error of this mean.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bias {
    mean: f64,
    error: f64,
}

/// Returns the options that read a column of labels: in the form of the training labels if the column has their
/// name.
pub(crate) fn options(
    column: &str,
    objective: Objective,
    kinds: &BTreeMap<String, Kind>,
    options: &Options,
) -> Options {
    let kind = match objective.task {
        Task::Regression => kinds.get(column).cloned().unwrap_or(Kind::Number),
        Task::Binary | Task::Multiclass => Kind::Category,
    };
    Options {
        kinds: [(column.to_string(), kind)].into(),
        inferred: [column.to_string()].into(),
        columns: Some(vec![column.to_string()]),
        ..options.clone()
    }
}

impl Labels {
    /// Reads the labels of a column. Refuses a label that the run does not know.
    pub(crate) fn read(column: &Column, model: &SavedModel, file: &Path) -> anyhow::Result<Self> {
        let names = model.class_names();
        let classes = model.objective().scored().classes();
        let refuse = |row: usize, problem: String| {
            input(format!("{}: --labels {}: row {row} (from 0) {problem}", file.display(), column.name))
        };
        let values = match &column.values {
            Values::Number(values) if classes == 0 => {
                values.iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect()
            }
            values if classes > 0 => {
                let class = |(row, text): (usize, String)| match text.trim() {
                    "" => Ok(None),
                    text => class(text, names, classes).map(Some).ok_or_else(|| {
                        refuse(row, format!("has the label \"{text}\", but the run lacks this class"))
                    }),
                };
                values.texts().into_iter().enumerate().map(class).collect::<Result<_, _>>()?
            }
            values => {
                let problem = format!(
                    "the labels must be numbers, like those of the run; the column holds a {}",
                    values.kind()
                );
                return Err(input(format!("{}: --labels {}: {problem}", file.display(), column.name)));
            }
        };
        let found = Self { column: column.name.clone(), values };
        if found.values.iter().all(Option::is_none) {
            let problem = "every cell of the column is empty. Leave out --labels, or name another column.";
            return Err(input(format!("{}: --labels {}: {problem}", file.display(), found.column)));
        }
        Ok(found)
    }

    /// Compares the predictions of the rows with a label with those of the run's test rows. `values` are the
    /// predictions of all rows, as [`Objective::predictions`] gives them.
    pub(crate) fn compare(
        &self,
        run: &FinishedRun,
        objective: Objective,
        values: &[f64],
        conformal: Option<&Conformal>,
    ) -> anyhow::Result<Comparison> {
        let known: Vec<usize> = (0..self.values.len()).filter(|&row| self.values[row].is_some()).collect();
        let truth: Vec<f64> = self.values.iter().copied().flatten().collect();
        let width = objective.outputs;
        let outputs: Vec<f64> =
            known.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect();
        let rows = Predictions::new(objective.scored(), &truth, &outputs).map_err(input)?;
        let metric = run.report.metric;
        let mut rng = stream(run.report.seed, 0, Purpose::Bootstrap, 1);
        let new = Evaluation::compute(metric, &rows, &rows, None, &mut rng);
        let test = &run.report.evaluation;
        let mut lines = vec![
            format!("{} of {} rows have a label in `{}`", known.len(), self.values.len(), self.column),
            line("", "these rows", "test rows of the run"),
        ];
        for (one, value) in new.test.iter() {
            let of = |value: &ScoreValue, estimate: &Estimate| {
                score(one, value, (one == metric).then_some(estimate))
            };
            let tested = test.test.iter().find(|(other, _)| *other == one);
            let tested = tested.map_or_else(String::new, |(_, value)| of(value, &test.interval));
            lines.push(line(&one.title(), &of(value, &new.interval), &tested));
        }
        let biases = [bias(&new), bias(test)];
        let [of_new, of_test] = biases.map(|bias| bias.map_or_else(|| "-".to_string(), Bias::shown));
        lines.push(line("bias (predicted minus true)", &of_new, &of_test));
        let coverage = conformal.map(|conformal| Coverage::new(conformal, &rows));
        if let Some(coverage) = &coverage {
            let share =
                |coverage: &Coverage| coverage.all.share().map_or_else(|| "-".to_string(), bounds::shown);
            let tested = run.report.coverage.as_ref().map_or_else(|| "-".to_string(), share);
            let name = format!("coverage ({} stated)", bounds::shown(coverage.stated));
            lines.push(line(&name, &share(coverage), &tested));
        }
        let mut warnings: Vec<String> =
            worse(metric, &new.interval, &test.interval).into_iter().chain(biased(biases)).collect();
        if let Some((conformal, coverage)) = conformal.zip(coverage.as_ref()) {
            warnings.extend(bounds::too_few(conformal, coverage, &run.report.class_names, ROWS));
        }
        Ok(Comparison { text: format!("{}\n", lines.join("\n")), warnings })
    }
}

/// Returns the class with this name or number.
fn class(text: &str, names: &[String], classes: usize) -> Option<f64> {
    let by_name = |text: &str| names.iter().position(|name| name == text).map(|class| class as f64);
    if let Some(class) = by_name(text) {
        return Some(class);
    }
    let number: f64 = text.parse().ok()?;
    match names {
        [] => Some(number).filter(|number| number.fract() == 0.0 && (0.0..classes as f64).contains(number)),
        // Names of numbers have their shortest form: 1.0 is "1".
        _ => by_name(&number.to_string()),
    }
}

fn line(name: &str, new: &str, test: &str) -> String {
    format!("{name:<30} {new:<34} {test}").trim_end().to_string()
}

fn score(metric: Metric, value: &ScoreValue, interval: Option<&Estimate>) -> String {
    match (value, interval) {
        (ScoreValue::Value(value), Some(Estimate::Interval(Interval { lower, upper, .. }))) => {
            format!("{} ({} to {})", metric.show(*value), metric.show(*lower), metric.show(*upper))
        }
        (ScoreValue::Value(value), _) => metric.show(*value),
        (ScoreValue::Undefined(_), _) => "undefined".to_string(),
    }
}

/// Returns the mean residual of a regression. For classes, returns the mean predicted probability minus the
/// observed share: of class 1 of two, or of the predicted class of several.
fn bias(evaluation: &Evaluation) -> Option<Bias> {
    if let Some(residuals) = &evaluation.residuals {
        let rows = residuals.counts.iter().sum::<f64>() + residuals.below + residuals.above;
        return Some(Bias { mean: residuals.mean, error: residuals.deviation / rows.sqrt() });
    }
    let bins = &evaluation.calibration;
    let rows: f64 = bins.iter().map(|bin| bin.weight).sum();
    let sum = |of: &dyn Fn(&fet_eval::Bin) -> f64| bins.iter().map(|bin| bin.weight * of(bin)).sum::<f64>();
    let mean = sum(&|bin| bin.predicted - bin.observed) / rows;
    let error = sum(&|bin| bin.predicted * (1.0 - bin.predicted)).max(0.0).sqrt() / rows;
    (rows > 0.0).then_some(Bias { mean, error })
}

impl Bias {
    fn shown(self) -> String {
        format!("{:.4} ± {:.4}", self.mean, 1.96 * self.error)
    }
}

/// Returns a warning if the metric of the new rows is worse than that of the test rows by more than both
/// intervals explain.
fn worse(metric: Metric, new: &Estimate, test: &Estimate) -> Option<String> {
    let (Estimate::Interval(new), Estimate::Interval(test)) = (new, test) else { return None };
    let half = |interval: &Interval| (interval.upper - interval.lower) / 2.0;
    let loss = metric.direction().gain(test.estimate, new.estimate);
    let allowed = WIDER * half(new).hypot(half(test));
    (loss > allowed).then(|| {
        format!(
            "the {ROWS} have {}, worse than the run's test rows ({}) by more than their intervals explain; the model may \
             no longer fit rows like these",
            metric.phrase(new.estimate),
            metric.show(test.estimate)
        )
    })
}

/// Returns a warning if the bias of the new rows differs from that of the test rows.
fn biased([new, test]: [Option<Bias>; 2]) -> Option<String> {
    let (new, test) = (new?, test?);
    let differs = (new.mean - test.mean).abs() > BIASED * new.error.hypot(test.error);
    differs.then(|| {
        format!(
            "the predictions for the {ROWS} are on average {:.4} {} the true values ({:.4} on the run's test rows)",
            new.mean.abs(),
            if new.mean < 0.0 { "below" } else { "above" },
            test.mean
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_name_or_number() {
        let names = ["1".to_string(), "2.5".to_string()];
        let yes = ["no".to_string(), "yes".to_string()];
        for (text, names, expect) in [
            ("yes", &yes[..], Some(1.0)),
            ("1", &yes, None),
            ("1.0", &names, Some(0.0)),
            ("2.50", &names, Some(1.0)),
            ("2", &[], None),
            ("1", &[], Some(1.0)),
            ("0.5", &[], None),
        ] {
            assert_eq!(class(text, names, 2), expect, "{text}");
        }
    }

    /// Two intervals of ±1 allow a difference of 1.86.
    #[test]
    fn warns_of_a_metric_only_beyond_both_intervals() {
        let estimate = |value: f64| {
            Estimate::Interval(Interval {
                estimate: value,
                lower: value - 1.0,
                upper: value + 1.0,
                alpha: 0.05,
                method: fet_eval::bootstrap::BootstrapMethod::Bca,
                resamples: 2000,
                undefined: 0,
            })
        };
        for (new, expect) in [(8.0, false), (11.8, false), (11.9, true)] {
            assert_eq!(worse(Metric::Rmse, &estimate(new), &estimate(10.0)).is_some(), expect, "{new}");
        }
        assert!(worse(Metric::R2, &estimate(8.1), &estimate(10.0)).is_some());
    }

    #[test]
    fn warns_of_a_bias_beyond_its_error() {
        let bias = |mean| Some(Bias { mean, error: 1.0 });
        assert_eq!(biased([bias(4.6), bias(0.0)]), None);
        let warning = biased([bias(-4.7), bias(0.0)]).expect("a bias");
        assert!(warning.contains("4.7000 below the true values (0.0000"), "{warning}");
    }
}
