//! Completes the short report of a program other than `fet`: evaluates the predictions of the run, and fills in the fields that
//! the program left out.
//!
//! The evaluation takes up to two seconds, so the cell's folder keeps it in `evaluation.json`, with a checksum of everything that
//! it depends on.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use fet_eval::records::{
    Best, Cost, DataRecord, EpochReport, Program, ProgramIdentity, ProgramReport, RESULTS_VERSION, Report,
};
use fet_eval::{
    ChaCha8Rng, Estimate, Evaluation, Metric, Predictions, ScoreValue, Scores, SeedableRng, Task,
};
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::part_rows::{PREDICTIONS, PartRows, ROUNDING, is_equal};
use crate::output::{json_problem, write};

/// File with the evaluation of a cell's predictions.
const EVALUATION: &str = "evaluation.json";

/// Evaluation and its origin.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownEvaluation {
    /// Checksum of the predictions, the metric, the seed and [`RESULTS_VERSION`].
    of: String,
    evaluation: Evaluation,
}

/// Figures that follow from the predictions.
struct Evaluated {
    class_names: Vec<String>,
    /// Checksum of the validation and test rows.
    split: String,
    validation: Option<f64>,
    test: f64,
    evaluation: Evaluation,
}

/// Returns the complete report of a cell that `program` has run. `bytes` are those of its report.
pub(crate) fn complete(cell: &Cell, program: &ProgramIdentity, bytes: &[u8]) -> Result<Report> {
    let short: ProgramReport =
        serde_json::from_slice(bytes).map_err(|error| anyhow!(json_problem(&error)))?;
    let differs = |field: &str| format!("`{field}` differs from the answer of `show --batch`");
    ensure!(short.program == *program, differs("program"));
    ensure!(short.experiment == cell.identity.experiment, differs("experiment"));
    ensure!(short.data == cell.identity.data, differs("data"));
    check_figures(&short)?;
    let seed = cell.repetition.seed;
    let path = cell.folder.join(PREDICTIONS);
    let found = match path.exists() {
        true => {
            let text =
                fet_io::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            evaluate(&text, &short, seed, &cell.folder).context(PREDICTIONS)?
        }
        false => without_predictions(&short, &cell.repetition.to_string())?,
    };
    if let Some(test) = short.best.test.filter(|test| !is_equal(*test, found.test)) {
        bail!("`best.test` is {test}, but {PREDICTIONS} gives {}", found.test);
    }
    let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let epochs = short.epochs.iter().map(|epoch| EpochReport {
        epoch: epoch.epoch,
        learning_rate: 0.0,
        train_loss: number(epoch.train_loss),
        validation: number(epoch.validation),
        test: epoch.test,
        traffic: epoch.traffic,
    });
    Ok(Report {
        epochs: epochs.collect(),
        program: Program {
            version: program.version.clone(),
            commit: program.version.clone(),
            results: cell.identity.results,
        },
        experiment: short.experiment,
        data: DataRecord { files: short.data, split: short.split.unwrap_or(found.split), tables: Vec::new() },
        seed,
        device: short.device,
        warnings: short.warnings,
        metric: short.metric,
        class_names: found.class_names,
        rows: short.rows,
        secondaries: short.secondaries,
        parameters: short.parameters,
        fitted: BTreeMap::new(),
        best: Best {
            epoch: short.best.epoch,
            validation: number(short.best.validation.or(found.validation)),
            test: found.test,
        },
        evaluation: found.evaluation,
        constant: None,
        coverage: None,
        privacy: short.privacy,
        release: None,
        labels: short.labels,
        attack: short.attack,
        traffic: short.traffic,
        traffic_by_party: Vec::new(),
        cost: Cost {
            seconds: short.cost.seconds,
            train_rows_per_second: short.cost.train_rows_per_second,
            peak_memory_bytes: short.cost.peak_memory_bytes,
            ..Cost::default()
        },
    })
}

/// Refuses figures that no run can have.
fn check_figures(short: &ProgramReport) -> Result<()> {
    let at_least_0 = |field: &str, value: f64| {
        ensure!(value.is_finite() && value >= 0.0, "`{field}` must be a number from 0; it is {value}");
        Ok(())
    };
    at_least_0("cost.seconds", short.cost.seconds)?;
    at_least_0("cost.train_rows_per_second", short.cost.train_rows_per_second)?;
    let losses = [
        ("privacy", short.privacy.as_ref().map(|loss| (loss.epsilon, loss.delta))),
        ("labels", short.labels.as_ref().map(|loss| (loss.epsilon, loss.delta))),
    ];
    for (field, (epsilon, delta)) in losses.into_iter().filter_map(|(field, loss)| Some((field, loss?))) {
        at_least_0(&format!("{field}.epsilon"), epsilon.unwrap_or(0.0))?;
        ensure!((0.0..=1.0).contains(&delta), "`{field}.delta` must be from 0 to 1; it is {delta}");
    }
    let best = [("best.test", short.best.test), ("best.validation", short.best.validation)];
    for (field, value) in best.into_iter().filter_map(|(field, value)| Some((field, value?))) {
        let metric = short.metric;
        let [least, most] = match metric {
            Metric::R2 => [f64::MIN, 1.0],
            Metric::LogLoss => [0.0, f64::MAX],
            Metric::Brier => [0.0, 2.0],
            _ if metric.fits(Task::Regression) => [0.0, f64::MAX],
            _ => [0.0, 1.0],
        };
        ensure!(
            (least..=most + ROUNDING).contains(&value),
            "`{field}` must be a value of {metric}, which {value} is not"
        );
    }
    if let Some(attack) = &short.attack {
        ensure!(attack.party > 0, "`attack.party` must be the number of a secondary, from 1; it is 0");
        ensure!(!attack.measures.is_empty(), "`attack.measures` must have at least one measure");
        for measure in &attack.measures {
            let figures = [measure.value, measure.baseline, measure.perfect];
            ensure!(
                figures.iter().all(|figure| figure.is_finite()) && measure.baseline != measure.perfect,
                "`attack.measures`: {:?} must have finite figures, and a `baseline` other than `perfect`",
                measure.name
            );
        }
    }
    Ok(())
}

