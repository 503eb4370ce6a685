//! Tables for programs: `results.csv`, `attacks.csv`, `costs.csv` and `curves.csv`, ordered by variant and
//! then seed.
//!
//! Numbers here are not rounded; `write` rounds them. All files except `costs.csv` depend only on settings,
//! seed and data: the same study gives the same bytes, even if it was interrupted. Values that differ between
//! runs are in `costs.csv`.

use std::path::Path;

use fet_eval::records::{Measure, Report};
use fet_eval::{Estimate, Metric};

use super::cell::Cell;
use super::report::{self, epsilon, label_epsilon};

/// Cell that is done, with its report.
#[derive(Debug)]
pub(crate) struct FinishedCell<'a> {
    /// The cell.
    pub(crate) cell: &'a Cell,
    /// Its report.
    pub(crate) report: Report,
}

pub(crate) fn finished(cells: &[Cell]) -> Vec<FinishedCell<'_>> {
    cells.iter().filter_map(|cell| Some(FinishedCell { cell, report: report::read(cell)? })).collect()
}

const RESULTS: &str = "variant,seed,metric,best_epoch,validation,test,parameters,secondaries,bytes_from_primary,\
                       bytes_to_primary,epsilon,delta,label_epsilon,label_delta,\
                       attack,attack_value,attack_baseline,attack_perfect,leakage,cell";
const ATTACKS: &str = "variant,seed,attack,attacker,target,party,measure,value,baseline,perfect,leakage";
const COSTS: &str = "variant,seed,seconds,rows_per_second,peak_memory_bytes,commit,cell";
const CURVES: &str = "variant,seed,epoch,train_loss,validation,test,bytes_from_primary,bytes_to_primary";

/// Index of the column `fold`, if a table has it.
const FOLD: usize = 2;

