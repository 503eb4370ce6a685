//! Tests the data that models see: transformed labels of a regression, and keys that only link records.

use fet_core::data::{Matrix, Task, VerticalData};
use fet_core::method::Method;
use fet_core::registry::{Slot, plugins};
use fet_core::rng::{Purpose, stream};
use fet_federation::trainer::{Evaluated, Trainer};
use rand::RngExt;

use crate::command::{fet, refused};
use crate::own_data::{finished, tables};
use crate::support::{experiment, flex, losses, square, trainer};

fn trained(sets: &[&str], data: VerticalData) -> Trainer {
    let mut trainer = trainer(&experiment(sets), data, &flex()).expect("a trainer");
    while !trainer.is_done() {
        losses(&mut trainer);
    }
    trainer
}

fn evaluated(trainer: &Trainer) -> [Evaluated; 2] {
    trainer.evaluated().expect("an epoch")
}

/// Labels from 0 to some thousands with a long tail, and their logarithms.
fn long_tail(rows: usize) -> [VerticalData; 2] {
    let logarithms = square(rows, Task::Regression);
    let low = logarithms.labels.iter().copied().fold(f64::INFINITY, f64::min);
    let transformed = logarithms.labels.iter().map(|label| 0.4 * (label - low));
    let logarithms = VerticalData { labels: transformed.collect(), ..logarithms };
    let labels = logarithms.labels.iter().map(|label| label.exp_m1()).collect();
    [VerticalData { labels, ..logarithms.clone() }, logarithms]
}

/// A run with `train.target = "log"` makes the predictions of a run on the logarithms of the labels. Its scores are in
/// the label's own unit.
#[test]
fn log_target_learns_the_logarithms_of_the_labels() {
    let [labels, logarithms] = long_tail(300);
    for method in ["fet", "solo", "linear-solo", "linear-top1", "gbdt-solo", "gbdt-top1", "with-trees"] {
        let method = format!("method.kind={method}");
        let sets = ["train.epochs=2", method.as_str()];
        let log = trained(&[&sets[..], &["train.target=log"]].concat(), labels.clone());
        let none = trained(&sets, logarithms.clone());
        // The scores select another epoch, so the comparison is of the same epoch's training.
        let [first, second] = [&log, &none].map(|trainer| trainer.progress().epochs[0].train_loss);
        assert!((first - second).abs() <= 1e-5 * second, "{method}: {first} {second}");
        let [_, test] = evaluated(&log);
        let squared = test.values.iter().zip(&test.truth).map(|(value, truth)| (value - truth).powi(2));
        let rmse = (squared.sum::<f64>() / test.truth.len() as f64).sqrt();
        let best = log.progress().best.expect("an epoch");
        let reported = log.progress().epochs[best].test.expect("tested");
        assert!((rmse - reported).abs() < 1e-9 * rmse, "{method}: {rmse}, reported {reported}");
        assert!(test.truth.iter().all(|truth| labels.labels.contains(truth)), "labels keep their unit");
        if none.progress().best == log.progress().best {
            let [_, other] = evaluated(&none);
            for (value, logarithm) in test.values.iter().zip(&other.values) {
                let wanted = logarithm.exp_m1();
                assert!((value - wanted).abs() <= 1e-3 * (1.0 + wanted), "{method}: {value}, not {wanted}");
            }
        }
    }
}

/// On labels whose logarithm is linear in the columns, both transformations err less than a linear model of the labels.
#[test]
fn transformations_reduce_the_error_on_a_long_tail() {
    let mut rng = stream(31, 0, Purpose::Source, 0);
    let mut data = square(600, Task::Regression);
    let features: Vec<f32> = (0..600).map(|_| rng.random::<f32>()).collect();
    data.labels = features.iter().map(|&x| (8.0 * f64::from(x)).exp() - 1.0).collect();
    data.primary.features = Matrix::new(1, features).into();
    let error = |target: &str| {
        let trainer = trained(&["method.kind=linear-solo", target], data.clone());
        let [_, test] = evaluated(&trainer);
        let all = test.values.iter().zip(&test.truth).map(|(value, truth)| (value - truth).abs());
        all.sum::<f64>() / test.truth.len() as f64
    };
    let none = error("train.target=none");
    for (target, share) in [("train.target=log", 0.05), ("train.target=quantile", 0.2)] {
        assert!(error(target) < share * none, "{target}: {} of {none}", error(target));
    }
}