/// Evaluates the predictions in `text`, or reads their evaluation from `folder`.
fn evaluate(text: &str, short: &ProgramReport, seed: u64, folder: &Path) -> Result<Evaluated> {
    let metric = short.metric;
    let [test, validation] = ["test", "validation"].map(|part| PartRows::parse(text, part));
    let (test, validation) = (test?, validation?);
    test.check().context("part `test`")?;
    validation.check().context("part `validation`")?;
    let tested: HashSet<u64> = test.rows.iter().copied().collect();
    if let Some(row) = validation.rows.iter().find(|row| tested.contains(row)) {
        bail!("row {row} is in both parts");
    }
    for (part, found, stated) in [
        ("test", test.rows.len(), short.rows.test),
        ("validation", validation.rows.len(), short.rows.validation),
    ] {
        // A program may leave out the predictions of its validation rows.
        let is_left_out = part == "validation" && found == 0;
        ensure!(
            is_left_out || found == stated,
            "{found} rows have the part `{part}`, but `rows.{part}` is {stated}"
        );
    }
    let task = match test.classes.len() {
        0 => Task::Regression,
        2 => Task::Binary,
        classes => Task::Multiclass { classes },
    };
    ensure!(
        metric.fits(task),
        "the metric {metric} needs {}",
        match task {
            Task::Regression => "a column `probability of CLASS` for each class",
            _ => "predicted numbers instead of columns of classes",
        }
    );
    let output = |part: &PartRows| if task == Task::Binary { part.second() } else { part.output.clone() };
    let (test_output, validation_output) = (output(&test), output(&validation));
    let tested = Predictions::new(task, &test.truth, &test_output).context("part `test`")?;
    let validated = match validation.rows.is_empty() {
        true => None,
        false => {
            Some(Predictions::new(task, &validation.truth, &validation_output).context("part `validation`")?)
        }
    };
    // A row with another label is another row.
    let split = format!("{:?}", [&validation, &test].map(|part| (&part.rows, part.labels())));
    let of = fet_io::sha256(format!("{RESULTS_VERSION}\0{metric}\0{seed}\0{text}").as_bytes());
    let of = fet_io::hex(&of);
    let known = fs::read(folder.join(EVALUATION))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<KnownEvaluation>(&bytes).ok())
        .filter(|known| known.of == of);
    let evaluation = known.map_or_else(
        || {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut evaluation =
                Evaluation::compute(metric, &validated.unwrap_or(tested), &tested, None, &mut rng);
            if validated.is_none() {
                evaluation.validation = Scores::undefined(task, "predictions.csv lacks validation rows");
            }
            let known = KnownEvaluation { of, evaluation };
            if let Ok(text) = serde_json::to_string(&known) {
                // Without the file, the next command computes the evaluation again.
                let _ = write(&folder.join(EVALUATION), &text);
            }
            known.evaluation
        },
        |known| known.evaluation,
    );
    Ok(Evaluated {
        class_names: test.classes,
        split: fet_io::hex(&fet_io::sha256(split.as_bytes())),
        validation: validated.and_then(|rows| rows.score(metric).ok()),
        test: tested.score(metric)?,
        evaluation,
    })
}

/// Returns the figures of a run without predictions: its test metric, and no other metric.
fn without_predictions(short: &ProgramReport, repetition: &str) -> Result<Evaluated> {
    const REASON: &str = "the program wrote no predictions";
    let test = short.best.test.with_context(|| {
        format!("missing field `best.test`; a run without {PREDICTIONS} must state its test metric")
    })?;
    let metric = short.metric;
    let task = if metric.fits(Task::Regression) { Task::Regression } else { Task::Binary };
    let mut evaluation = Evaluation::undefined(task, REASON);
    evaluation.interval = Estimate::Undefined(REASON.to_string());
    evaluation.test = with_value(evaluation.test, metric, test)?;
    if let Some(validation) = short.best.validation {
        evaluation.validation = with_value(evaluation.validation, metric, validation)?;
    }
    Ok(Evaluated {
        class_names: Vec::new(),
        split: format!("unknown, seed {repetition}"),
        validation: None,
        test,
        evaluation,
    })
}

/// Returns the scores with one metric replaced.
fn with_value(scores: Scores, metric: Metric, value: f64) -> Result<Scores> {
    let mut all = BTreeMap::from(scores);
    all.insert(metric, ScoreValue::Value(value));
    all.try_into().context("the figures of `best`")
}