/// Returns the text of `results.csv`. Folders of cells are relative to `study`. The last columns are every
/// metric on the test rows and the ends of the main metric's interval. A metric is empty if it is undefined
/// or belongs to another task.
pub(crate) fn results(results: &[FinishedCell<'_>], study: &Path) -> String {
    table(&results_header(), results, |FinishedCell { cell, report }, row| {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let attack = report.attack.as_ref();
        let result = attack.and_then(|attack| attack.measures.first());
        let figure =
            |of: fn(&Measure) -> f64| result.map_or_else(String::new, |measure| of(measure).to_string());
        let mut fields = vec![
            quoted(&cell.variant),
            cell.repetition.seed.to_string(),
            report.metric.to_string(),
            report.best.epoch.to_string(),
            number(Some(report.best.validation).filter(|value| !value.is_nan())),
            report.best.test.to_string(),
            report.parameters.to_string(),
            report.secondaries.to_string(),
            report.traffic.sent.to_string(),
            report.traffic.received.to_string(),
            report.privacy.as_ref().map_or_else(String::new, |privacy| epsilon(privacy).to_string()),
            report.privacy.as_ref().map_or_else(String::new, |privacy| privacy.delta.to_string()),
            report.labels.as_ref().map_or_else(String::new, |labels| label_epsilon(labels).to_string()),
            report.labels.as_ref().map_or_else(String::new, |labels| labels.delta.to_string()),
            attack.map_or_else(String::new, |attack| quoted(&attack.attack)),
            figure(|measure| measure.value),
            figure(|measure| measure.baseline),
            figure(|measure| measure.perfect),
            figure(Measure::leakage),
            folder(cell, study),
        ];
        fields.extend(Metric::ALL.map(|metric| number(report.evaluation.test.get(metric))));
        let ends = match &report.evaluation.interval {
            Estimate::Interval(interval) => [Some(interval.lower), Some(interval.upper)],
            Estimate::Undefined(_) => [None, None],
        };
        fields.extend(ends.map(number));
        row(&fields);
    })
}

fn results_header() -> String {
    let metrics = Metric::ALL.map(|metric| format!("test_{metric}"));
    format!("{RESULTS},{},interval_lower,interval_upper", metrics.join(","))
}

/// Returns the text of `attacks.csv`, with a row for each measure of each cell's attack.
pub(crate) fn attacks(results: &[FinishedCell<'_>]) -> String {
    table(ATTACKS, results, |FinishedCell { cell, report }, row| {
        let Some(attack) = &report.attack else { return };
        for measure in &attack.measures {
            row(&[
                quoted(&cell.variant),
                cell.repetition.seed.to_string(),
                quoted(&attack.attack),
                attack.attacker.name().to_string(),
                attack.target.name().to_string(),
                attack.party.to_string(),
                quoted(&measure.name),
                measure.value.to_string(),
                measure.baseline.to_string(),
                measure.perfect.to_string(),
                measure.leakage().to_string(),
            ]);
        }
    })
}

/// Returns the text of `costs.csv`.
pub(crate) fn costs(results: &[FinishedCell<'_>], study: &Path) -> String {
    table(COSTS, results, |FinishedCell { cell, report }, row| {
        row(&[
            quoted(&cell.variant),
            cell.repetition.seed.to_string(),
            report.cost.seconds.to_string(),
            report.cost.train_rows_per_second.to_string(),
            report.cost.peak_memory_bytes.to_string(),
            quoted(&report.program.commit),
            folder(cell, study),
        ]);
    })
}

/// Returns the text of `curves.csv`, with a row for each epoch of each cell.
pub(crate) fn curves(results: &[FinishedCell<'_>]) -> String {
    table(CURVES, results, |FinishedCell { cell, report }, row| {
        let number = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
        for epoch in &report.epochs {
            row(&[
                quoted(&cell.variant),
                cell.repetition.seed.to_string(),
                epoch.epoch.to_string(),
                number(epoch.train_loss),
                number(epoch.validation),
                epoch.test.map_or_else(String::new, number),
                epoch.traffic.sent.to_string(),
                epoch.traffic.received.to_string(),
            ]);
        }
    })
}

fn table(
    header: &str,
    results: &[FinishedCell<'_>],
    rows: impl Fn(&FinishedCell<'_>, &mut dyn FnMut(&[String])),
) -> String {
    // The column `fold` follows the seed in a study with a cross-validation.
    let has_folds = results.iter().any(|result| result.cell.repetition.fold.is_some());
    let header = if has_folds { header.replacen("seed,", "seed,fold,", 1) } else { header.to_string() };
    let mut text = format!("{header}\n");
    for result in results {
        let fold = result.cell.repetition.fold.map_or_else(String::new, |fold| fold.to_string());
        rows(result, &mut |fields| {
            let mut fields = fields.to_vec();
            if has_folds {
                fields.insert(FOLD, fold.clone());
            }
            text.push_str(&fields.join(","));
            text.push('\n');
        });
    }
    text
}

fn folder(cell: &Cell, study: &Path) -> String {
    quoted(&cell.folder.strip_prefix(study).unwrap_or(&cell.folder).display().to_string())
}

/// Quotes a field according to RFC 4180.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use fet_eval::Evaluation;
    use fet_eval::records::{
        AttackRecord, Attacker, Best, Cost, DataRecord, EpochReport, LabelPrivacy, Program, Rows,
        RunIdentity, Spent, Target, Traffic,
    };
    use fet_eval::{ChaCha8Rng, Predictions, SeedableRng, Task};
    use serde_json::json;

    use super::super::repetition::Repetition;
    use super::*;

    pub(crate) const ACCURACY: Metric = Metric::Accuracy;
    pub(crate) const RMSE: Metric = Metric::Rmse;

    /// Returns a cell of variant A, B, C, ... and its report, as a run would leave both.
    pub(crate) fn finished(index: usize, seed: u64, metric: Metric, test: f64) -> (Cell, Report) {
        let identity = RunIdentity { program: None, experiment: json!({}), data: "data".into(), results: 1 };
        let traffic = |sent, received| Traffic { sent, received };
        let epoch = |epoch, train_loss, validation, test| EpochReport {
            epoch,
            learning_rate: 0.1,
            train_loss,
            validation,
            test,
            traffic: traffic(10, 6_000),
        };
        let report = Report {
            program: Program { version: "1".into(), commit: "commit".into(), results: identity.results },
            experiment: identity.experiment.clone(),
            data: DataRecord {
                files: identity.data.clone(),
                split: format!("rows {seed}"),
                tables: Vec::new(),
            },
            seed,
            device: "flex".into(),
            warnings: Vec::new(),
            metric,
            class_names: if metric == Metric::Rmse { Vec::new() } else { vec!["no".into(), "yes".into()] },
            rows: Rows { train: 8, validation: 1, test: 1 },
            secondaries: 3,
            parameters: 7,
            fitted: std::collections::BTreeMap::new(),
            epochs: vec![epoch(1, 0.5, 0.25, None), epoch(2, 0.25, 0.5, Some(test))],
            best: Best { epoch: 3 + seed as usize, validation: 0.5, test },
            evaluation: evaluation(metric, test),
            constant: None,
            coverage: None,
            privacy: None,
            release: None,
            labels: None,
            attack: None,
            traffic: traffic(20, 12_000),
            traffic_by_party: Vec::new(),
            cost: Cost {
                seconds: 10.0 + seed as f64,
                train_rows_per_second: 100.0,
                peak_memory_bytes: 5,
                ..Cost::default()
            },
        };
        let cell = Cell {
            index,
            variant: ["A", "B", "C|x", "D, \"d\""][index].into(),
            repetition: Repetition { seed, fold: None },
            sets: Vec::new(),
            identity,
            study: "runs/x".into(),
            folder: format!("runs/x/cells/c{index}-{seed}").into(),
        };
        (cell, report)
    }

    /// Returns the evaluation of four rows whose main metric is `test`, with an interval of 0.25 on either
    /// side.
    pub(crate) fn evaluation(metric: Metric, test: f64) -> Evaluation {
        let (task, truth, output) = if metric == Metric::Rmse {
            (Task::Regression, [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 2.0, 4.0])
        } else {
            (Task::Binary, [0.0, 0.0, 1.0, 1.0], [0.25, 0.5, 0.5, 1.0])
        };
        let rows = Predictions::new(task, &truth, &output).expect("right");
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut evaluation = Evaluation::compute(metric, &rows, &rows, None, &mut rng);
        let mut scores = std::collections::BTreeMap::from(evaluation.test);
        scores.insert(metric, fet_eval::ScoreValue::Value(test));
        evaluation.test = scores.try_into().expect("whole");
        if let Estimate::Interval(interval) = &mut evaluation.interval {
            (interval.estimate, interval.lower, interval.upper) = (test, test - 0.25, test + 0.25);
        }
        evaluation
    }

    /// Returns a privacy loss without its derivation.
    pub(crate) fn spent(epsilon: Option<f64>, delta: f64) -> Option<Spent> {
        Some(Spent { epsilon, delta, statement: "s".into(), guarantee: None })
    }

    /// Returns a privacy record for labels.
    pub(crate) fn labels(epsilon: Option<f64>) -> Option<LabelPrivacy> {
        Some(LabelPrivacy { epsilon, delta: 0.0, mechanism: "m".into(), statement: "s".into() })
    }

    /// Returns the record of an attack with two measures: an AUC from 0.5 (baseline) to 1 (perfect), and an
    /// error from 2 to 0.
    pub(crate) fn attack(kind: &str, target: Target, value: f64, error: f64) -> Option<AttackRecord> {
        let measures =
            vec![Measure::new("AUC, best", value, 0.5, 1.0), Measure::new("error", error, 2.0, 0.0)];
        let attacker = if target == Target::Labels { Attacker::Secondary } else { Attacker::Primary };
        Some(AttackRecord { attack: kind.into(), attacker, target, party: 2, runs: 1, measures })
    }

    #[test]
    fn rows_are_quoted_and_unrounded() {
        let mut cells = [finished(3, 0, ACCURACY, 0.1 + 0.2), finished(2, 1, ACCURACY, 1.0)];
        cells[0].1.privacy = spent(None, 0.0);
        cells[0].1.labels = labels(Some(0.5));
        cells[1].1.attack = attack("norm", Target::Labels, 0.75, 2.5);
        let all: Vec<_> =
            cells.iter().map(|(cell, report)| FinishedCell { cell, report: report.clone() }).collect();
        let study = Path::new("runs/x");
        let d = "\"D, \"\"d\"\"\"";
        // The other metrics of the four rows, for classification only.
        let metrics = |cell: usize| {
            let scores = &all[cell].report.evaluation.test;
            let classes = Metric::for_task(Task::Binary);
            let values: Vec<String> =
                classes.map(|metric| scores.get(metric).expect("defined").to_string()).collect();
            format!(",,,,,,{}", values.join(","))
        };
        let expected = format!(
            "{RESULTS},test_rmse,test_mae,test_r2,test_mape,test_median-absolute-error,test_accuracy,\
             test_balanced-accuracy,test_macro-f1,test_auc-roc,test_auc-pr,test_log-loss,test_brier,\
             test_calibration-error,interval_lower,interval_upper\n\
             {d},0,accuracy,3,0.5,0.30000000000000004,7,3,20,12000,inf,0,0.5,0,,,,,,cells/c3-0{},{},{}\n\
             C|x,1,accuracy,4,0.5,1,7,3,20,12000,,,,,norm,0.75,0.5,1,0.5,cells/c2-1{},0.75,1.25\n",
            metrics(0),
            0.1 + 0.2 - 0.25,
            0.1 + 0.2 + 0.25,
            metrics(1)
        );
        assert!(metrics(1).starts_with(",,,,,,1,0.75,0.7"), "{}", metrics(1));
        assert_eq!(results(&all, study), expected);
        let expected = format!(
            "{ATTACKS}\nC|x,1,norm,secondary,labels,2,\"AUC, best\",0.75,0.5,1,0.5\n\
             C|x,1,norm,secondary,labels,2,error,2.5,2,0,0\n"
        );
        assert_eq!(attacks(&all), expected);
        let expected =
            format!("{COSTS}\n{d},0,10,100,5,commit,cells/c3-0\nC|x,1,11,100,5,commit,cells/c2-1\n");
        assert_eq!(costs(&all, study), expected);
        let rows = |name: &str, seed: u64, test: &str| {
            format!("{name},{seed},1,0.5,0.25,,10,6000\n{name},{seed},2,0.25,0.5,{test},10,6000\n")
        };
        let expected = format!("{CURVES}\n{}{}", rows(d, 0, "0.30000000000000004"), rows("C|x", 1, "1"));
        assert_eq!(curves(&all), expected);
    }
}