#[test]
fn refuses_targets_that_do_not_fit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let check = |sets: &[&str], parts: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = fet(folder.path(), &[&["run", "shops.toml", "--out", "none"], sets.as_slice()].concat());
        refused(&output, parts);
        assert!(!folder.path().join("none").exists(), "nothing is written");
    };
    check(&["train.target=log"], &["`train.target` must be \"none\" for classes", "\"log\""]);
    check(&["train.target=sqrt"], &["`train.target` must be one of", "\"quantile\"", "\"sqrt\""]);
    let latitude = ["data.task=regression", "data.label=below", "data.primary.drop=[\"part\", \"busy\"]"];
    let text = std::fs::read_to_string(folder.path().join("shops.csv")).expect("readable");
    let with_label: Vec<String> = text
        .lines()
        .enumerate()
        .map(
            |(row, line)| {
                if row == 0 { format!("{line};below") } else { format!("{line};{}", row as f64 - 7.5) }
            },
        )
        .collect();
    std::fs::write(folder.path().join("shops.csv"), with_label.join("\n")).expect("writable");
    check(
        &[&latitude[..], &["train.target=log"]].concat(),
        &["`train.target`", "ln(1 + label)", "the smallest label is -6.5"],
    );
}

/// A run that starts from an earlier model has its target and its inputs.
#[test]
fn refuses_another_target_or_other_inputs_than_the_earlier_run() {
    let (folder, _) = finished(&["train.epochs=1"]);
    for (set, parts) in [
        ("train.key_inputs=false", ["`train.key_inputs`", "in the earlier run"]),
        ("train.target=quantile", ["`train.target` must be \"none\"", "the earlier run"]),
    ] {
        let output =
            fet(folder.path(), &["run", "shops.toml", "--out", "next", "--from", "result", "--set", set]);
        refused(&output, &parts);
    }
}

/// The same data with other keys, between the same ends and so with another scaling.
fn with_other_keys(data: &VerticalData) -> VerticalData {
    let mut rng = stream(32, 0, Purpose::Source, 0);
    let mut other = data.clone();
    for table in std::iter::once(&mut other.primary).chain(&mut other.secondaries) {
        let rows = table.keys.rows();
        table.keys = Matrix::new(2, (0..2 * rows).map(|_| rng.random::<f64>()).collect()).into();
    }
    other
}

/// With links that do not depend on keys, a run without keys as inputs has the same losses and predictions for any keys,
/// to the last bit. The control variant has other losses.
#[test]
fn models_do_not_see_keys_that_only_link() {
    let data = square(150, Task::Regression);
    let other = with_other_keys(&data);
    let mut compared = 0;
    for plugin in plugins::<dyn Method>() {
        let method = format!("method.kind={}", plugin.kind);
        let plan =
            Slot::<dyn Method>::with_defaults(plugin.kind).expect("sound").build(&()).expect("sound").plan();
        // This linker gives no similarities.
        if plan.similarities {
            continue;
        }
        let encoded: &[&str] = match plugin.kind {
            "fet-pool" | "solo" | "top1sim" => {
                &["method.key_encoding.width=4", "method.key_encoding.grid.width=2"]
            }
            _ => &[],
        };
        let sets = [&["train.epochs=2", "linker.kind=random", method.as_str()], encoded].concat();
        let run = |key_inputs: &str, data: &VerticalData| {
            let trainer = trained(&[&sets[..], &[key_inputs]].concat(), data.clone());
            let losses: Vec<u64> =
                trainer.progress().epochs.iter().map(|epoch| epoch.train_loss.to_bits()).collect();
            (losses, evaluated(&trainer))
        };
        let hidden = "train.key_inputs=false";
        assert_eq!(run(hidden, &data), run(hidden, &other), "{method}");
        let seen = "train.key_inputs=true";
        let sees_keys = run(seen, &data).0 != run(seen, &other).0;
        assert!(sees_keys, "{method}: the control variant sees keys");
        compared += 1;
    }
    assert!(compared > 5, "{compared} methods");
}
