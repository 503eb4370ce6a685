//! `fet predict --labels`: metrics, bias and coverage on new rows with known labels, next to those of the run's
//! test rows, and by time.

mod times;

use std::collections::BTreeMap;
use std::path::Path;

use fet_core::data::{Column, Task};
use fet_core::objective::Objective;
use fet_core::rng::{Purpose, stream};
use fet_data::LARGEST_LABEL;
use fet_eval::conformal::Conformal;
use fet_eval::{Coverage, Covered, Direction, Estimate, Evaluation, Metric, Predictions, ScoreValue};
use fet_federation::trainer::SavedModel;
use fet_io::input::input;
use fet_tables::{Kind, Options, Values};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::bounds::{self, share_interval};
use crate::calibration::Calibration;
use crate::finished::FinishedRun;

pub(crate) use self::times::Times;

/// Noun of the rows in warnings.
const ROWS: &str = "rows with a label";
/// Minimum number of rows with a label for intervals and warnings.
const LEAST_ROWS: usize = 20;
/// Ratio of the quantiles of 99.5 % and 97.5 % of a normal distribution: a difference of metrics warns if its
/// 99 % interval, from two 95 % intervals, excludes 0.
const WIDER: f64 = 2.576 / 1.96;
/// Bias in tables and warnings, with its sign.
const BIAS: &str = "bias (predicted minus true)";
/// Level α of a warning about the bias, two-sided.
const BIASED: f64 = 1e-3;

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

/// Predictions of the rows with a label.
pub(crate) struct Labelled<'a> {
    run: &'a FinishedRun,
    labels: &'a Labels,
    objective: Objective,
    /// Rows of the table with a label.
    known: Vec<usize>,
    /// Number or class of each of these rows.
    truth: Vec<f64>,
    /// Predictions of these rows, one row after another.
    outputs: Vec<f64>,
}

/// Mean of predicted minus true values. For classes, the mean of the predicted probability minus 1 or 0: of class 1 of
/// two, or of the predicted class of several.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bias {
    mean: f64,
    /// Standard error of the mean, from the variance of the differences.
    error: f64,
    /// Degrees of freedom of the error: the number of rows minus 1.
    degrees: f64,
}

/// Figure with the ends of its 95 % interval, if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    value: f64,
    ends: Option<[f64; 2]>,
}

