//! Compares every metric with scikit-learn's figure for the same predictions. `golden/make.py` computes the
//! figures.
//!
//! Tolerance: 1e-9, absolute for figures below 1 and relative above.

use std::collections::BTreeMap;

use fet_eval::bootstrap::{BootstrapMethod, BootstrapSettings, bootstrap};
use fet_eval::calibration::{Bins, curve};
use fet_eval::class_weights::ClassWeights;
use fet_eval::confusion::Confusion;
use fet_eval::{ChaCha8Rng, Metric, Predictions, Task};
use rand::SeedableRng;
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("golden/golden.json")).expect("golden.json is JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn classes(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|class| class as usize).collect()
}

#[track_caller]
fn check(given: f64, expect: f64, of: &dyn std::fmt::Debug) {
    let tolerance = 1e-9 * expect.abs().max(1.0);
    assert!((given - expect).abs() <= tolerance, "{of:?}: {given} is not {expect}");
}

/// Compares all metrics of the cases under `key`. Returns the number of defined and undefined figures of each
/// metric.
fn check_cases(key: &str, task: impl Fn(&Value) -> Task, unit: f64) -> BTreeMap<Metric, (usize, usize)> {
    let mut met = BTreeMap::new();
    for (number, case) in golden()[key].as_array().expect("cases").iter().enumerate() {
        let (truth, weights) = (numbers(&case["y"]), case.get("w").map(numbers));
        let output: Vec<f64> = numbers(&case["p"]).into_iter().map(|p| p / unit).collect();
        let mut rows = Predictions::new(task(case), &truth, &output).expect("right");
        if let Some(weights) = &weights {
            rows = rows.weighted(weights).expect("right");
        }
        let scores = rows.scores();
        for (metric, value) in scores.iter() {
            let (defined, undefined): &mut (usize, usize) = met.entry(metric).or_default();
            match (&case[metric.name()], scores.get(metric)) {
                (Value::Null, None) => *undefined += 1,
                (Value::Number(expect), Some(given)) => {
                    *defined += 1;
                    check(given, expect.as_f64().expect("a number"), &(key, number, metric));
                }
                (expect, _) => panic!("{key} {number}, {metric}: {value:?}, not {expect}"),
            }
        }
        if let Some(expect) = case.get("confusion") {
            let cells: Vec<f64> = Confusion::new(&rows).cells.concat();
            let expect: Vec<f64> = expect.as_array().expect("rows").iter().flat_map(numbers).collect();
            assert_eq!(cells.len(), expect.len());
            cells
                .iter()
                .zip(&expect)
                .for_each(|(given, expect)| check(*given, *expect, &(key, number, "confusion")));
        }
    }
    met
}

#[test]
fn regressions() {
    let met = check_cases("regression", |_| Task::Regression, 1.0);
    assert_eq!(met.values().map(|(defined, undefined)| defined + undefined).sum::<usize>(), 5 * 150);
    assert!(met[&Metric::R2].1 > 3 && met[&Metric::Mape].1 > 10, "{met:?}");
}

#[test]
fn two_classes() {
    let met = check_cases("binary", |_| Task::Binary, 256.0);
    assert!(met[&Metric::AucRoc].1 > 10 && met[&Metric::AucPr].1 > 5, "{met:?}");
    assert!(met[&Metric::AucRoc].0 > 100 && met[&Metric::LogLoss] == (180, 0), "{met:?}");
}

#[test]
fn several_classes() {
    let task = |case: &Value| Task::Multiclass { classes: case["k"].as_u64().expect("a number") as usize };
    let met = check_cases("multiclass", task, 256.0);
    assert!(met[&Metric::AucRoc].1 > 10 && met[&Metric::AucRoc].0 > 50, "{met:?}");
}

#[test]
fn calibration_curves() {
    let mut bins_seen = 0;
    for (number, case) in golden()["binary"].as_array().expect("cases").iter().enumerate() {
        let Some(curves) = case.get("curves") else { continue };
        let truth = numbers(&case["y"]);
        let output: Vec<f64> = numbers(&case["p"]).into_iter().map(|p| p / 256.0).collect();
        let rows = Predictions::new(Task::Binary, &truth, &output).expect("right");
        for (name, bins) in [
            ("uniform3", Bins::Uniform(3)),
            ("uniform10", Bins::Uniform(10)),
            ("quantile3", Bins::Quantile(3)),
            ("quantile10", Bins::Quantile(10)),
        ] {
            let given = curve(&rows, 1, bins).expect("a curve");
            let (predicted, observed) = (numbers(&curves[name][0]), numbers(&curves[name][1]));
            assert_eq!(given.len(), predicted.len(), "{number} {name}");
            for ((bin, predicted), observed) in given.iter().zip(predicted).zip(observed) {
                check(bin.predicted, predicted, &(number, name));
                check(bin.observed, observed, &(number, name));
                bins_seen += 1;
            }
        }
    }
    assert!(bins_seen > 500, "{bins_seen}");
}

#[test]
fn balanced_class_weights() {
    for (number, case) in golden()["class_weights"].as_array().expect("cases").iter().enumerate() {
        let (labels, expect) = (classes(&case["y"]), numbers(&case["weights"]));
        let given = ClassWeights::balanced(&labels, expect.len()).expect("every class occurs");
        for (class, expect) in expect.iter().enumerate() {
            check(given.weight(class), *expect, &(number, class));
        }
    }
}

/// Compares the intervals with scipy's for the same data. scipy draws other resamples, so the two differ
/// by the Monte-Carlo error of a quantile. For 40,000 resamples near 5 per cent this error is √(0.05 · 0.95 /
/// 40,000) over the density there, 0.24: 0.0045 (scipy with 200,000 resamples: 0.002). The bound of 0.025 is
/// five such errors (α < 1e-5). The two methods differ by 0.08 or more.
#[test]
fn bootstrap_intervals() {
    let case = &golden()["bootstrap"];
    let errors = numbers(&case["errors"]);
    let truth = vec![0.0; errors.len()];
    let rows = Predictions::new(Task::Regression, &truth, &errors).expect("right");
    for (name, method) in [("percentile", BootstrapMethod::Percentile), ("BCa", BootstrapMethod::Bca)] {
        let settings = BootstrapSettings { resamples: 40_000, alpha: 0.1, method };
        let interval =
            bootstrap(&rows, Metric::Mae, settings, &mut ChaCha8Rng::seed_from_u64(5)).expect("an interval");
        let expect = numbers(&case[name]);
        assert_eq!(interval.method, method);
        for (given, expect) in [interval.lower, interval.upper].into_iter().zip(expect) {
            assert!((given - expect).abs() < 0.025, "{name}: {given} is not {expect}");
        }
    }
}