/// Returns the miscoverage rate α that a run states.
pub(crate) fn alpha(run: &FinishedRun) -> f64 {
    1.0 - run.experiment.scores.coverage
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

/// Returns the options that read a column of dates, in the form of training if it was an input of the model.
pub(crate) fn time_options(column: &str, kinds: &BTreeMap<String, Kind>, options: &Options) -> Options {
    let known = options.kinds.get(column).or_else(|| kinds.get(column));
    Options {
        kinds: [(column.to_string(), known.cloned().unwrap_or(Kind::Date { format: None }))].into(),
        inferred: [column.to_string()].into(),
        columns: Some(vec![column.to_string()]),
        drop: Vec::new(),
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
                if let Some(row) = values.iter().position(|value| value.abs() > LARGEST_LABEL) {
                    let problem =
                        format!("has the label {:e}; it must be within ±{LARGEST_LABEL:e}", values[row]);
                    return Err(refuse(row, problem));
                }
                values.iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect()
            }
            values if classes > 0 => {
                let class = |(row, text): (usize, String)| match text.trim() {
                    "" => Ok(None),
                    text => class(text, names, classes).map(Some).ok_or_else(|| {
                        refuse(row, format!("has the label \"{text}\", which is not a class of the run"))
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

    /// Returns the number of rows with a label.
    pub(crate) fn known(&self) -> usize {
        self.values.iter().flatten().count()
    }
}

impl<'a> Labelled<'a> {
    /// Selects the predictions of the rows with a label. `values` are the predictions of all rows, as
    /// [`Objective::predictions`] gives them.
    pub(crate) fn new(
        labels: &'a Labels,
        run: &'a FinishedRun,
        objective: Objective,
        values: &[f64],
    ) -> Self {
        let known: Vec<usize> =
            (0..labels.values.len()).filter(|&row| labels.values[row].is_some()).collect();
        let truth = labels.values.iter().copied().flatten().collect();
        let width = objective.outputs;
        let outputs = known.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect();
        Self { run, labels, objective, known, truth, outputs }
    }

    /// Returns the names of the classes; empty for a regression.
    pub(crate) fn class_names(&self) -> &[String] {
        &self.run.report.class_names
    }

    /// Returns the predictions with their labels.
    fn rows(&self) -> anyhow::Result<Predictions<'_>> {
        Predictions::new(self.objective.scored(), &self.truth, &self.outputs).map_err(input)
    }

    /// Calibrates bounds on these rows, with the coverage that the run states.
    pub(crate) fn recalibrated(&self) -> anyhow::Result<Calibration> {
        let mut rng = stream(self.run.report.seed, 0, Purpose::Calibration, 1);
        let conformal = Conformal::new(&self.rows()?, alpha(self.run), &mut rng).map_err(input)?;
        Calibration::new(self.run, &self.labels.column, conformal)
    }

    /// Compares the rows with the test rows of the run.
    pub(crate) fn compare(&self, conformal: Option<&Conformal>) -> anyhow::Result<Comparison> {
        let (report, rows) = (&self.run.report, self.rows()?);
        let metric = report.metric;
        let mut rng = stream(report.seed, 0, Purpose::Bootstrap, 1);
        let new = Evaluation::compute(metric, &rows, &rows, None, &mut rng);
        let test = &report.evaluation;
        let counts = [self.known.len(), report.rows.test];
        let mut lines = vec![
            format!(
                "{} of {} rows {} a label in `{}`",
                counts[0],
                self.labels.values.len(),
                if counts[0] == 1 { "has" } else { "have" },
                self.labels.column
            ),
            line("", "these rows", "test rows of the run"),
        ];
        for (one, value) in new.test.iter() {
            let of = |evaluation: &Evaluation, value: &ScoreValue, rows: usize| match value {
                ScoreValue::Value(value) => {
                    let estimate = (one == metric).then_some(&evaluation.interval);
                    measured(one, *value, estimate, rows).shown(one)
                }
                ScoreValue::Undefined(_) => "undefined".to_string(),
            };
            let tested = test.test.iter().find(|(other, _)| *other == one);
            let tested = tested.map_or_else(String::new, |(_, value)| of(test, value, counts[1]));
            lines.push(line(&one.title(), &of(&new, value, counts[0]), &tested));
        }
        let biases = [Bias::from_predictions(&rows), Bias::from_evaluation(test)];
        let shown = |at: usize| biases[at].map_or_else(|| "-".to_string(), |bias| bias.shown(counts[at]));
        lines.push(line(BIAS, &shown(0), &shown(1)));
        let coverage = conformal.map(|conformal| Coverage::new(conformal, &rows));
        if let Some(coverage) = &coverage {
            let tested = report.coverage.as_ref().map_or_else(|| "-".to_string(), |all| covered(&all.all));
            let name = format!("coverage ({} stated)", bounds::shown(coverage.stated));
            lines.push(line(&name, &covered(&coverage.all), &tested));
        }
        let mut warnings = Vec::new();
        if counts[0] < LEAST_ROWS {
            lines.push(format!(
                "With fewer than {LEAST_ROWS} labels the figures have no intervals and give no warnings."
            ));
        } else {
            let main = |evaluation: &Evaluation, rows: usize| {
                let value = evaluation.test.get(metric)?;
                Some(measured(metric, value, Some(&evaluation.interval), rows))
            };
            warnings.extend(worse(metric, [main(&new, counts[0]), main(test, counts[1])]));
            warnings.extend(biased(biases));
            if let Some((conformal, coverage)) = conformal.zip(coverage.as_ref()) {
                warnings.extend(bounds::too_few(conformal, coverage, &report.class_names, ROWS));
            }
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

/// Returns a metric of some rows with its interval: exact for the accuracy, which is a share of the rows,
/// otherwise the bootstrap interval if the caller has one. Few rows get no interval, and neither do rows
/// with the same value in every resample.
fn measured(metric: Metric, value: f64, estimate: Option<&Estimate>, rows: usize) -> Measured {
    let ends = match estimate {
        _ if rows < LEAST_ROWS => None,
        _ if metric == Metric::Accuracy => Some(share_interval((value * rows as f64).round() as usize, rows)),
        Some(Estimate::Interval(found)) => Some([found.lower, found.upper]).filter(|[low, high]| low < high),
        Some(Estimate::Undefined(_)) | None => None,
    };
    Measured { value, ends }
}

impl Measured {
    fn shown(self, metric: Metric) -> String {
        let value = metric.show(self.value);
        match self.ends {
            Some([low, high]) => format!("{value} ({} to {})", metric.show(low), metric.show(high)),
            None => value,
        }
    }
}

/// Returns the share of covered rows, with its exact interval unless there are few rows.
fn covered(found: &Covered) -> String {
    let Some(share) = found.share() else { return "-".to_string() };
    if found.rows < LEAST_ROWS {
        return bounds::shown(share);
    }
    let [low, high] = share_interval(found.covered, found.rows).map(bounds::shown);
    format!("{} ({low} to {high})", bounds::shown(share))
}

impl Bias {
    /// Returns the bias of predictions, or `None` without rows.
    fn from_predictions(rows: &Predictions<'_>) -> Option<Self> {
        let difference = |row: usize| {
            let class = match rows.task() {
                fet_eval::Task::Regression => return rows.predicted(row) - rows.truth(row),
                fet_eval::Task::Binary => 1,
                fet_eval::Task::Multiclass { .. } => rows.predicted_class(row),
            };
            rows.probability(row, class) - f64::from(u8::from(rows.class(row) == class))
        };
        let all: Vec<f64> = (0..rows.rows()).map(difference).collect();
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
        Self::new(mean, variance, count)
    }

    /// Returns the bias of evaluated rows: from the residuals of a regression, or from the bins of a calibration curve,
    /// whose rows count with the mean probability of their bin.
    fn from_evaluation(evaluation: &Evaluation) -> Option<Self> {
        if let Some(residuals) = &evaluation.residuals {
            let count = residuals.counts.iter().sum::<f64>() + residuals.below + residuals.above;
            return Self::new(residuals.mean, residuals.deviation.powi(2), count);
        }
        let bins = &evaluation.calibration;
        let count: f64 = bins.iter().map(|bin| bin.weight).sum();
        let mean_of = |of: &dyn Fn(&fet_eval::Bin) -> f64| {
            bins.iter().map(|bin| bin.weight * of(bin)).sum::<f64>() / count
        };
        let mean = mean_of(&|bin| bin.predicted - bin.observed);
        let square = |bin: &fet_eval::Bin| {
            (bin.predicted - bin.observed).powi(2) + bin.observed * (1.0 - bin.observed)
        };
        Self::new(mean, mean_of(&square) - mean.powi(2), count)
    }

    /// Creates a bias from the mean and the mean squared deviation of `count` differences.
    fn new(mean: f64, variance: f64, count: f64) -> Option<Self> {
        let degrees = (count - 1.0).max(1.0);
        (count > 0.0).then(|| Self { mean, error: (variance.max(0.0) / degrees).sqrt(), degrees })
    }

    fn shown(self, rows: usize) -> String {
        if rows < LEAST_ROWS {
            return format!("{:.4}", self.mean);
        }
        format!("{:.4} ± {:.4}", self.mean, student(self.degrees, 0.95) * self.error)
    }
}

/// Returns the half width of an interval with this confidence, in standard errors, by Student's t.
fn student(degrees: f64, confidence: f64) -> f64 {
    // An error of 0 has undefined degrees of freedom, and any factor gives a width of 0.
    StudentsT::new(0.0, 1.0, degrees).map_or(0.0, |student| student.inverse_cdf(0.5 + confidence / 2.0))
}

/// Returns a warning if the metric of the new rows is worse than that of the test rows by more than both
/// intervals explain. The interval of the difference follows from the two ends that face each other (method of
/// variance estimates recovery, Zou and Donner 2008).
fn worse(metric: Metric, [new, test]: [Option<Measured>; 2]) -> Option<String> {
    let (new, test) = (new?, test?);
    let (of_new, of_test) = (new.ends?, test.ends?);
    let loss = metric.direction().gain(test.value, new.value);
    let [toward_test, toward_new] = match metric.direction() {
        Direction::Maximise => [of_new[1] - new.value, test.value - of_test[0]],
        Direction::Minimise => [new.value - of_new[0], of_test[1] - test.value],
    };
    (loss > WIDER * toward_test.hypot(toward_new)).then(|| {
        format!(
            "the {ROWS} have {}, worse than the run's test rows ({}) by more than their intervals explain; the model may \
             no longer fit rows like these",
            metric.phrase(new.value),
            metric.show(test.value)
        )
    })
}

/// Returns a warning if the bias of the new rows is further from 0 than that of the test rows, by more than both errors
/// explain (Welch's test).
fn biased([new, test]: [Option<Bias>; 2]) -> Option<String> {
    let (new, test) = (new?, test?);
    let error = new.error.hypot(test.error);
    // Ratios, because the fourth power of a large error is infinite.
    let part = |one: Bias| (one.error / error).powi(4) / one.degrees;
    let degrees = 1.0 / (part(new) + part(test));
    let differs = (new.mean - test.mean).abs() > student(degrees, 1.0 - BIASED) * error;
    (differs && new.mean.abs() > test.mean.abs()).then(|| {
        format!(
            "the {ROWS} have a {BIAS} of {:.4}, further from 0 than that of the run's test rows ({:.4}) by more than their \
             errors explain",
            new.mean, test.mean
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_eval::Interval;
    use rand::RngExt;

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

    /// Two intervals of ±1 allow a difference of 1.86, and an interval counts only on the side of the other.
    #[test]
    fn warns_of_a_metric_only_beyond_both_intervals() {
        let of = |value: f64, [below, above]: [f64; 2]| {
            Some(Measured { value, ends: Some([value - below, value + above]) })
        };
        for (new, expect) in [(8.0, false), (11.8, false), (11.9, true)] {
            let found = worse(Metric::Rmse, [of(new, [1.0, 9.0]), of(10.0, [9.0, 1.0])]);
            assert_eq!(found.is_some(), expect, "{new}");
        }
        for (new, expect) in [(8.2, false), (8.1, true)] {
            let found = worse(Metric::R2, [of(new, [9.0, 1.0]), of(10.0, [1.0, 9.0])]);
            assert_eq!(found.is_some(), expect, "{new}");
        }
        let none = Some(Measured { value: 99.0, ends: None });
        assert_eq!(worse(Metric::Rmse, [none, of(10.0, [1.0; 2])]), None);
    }

    /// The exact intervals of 0 of 20 and 20 of 20: 1 − 0.025^(1/20) = 0.1684.
    #[test]
    fn intervals_of_few_or_equal_rows_are_exact_or_absent() {
        for (value, rows, expect) in
            [(0.0, 20, Some([0.0, 0.1684])), (1.0, 20, Some([0.8316, 1.0])), (0.5, 19, None)]
        {
            let found = measured(Metric::Accuracy, value, None, rows).ends;
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
            let same = match (found, expect) {
                (Some(found), Some(expect)) => found.iter().zip(&expect).all(near),
                (found, expect) => found == expect,
            };
            assert!(same, "{value} of {rows}: {found:?}");
        }
        let estimate = |lower: f64, upper: f64| {
            Estimate::Interval(Interval {
                estimate: 1.0,
                lower,
                upper,
                alpha: 0.05,
                method: fet_eval::bootstrap::BootstrapMethod::Bca,
                resamples: 2000,
                undefined: 0,
            })
        };
        let of = |lower, upper| measured(Metric::AucRoc, 1.0, Some(&estimate(lower, upper)), 100).ends;
        assert_eq!((of(0.9, 1.0), of(1.0, 1.0)), (Some([0.9, 1.0]), None));
    }

    #[test]
    fn warns_of_a_bias_that_is_larger_beyond_its_error() {
        let bias = |mean| Some(Bias { mean, error: 1.0, degrees: 1e6 });
        assert_eq!(biased([bias(4.6), bias(0.0)]), None);
        let warning = biased([bias(-4.7), bias(0.0)]).expect("a bias");
        assert!(warning.contains("bias (predicted minus true) of -4.7000, further from 0 than"), "{warning}");
        // The bias of the test rows is the larger one.
        assert_eq!(biased([bias(1.0), bias(9.0)]), None);
        assert!(biased([bias(9.0), bias(-1.0)]).is_some() && biased([bias(1.0), bias(-9.0)]).is_none());
        // Ten rows each: t(18, 0.9995) = 3.922 standard errors of √2, and not 3.291.
        let few = |mean| Some(Bias { mean, error: 1.0, degrees: 9.0 });
        assert_eq!(biased([few(5.5), few(0.0)]), None);
        assert!(biased([few(5.6), few(0.0)]).is_some());
        let large = |mean| Some(Bias { mean, error: 1e97, degrees: 39.0 });
        assert_eq!(biased([large(-1e97), large(0.0)]), None, "one standard error");
        let exact = |mean| Some(Bias { mean, error: 0.0, degrees: 9.0 });
        assert!(biased([exact(0.1), exact(0.0)]).is_some() && biased([exact(0.0), exact(0.0)]).is_none());
    }

    /// Probabilities of 0.5 for rows that all have class 1 differ by -0.5 from the truth without any variance, and
    /// probabilities of 0 and 1 that are wrong half of the time have one, although p (1 − p) is 0.
    #[test]
    fn the_error_of_a_bias_follows_from_the_differences() {
        let of = |truth: &[f64], output: &[f64]| {
            let rows = Predictions::new(fet_eval::Task::Binary, truth, output).expect("right");
            let found = Bias::from_predictions(&rows).expect("rows");
            let mut rng = stream(1, 0, Purpose::Bootstrap, 1);
            let binned = Evaluation::compute(Metric::LogLoss, &rows, &rows, None, &mut rng);
            let binned = Bias::from_evaluation(&binned).expect("bins");
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(near(binned.mean, found.mean) && near(binned.error, found.error), "{binned:?} {found:?}");
            found
        };
        let sure = of(&[1.0; 4], &[0.5; 4]);
        assert!((sure.mean + 0.5).abs() < 1e-12 && sure.error < 1e-9, "{sure:?}");
        // The differences are 1, 0, -1, 0: variance 2/3, and the error √(2/3 / 4).
        let wrong = of(&[0.0, 1.0, 1.0, 0.0], &[1.0, 1.0, 0.0, 0.0]);
        assert!(wrong.mean.abs() < 1e-12 && (wrong.error - (1.0f64 / 6.0).sqrt()).abs() < 1e-9, "{wrong:?}");
        assert_eq!(wrong.degrees, 3.0);
        // t(3, 0.975) = 3.1824 (published tables).
        assert!((student(3.0, 0.95) - 3.1824).abs() < 1e-4);
    }

    /// Intervals of the mean of 20 normal differences contain 0 in 95 % of 20,000 samples; α = 1e-3, two-sided.
    #[test]
    fn intervals_of_few_rows_cover_as_stated() {
        let mut rng = stream(3, 0, Purpose::Bootstrap, 1);
        let samples = 20_000;
        let mut covered = 0;
        for _ in 0..samples {
            let normal = rand_distr::StandardNormal;
            let predicted: Vec<f64> = (0..20).map(|_| rng.sample(normal)).collect();
            let truth = [0.0; 20];
            let rows = Predictions::new(fet_eval::Task::Regression, &truth, &predicted).expect("right");
            let bias = Bias::from_predictions(&rows).expect("rows");
            covered += usize::from(bias.mean.abs() <= student(bias.degrees, 0.95) * bias.error);
        }
        let share = f64::from(covered as u32) / samples as f64;
        let allowed = 3.291 * (0.95 * 0.05 / samples as f64).sqrt();
        assert!((share - 0.95).abs() < allowed, "{share} ± {allowed}");
    }
}
