//! Tests a user's own tables, from reading to predictions: typed columns, splits and scores of an experiment,
//! and a saved model that predicts in another process.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use fet_eval::Metric;
use fet_eval::records::Report;
use fet_tables::{Options, Table, Values, read};
use rand::RngExt;

use crate::command::fet;
use crate::support::report;
use fet_core::rng::{Purpose, stream};

const EXPERIMENT: &str = r#"
name = "shops"
seed = 3

[train]
epochs = 4
batch_size = 32

[data]
kind = "linked"
task = "binary"
label = "busy"
primary = { name = "shops", file = "shops.csv", keys = ["x", "y"], scaling = "robust", drop = ["part"] }
secondaries = [
    { name = "streets", file = "streets.csv", keys = ["x", "y"] },
    { name = "buses", file = "buses.csv", keys = ["x", "y"], missing = ["-"] },
]

[linker]
kind = "nearest"
neighbours = 3

[method]
kind = "fet"
hidden = 16
heads = 2
dropout = 0.0
"#;

/// Settings of the secondaries with declared ranges.
const DECLARED: &str = r#"
secondaries = [
    { name = "streets", file = "streets.csv", keys = ["x", "y"], bounds = { x = [0, 1], y = [0, 1], lanes = [1, 6] }, categories = { kind = ["lane", "road"] }, dates = { built = ["1950-01-01", "2030-01-01"] } },
    { name = "buses", file = "buses.csv", keys = ["x", "y"], missing = ["-"], bounds = { x = [0, 1], y = [0, 1], seats = [0, 100] }, categories = { line = ["A", "B", "C"] } },
]
"#;

/// Creates shops whose business depends on their size, kind and street, with missing cells, dates, categories
/// and another delimiter.
pub(crate) fn tables(folder: &Path, rows: usize) {
    let mut rng = stream(5, 0, Purpose::Parties, 0);
    let mut shops = "x;y;kind;opened;size;part;busy\n".to_string();
    let (mut streets, mut buses) = ("x,y,kind,lanes,built\n".to_string(), "x\ty\tline\tseats\n".to_string());
    for row in 0..rows {
        let (x, y): (f64, f64) = (rng.random(), rng.random());
        let (size, lanes) = (rng.random_range(10..100), rng.random_range(1..=6));
        let kind = ["bakery", "café", "kiosk"][rng.random_range(0..3)];
        let busy = if 8 * lanes + size + if kind == "café" { 30 } else { 0 } > 90 { "yes" } else { "no" };
        let shown = if row % 11 == 5 { String::new() } else { size.to_string() };
        let opened =
            if row % 13 == 2 { String::new() } else { format!("20{:02}-0{}-15", row % 20, row % 9 + 1) };
        let part = ["train", "train", "train", "validation", "test"][row % 5];
        let _ = writeln!(shops, "{x};{y};{kind};{opened};{shown};{part};{busy}");
        let street = if lanes > 2 { "road" } else { "lane" };
        let built = if row % 7 == 0 { String::new() } else { format!("19{:02}-05-01", 50 + row % 50) };
        let _ = writeln!(streets, "{},{},{street},{lanes},{built}", x + 0.001, y - 0.001);
        let seats = if row % 9 == 4 { "-".to_string() } else { (row % 80).to_string() };
        let _ = writeln!(buses, "{x}\t{y}\t{}\t{seats}", ["A", "B", "C"][row % 3]);
    }
    for (name, text) in [("shops.csv", shops), ("streets.csv", streets), ("buses.csv", buses)] {
        std::fs::write(folder.join(name), text).expect("writable");
    }
    std::fs::write(folder.join("shops.toml"), EXPERIMENT).expect("writable");
}

/// Creates a folder with a finished run of the changed experiment.
pub(crate) fn finished(sets: &[&str]) -> (tempfile::TempDir, Report) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let output = fet(folder.path(), &[&["run", "shops.toml", "--out", "result"], sets.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let found = report(&folder.path().join("result"));
    (folder, found)
}

pub(crate) fn table(folder: &Path, file: &str) -> Table {
    read(&folder.join(file), &Options::default()).expect("a table")
}

pub(crate) fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match &table.column(name).expect("a column").values {
        Values::Number(values) => values.clone(),
        other => panic!("`{name}` is a {}", other.kind()),
    }
}

/// Returns the predictions for the test rows, by row in the file.
fn of_the_run(folder: &Path, column: &str) -> HashMap<u64, u64> {
    let all = table(folder, "result/predictions.csv");
    let (rows, values) = (numbers(&all, "row"), numbers(&all, column));
    rows.iter().zip(values).map(|(row, value)| (*row as u64, value.to_bits())).collect()
}

/// A saved model in another process makes the same predictions as the run, to the last bit.
#[test]
fn finished_model_repeats_the_predictions_of_its_run() {
    for sets in [
        &["seed=3"][..],
        &["method.kind=solo", "train.batch_size=16"],
        &["method.kind=fedsim", "linker.neighbours=2"],
        &["method.kind=top1sim", "data.rows=200"],
        &["aggregator.kind=concat", "train.wire=bytes"],
    ] {
        let (folder, report) = finished(sets);
        let arguments = ["predict", "result", "--rows", "shops.csv", "--out", "new.csv"];
        let output = fet(folder.path(), &arguments);
        assert!(output.status.success(), "{sets:?}: {output:?}");
        let new = table(folder.path(), "new.csv");
        let column = "probability of yes";
        let expected = of_the_run(folder.path(), column);
        assert_eq!(expected.len(), report.rows.validation + report.rows.test);
        let (rows, values) = (numbers(&new, "row"), numbers(&new, column));
        assert_eq!(rows.len(), 300, "every row of the file is predicted");
        let found = rows.iter().zip(values).filter(|(row, _)| expected.contains_key(&(**row as u64)));
        for (row, value) in found {
            assert_eq!(value.to_bits(), expected[&(*row as u64)], "{sets:?}: row {row}");
        }
    }
}

#[test]
fn finished_regression_repeats_the_predictions_of_its_run() {
    let sets = ["data.task=regression", "data.label=size", "data.primary.drop=[\"part\", \"busy\"]"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    // A missing label is refused with its row; without such rows the run learns.
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let run = || fet(folder.path(), &[&["run", "shops.toml", "--out", "result"], sets.as_slice()].concat());
    let refused = String::from_utf8_lossy(&run().stderr).into_owned();
    assert!(refused.contains("shops.csv row 5 (from 0) column `size`: must have a label"), "{refused}");
    let whole: Vec<String> = std::fs::read_to_string(folder.path().join("shops.csv"))
        .expect("readable")
        .lines()
        .filter(|line| line.split(';').nth(4) != Some(""))
        .map(String::from)
        .collect();
    std::fs::write(folder.path().join("shops.csv"), whole.join("\n")).expect("writable");
    assert!(run().status.success());
    predictions_are_those_of_the_run(folder.path());
    let methods = ["linear-solo", "linear-top1", "gbdt-solo", "gbdt-top1", "gbdt-pooled"];
    let mixed = ["with-trees", "with-linear"];
    let given = methods.into_iter().chain(mixed).map(|method| vec![format!("method.kind={method}")]);
    let fitted = mixed.map(|method| vec![format!("method.kind={method}"), "method.share=fitted".to_string()]);
    let inputs = ["train.target=log", "train.target=quantile", "train.key_inputs=false"];
    let changed = inputs.into_iter().flat_map(|input| {
        ["gbdt-solo", "linear-top1", "fet"]
            .map(|method| vec![format!("method.kind={method}"), input.to_string()])
    });
    for method in given.chain(fitted).chain(changed) {
        std::fs::remove_dir_all(folder.path().join("result")).expect("a run");
        let method = method.iter().flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = ["run", "shops.toml", "--out", "result"]
            .into_iter()
            .chain(sets.iter().copied())
            .chain(method)
            .collect();
        let output = fet(folder.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        predictions_are_those_of_the_run(folder.path());
        let fitted = report(&folder.path().join("result")).fitted;
        let expected = match arguments[..] {
            [.., "method.kind=with-trees", _, "method.share=fitted"] => {
                vec!["method.growth.trees", "method.share"]
            }
            [.., "method.share=fitted"] => vec!["method.share"],
            _ => Vec::new(),
        };
        assert!(fitted.keys().map(String::as_str).eq(expected), "{fitted:?}");
        assert!(fitted.get("method.share").is_none_or(|share| (0.0..=1.0).contains(share)), "{fitted:?}");
    }
}

/// Predicts the rows of `shops.csv` by the model of the run `result`, and compares the test rows with the run's predictions.
fn predictions_are_those_of_the_run(folder: &Path) {
    let output = fet(folder, &["predict", "result", "--rows", "shops.csv", "--out", "new.csv"]);
    assert!(output.status.success(), "{output:?}");
    let (new, expected) = (table(folder, "new.csv"), of_the_run(folder, "prediction"));
    let (lower, upper) = (numbers(&new, "lower"), numbers(&new, "upper"));
    let mut compared = 0;
    for ((row, value), (lower, upper)) in
        numbers(&new, "row").iter().zip(numbers(&new, "prediction")).zip(lower.iter().zip(upper))
    {
        assert!(*lower <= value && value <= upper, "row {row}");
        if let Some(expected) = expected.get(&(*row as u64)) {
            assert_eq!(value.to_bits(), *expected, "row {row}");
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared} rows");
}

/// New rows may have unseen categories, missing cells and other columns, and may come from standard input.
#[test]
fn accepts_new_rows_in_every_form() {
    let (folder, _) = finished(&[]);
    let new = "busy,y,x,size,kind,opened,more\n,0.5,0.5,,butcher,,1\n,0.2,0.9,1e9,café,2031-01-01,2\n";
    std::fs::write(folder.path().join("new.csv"), new).expect("writable");
    let output = fet(folder.path(), &["predict", "result", "--rows", "new.csv"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.starts_with("row,prediction,probability of no,probability of yes"), "{text}");
    assert!(
        text.lines().next().expect("a header").ends_with("similarity to streets,similarity to buses"),
        "{text}"
    );
    let refused = |new: &str, parts: &[&str]| {
        std::fs::write(folder.path().join("bad.csv"), new).expect("writable");
        let output = fet(folder.path(), &["predict", "result", "--rows", "bad.csv", "--out", "out.csv"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert!(!folder.path().join("out.csv").exists());
    };
    refused("x,y,kind,opened\n0,0,café,\n", &["bad.csv", "lacks the column `size`"]);
    refused("x,y,kind,opened,size\n0,,café,,1\n", &["row 0 (from 0) column `y`", "missing"]);
    refused("x,y,kind,opened,size\n0,0,café,,big\n", &["bad.csv line 2 column `size`", "\"big\""]);
    refused("x,y,kind,opened,size\n", &["is empty below its header"]);
    let none = fet(folder.path(), &["predict", "nowhere", "--rows", "new.csv"]);
    assert_eq!(none.status.code(), Some(2));
    let name = fet(folder.path(), &["predict", "result", "--rows", "new.csv", "--out", "out.xlsx"]);
    assert_eq!(name.status.code(), Some(2), "{name:?}");
    let onto = fet(folder.path(), &["predict", "result", "--rows", "new.csv", "--out", "new.csv"]);
    assert_eq!(onto.status.code(), Some(2), "{onto:?}");
}

/// A damaged model of the primary or of a party, or a model of another run, is refused.
#[test]
fn refuses_a_model_of_another_run() {
    let (folder, _) = finished(&["train.epochs=1"]);
    let (other, _) = finished(&["train.epochs=1", "seed=4"]);
    let refused = |file: &str, bytes: &[u8], part: &str| {
        let path = folder.path().join("result").join(file);
        let own = std::fs::read(&path).expect("a model");
        std::fs::write(&path, bytes).expect("writable");
        let output = fet(folder.path(), &["predict", "result", "--rows", "shops.csv"]);
        std::fs::write(&path, own).expect("writable");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{file}: {message}");
        assert!(message.contains(part), "{file}: {part} in {message}");
    };
    for (file, part) in [
        ("model.safetensors", "belongs to another run"),
        ("parties/party1/model.safetensors", "belongs to another run"),
    ] {
        let mut bytes = std::fs::read(other.path().join("result").join(file)).expect("a model");
        refused(file, &bytes, part);
        bytes.truncate(bytes.len() - 3);
        refused(file, &bytes, "damaged");
    }
    let swapped =
        std::fs::read(folder.path().join("result/parties/party2/model.safetensors")).expect("a model");
    refused("parties/party1/model.safetensors", &swapped, "another run or party");
}

/// The primary of a run on several machines checks its own table and trains without the others, whose tables it does not have.
#[test]
fn a_primary_works_alone_without_the_tables_of_the_others() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let mut text = EXPERIMENT.to_string();
    for file in ["streets.csv", "buses.csv"] {
        std::fs::remove_file(folder.path().join(file)).expect("a table");
        let setting = format!("file = \"{file}\", ");
        assert!(text.contains(&setting), "{text}");
        text = text.replace(&setting, "");
    }
    std::fs::write(folder.path().join("shops.toml"), text).expect("writable");
    let checked = fet(folder.path(), &["data", "check", "shops.toml"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{checked:?}");
    for part in ["primary shops: 300 records", "training", "elsewhere: streets, buses", "fet party check"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let solo = ["run", "shops.toml", "--out", "solo", "--set", "method.kind=solo", "--set", "train.epochs=1"];
    let solo = fet(folder.path(), &solo);
    assert!(solo.status.success(), "{solo:?}");
    assert!(folder.path().join("solo/report.json").exists());
    let together = fet(folder.path(), &["run", "shops.toml", "--out", "together"]);
    let said = String::from_utf8_lossy(&together.stderr).into_owned();
    assert_eq!(together.status.code(), Some(2), "{said}");
    for part in ["data.secondaries[0].file", "\"streets\" is on its own machine", "--parties ROSTER"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!folder.path().join("together").exists());
}

/// Predictions with a privacy mechanism cost ε, which the command prints. A guarantee by sampling does not cover them.
#[test]
fn predictions_with_noise_cost_epsilon() {
    let predicted = |sets: &[&str], rows: usize| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        tables(folder.path(), 300);
        let text = EXPERIMENT.to_string();
        let cut = text.find("secondaries").expect("there")..text.find("[linker]").expect("there");
        let text = format!("{}{DECLARED}{}", &text[..cut.start], &text[cut.end..]);
        std::fs::write(folder.path().join("shops.toml"), text).expect("writable");
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output =
            fet(folder.path(), &[&["run", "shops.toml", "--out", "result"], sets.as_slice()].concat());
        assert!(output.status.success(), "{output:?}");
        let table = std::fs::read_to_string(folder.path().join("shops.csv")).expect("a table");
        let table: Vec<&str> = table.lines().take(1 + rows).collect();
        std::fs::write(folder.path().join("new.csv"), table.join("\n")).expect("writable");
        let output = fet(folder.path(), &["predict", "result", "--rows", "new.csv"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let cost = |rows: usize| -> f64 {
        let batch = "train.evaluation_batch_size=75";
        let (code, said) = predicted(&["privacy.kind=gaussian", "privacy.noise=60.0", batch], rows);
        assert_eq!(code, Some(0), "{said}");
        let (_, rest) =
            said.split_once("these predictions would cost ε = ").unwrap_or_else(|| panic!("{said}"));
        rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let (one, less, many) = (cost(20), cost(10), cost(300));
    assert_eq!(one, less, "a batch costs the same, whatever its number of rows");
    // 300 rows are 4 batches or more: a batch has at most as many rows as one of the run.
    assert!(1.9 * one < many && many < 20.0 * one, "{one} for one batch, {many} for 300 rows");
    let sampled = [
        "privacy.kind=discrete-gaussian",
        "privacy.neighbouring=add-remove",
        "privacy.learning=assumed",
        "privacy.max_occurrences=1",
        "privacy.amplification=true",
        "privacy.sample_rate=0.5",
        "privacy.noise=8.0",
        "train.batches=poisson",
    ];
    let (code, said) = predicted(&sampled, 75);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("`privacy.amplification` is proved for its planned releases alone"), "{said}");
}

/// With a privacy mechanism, every statistic of a secondary's records must be declared, column by column, or
/// the run is refused.
#[test]
fn requires_declared_columns_with_a_mechanism() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let arguments = [
        "run",
        "shops.toml",
        "--out",
        "result",
        "--set",
        "privacy.kind=gaussian",
        "--set",
        "privacy.noise=1.0",
    ];
    let output = fet(folder.path(), &arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("features of \"streets\"") && message.contains("`categories`"), "{message}");
    assert!(!folder.path().join("result").exists());
}

/// Explains a run in which the street's lanes determine much of the business, and the bus's seats nothing.
#[test]
fn explains_a_run_by_parties_and_columns() {
    let (folder, report) =
        finished(&["train.epochs=30", "method.optimizer.learning_rate=0.01", "train.batch_size=16"]);
    let output = fet(folder.path(), &["explain", "result", "--rows", "0"]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(folder.path().join("result/explanation.json")).expect("written");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let anchors = &found["anchors"];
    assert_eq!(anchors["with_all"].as_f64(), Some(report.best.test), "the metric of the run");
    assert!(anchors["control"].is_null());
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let parties = &found["parties"];
    assert_eq!(parties["names"], serde_json::json!(["streets", "buses"]));
    let sum: f64 = parties["shapley"]["values"].as_array().expect("values").iter().map(number).sum();
    let gained = number(&parties["shapley"]["all"]) - number(&parties["shapley"]["none"]);
    assert!((sum - gained).abs() < 1e-12, "the values sum to the gain of all parties: {sum}, {gained}");
    let importance = |party: &str, column: &str| {
        let all = found["columns"].as_array().expect("columns");
        let one = all.iter().find(|one| one["party"] == party && one["column"] == column).expect("a column");
        number(&one["importance"]["mean"])
    };
    assert!(importance("shops", "size") > 0.05, "{text}");
    assert!(importance("shops", "size") > importance("buses", "seats"), "{text}");
    assert_eq!(anchors["without_parties"].as_f64(), parties["shapley"]["none"].as_f64());
    // The accuracy of a constant class is its share of the 60 test rows.
    let constant = number(&anchors["training_mean"]);
    assert!((60.0 * constant).fract().min(1.0 - (60.0 * constant).fract()) < 1e-9, "{constant}");
    assert!((0.2..0.8).contains(&constant) && constant < report.best.test, "{constant}");
    for (place, lost) in parties["reliance"].as_array().expect("reliance").iter().enumerate() {
        let without = number(&parties["without"][place]);
        assert!((number(&anchors["with_all"]) - without - number(lost)).abs() < 1e-12, "{text}");
    }
    let keys = found["keys"].as_array().expect("keys");
    let owners: Vec<_> = keys.iter().map(|keys| keys["party"].as_str().expect("a name")).collect();
    assert_eq!(owners, ["shops", "streets", "buses"]);
    assert!(keys.iter().any(|keys| number(&keys["importance"]["mean"]) != 0.0), "models see keys: {text}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in ["not what federating with it adds", "--control RUN", "`fet study`", "shops: all keys"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let picture = std::fs::read_to_string(folder.path().join("result/explanation.svg")).expect("written");
    for part in ["Reliance on each party", "Shapley value: accuracy", "permutation loss: accuracy"] {
        assert!(picture.contains(part), "{part} in {picture}");
    }
    // Every row of a party has the party's colour, in both panels.
    for (number, name) in ["shops", "streets", "buses"].iter().enumerate() {
        let rows = picture.matches(&format!("data-series=\"{number}\"")).count();
        let columns =
            found["columns"].as_array().expect("columns").iter().filter(|one| one["party"] == *name);
        assert_eq!(rows, columns.count() + 1 + usize::from(number > 0), "{name}: {picture}");
    }
    let twice = fet(folder.path(), &["explain", "result", "--rows", "0"]);
    assert_eq!(twice.stdout, output.stdout, "the same run has the same explanation");
}

/// The gain of federating is the difference from a model trained without the other parties.
#[test]
fn explanation_shows_the_control_run_and_refuses_other_runs() {
    let (folder, _) = finished(&["train.epochs=2"]);
    let path = folder.path();
    let run = |out: &str, sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = fet(path, &[&["run", "shops.toml", "--out", out], sets.as_slice()].concat());
        assert!(output.status.success(), "{output:?}");
        report(&path.join(out))
    };
    let alone = run("alone", &["method.kind=solo", "train.epochs=2"]);
    run("other", &["method.kind=solo", "train.epochs=2", "seed=4"]);
    let explain = |control: &str| {
        fet(path, &["explain", "result", "--rows", "0", "--repeats", "1", "--control", control])
    };
    let output = explain("alone");
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(path.join("result/explanation.json")).expect("written");
    let found: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let control = &found["anchors"]["control"];
    assert_eq!((control["run"].as_str(), control["method"].as_str()), (Some("alone"), Some("solo")));
    assert_eq!(control["score"].as_f64(), Some(alone.best.test));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("Effect of federating on these rows") && said.contains("than alone"), "{said}");
    for (control, part) in
        [("result", "primary alone"), ("other", "same split and seed"), ("nowhere", "nowhere")]
    {
        let output = explain(control);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn shows_and_checks_tables_before_training() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let shown = fet(folder.path(), &["data", "show", "shops.csv", "--column", "kind=text"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in
        ["300 rows, 7 columns", "size", "number", "opened", "date", "`;`", "size is missing", "kind #0"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let checked = fet(folder.path(), &["data", "check", "shops.toml"]);
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{checked:?}");
    for part in [
        "found    streets.csv",
        "one of no, yes",
        "210 training, 30 validation, 60 test",
        "line = A",
        "seats is missing",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    std::fs::remove_file(folder.path().join("buses.csv")).expect("there");
    let toml = format!("origin = \"ask the bus company\"\n{EXPERIMENT}");
    std::fs::write(folder.path().join("shops.toml"), toml).expect("writable");
    let missing = fet(folder.path(), &["data", "check", "shops.toml"]);
    let message = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(2), "{message}");
    assert!(message.contains("buses.csv") && message.contains("ask the bus company"), "{message}");
}

/// Each model has a model card with the figures of the report.
#[test]
fn writes_a_model_card() {
    let (folder, report) = finished(&["train.epochs=1"]);
    let card = std::fs::read_to_string(folder.path().join("result/model-card.md")).expect("a card");
    let value = Metric::Accuracy.show(report.best.test);
    for part in [
        "# Model card: shops",
        &report.data.files,
        "\"streets\", \"buses\"",
        &value,
        "`nearest`",
        "no bound",
        "no, yes",
    ] {
        assert!(card.contains(part), "{part} in {card}");
    }
}

/// The report contains the reader's doubtful decisions, and an owner can declare a mark of missing cells to
/// be a value.
#[test]
fn reports_reading_decisions_and_keeps_declared_values() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let mut primary = "k,when,region\n".to_string();
    let mut secondary = "k,z\n".to_string();
    for row in 0..60 {
        let _ =
            writeln!(primary, "{row},{:02}/{:02}/2024,{}", 1 + row % 12, 1 + row % 7, ["NA", "EU"][row % 2]);
        let _ = writeln!(secondary, "{row},{}", row % 9);
    }
    std::fs::write(path.join("p.csv"), primary).expect("writable");
    std::fs::write(path.join("s.csv"), secondary).expect("writable");
    let experiment = |more: &str| {
        format!(
            "name = 'c'\nlinker = {{ kind = 'nearest', neighbours = 1 }}\nmethod = {{ kind = 'solo' }}\ntrain = {{ epochs = 1 }}\n\
             [data]\nkind = 'linked'\ntask = 'binary'\nlabel = 'region'\nprimary = {{ file = 'p.csv', keys = ['k']{more} }}\n\
             secondaries = [{{ file = 's.csv', keys = ['k'] }}]\n"
        )
    };
    let run = |more: &str, out: &str| {
        std::fs::write(path.join("e.toml"), experiment(more)).expect("writable");
        fet(path, &["run", "e.toml", "--out", out])
    };
    let refused = run("", "r");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.contains("it is missing") && message.contains("`missing`"), "{message}");
    for (more, out) in
        [(", columns = { region = 'category' }", "a"), (", missing = ['-']", "b"), (", missing = ['']", "d")]
    {
        let output = run(more, out);
        assert!(output.status.success(), "{more}: {output:?}");
        let warnings = report(&path.join(out)).warnings;
        assert!(
            warnings
                .iter()
                .any(|warning| warning.contains("column `when`") && warning.contains("date:%d/%m/%Y")),
            "{warnings:?}"
        );
    }
}

const EQUAL: &str = r#"
name = "equal"
seed = 3
[train]
epochs = 1
batch_size = 32
[data]
kind = "linked"
task = "regression"
label = "y"
key_kind = "text"
primary = { name = "p", file = "p.csv", keys = ["id"] }
secondaries = [{ name = "s", file = "s.csv", keys = ["id"] }]
[linker]
kind = "exact"
[method]
kind = "fet"
hidden = 8
heads = 2
"#;

/// A folder with tables of equal keys and an experiment on them; `id` writes the key of a row.
fn equal_keys(id: fn(usize) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut primary, mut secondary) = ("id,a,y\n".to_string(), "id,b\n".to_string());
    for row in 0..120 {
        let _ = writeln!(primary, "{},{},{}", id(row), row % 7, row % 7 + row % 5);
        let _ = writeln!(secondary, "{},{}", id(row), row % 5);
    }
    for (name, text) in [("p.csv", &primary[..]), ("s.csv", &secondary), ("equal.toml", EQUAL)] {
        std::fs::write(folder.path().join(name), text).expect("writable");
    }
    folder
}

#[test]
fn warns_of_other_files_only_if_a_row_lacks_a_link() {
    let folder = equal_keys(|row| format!("a{row}"));
    let path = folder.path();
    let output = fet(path, &["run", "equal.toml", "--out", "result"]);
    assert!(output.status.success(), "{output:?}");
    let predicted = |rows: &str| {
        std::fs::write(path.join("new.csv"), format!("id,a\n{rows}")).expect("writable");
        let output = fet(path, &["predict", "result", "--rows", "new.csv", "--out", "out.csv"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let warning = "the same rows in another file get other predictions";
    let said = predicted("a7,1\na3,2\n");
    assert!(!said.contains(warning), "{said}");
    let said = predicted("a7,1\nzzz,2\n");
    assert!(said.contains(warning), "{said}");
}

#[test]
fn warns_of_the_comparison_of_equal_keys() {
    let numbered = |row: usize| (if row == 9 { 7 } else { row }).to_string();
    for linker in ["exact", "psi"] {
        let folder = equal_keys(numbered);
        let set = format!("linker.kind={linker}");
        let output = fet(folder.path(), &["run", "equal.toml", "--out", "result", "--set", &set]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let numbers = "key column 1 holds texts and is compared as numbers";
        assert_eq!(said.matches(numbers).count(), 1, "{said}");
        let repeated = "2 of 120 records have a key that more than 1 record has";
        assert_eq!(said.matches(repeated).count(), 1, "{said}");
        let report = std::fs::read_to_string(folder.path().join("result/report.json")).expect("a report");
        assert!(report.contains(numbers), "{report}");
    }
}

#[test]
fn run_refuses_latitude_before_longitude() {
    let folder = equal_keys(|row| format!("a{row}"));
    let keys = [
        "data.key_kind=numbers",
        "linker={kind=\"nearest\",metric=\"haversine\"}",
        "data.primary.keys=[\"lon\",\"lat\"]",
        "data.secondaries=[{name=\"s\",file=\"s.csv\",keys=[\"lat\",\"lng\"]}]",
    ];
    let sets: Vec<&str> = keys.iter().flat_map(|set| ["--set", set]).collect();
    let output = fet(folder.path(), &[&["run", "equal.toml", "--out", "result"], sets.as_slice()].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("\"lat\", \"lng\"") && error.contains("longitude comes first"), "{error}");
}

const FORMS: &str = r#"
name = "forms"
seed = 3

[train]
epochs = 1
batch_size = 32

[data]
kind = "linked"
task = "multiclass"
label = "class"
primary = { name = "p", file = "p.csv", keys = ["x"] }
secondaries = [{ name = "s", file = "s.csv", keys = ["x"] }]

[linker]
kind = "nearest"
neighbours = 2

[method]
kind = "fet"
hidden = 8
"#;

/// One cell of new records cannot change how the others are read: a prediction stays, a warning counts the cells, or the program refuses.
#[test]
fn reads_new_records_in_the_form_of_training() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
    let row = |row: usize| {
        let x = format!("{}.{:03}", row % 90 + 1, row * 37 % 1000);
        let at = format!("2020-01-{:02}T{:02}:00:00", row % 28 + 1, row % 24);
        let code = if row.is_multiple_of(5) { "-".to_string() } else { row.to_string() };
        (format!("{x},{}%,{at},{code}", row % 50), format!("{x},{}.{:03}", row % 7 + 1, row * 91 % 1000))
    };
    let (mut p, mut s) = ("x,share,at,code,class\n".to_string(), "x,v\n".to_string());
    for at in 0..120 {
        let (own, other) = row(at);
        let _ = writeln!(p, "{own},{}", if at == 100 { "rare" } else { ["a", "b"][at % 2] });
        let _ = writeln!(s, "{other}");
    }
    write("p.csv", &p);
    write("s.csv", &s);
    let rare = (3..40).find_map(|seed| {
        write("forms.toml", &FORMS.replace("seed = 3", &format!("seed = {seed}")));
        let _ = std::fs::remove_dir_all(folder.path().join("result"));
        let output = fet(folder.path(), &["run", "forms.toml", "--out", "result"]);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{text}");
        assert!(text.contains("96 of 120 cells are numbers"), "{text}");
        text.contains("class rare").then_some(text)
    });
    let rare = rare.expect("a split without the class in training");
    assert!(
        rare.contains(
            "class rare: the model has not learned its probability, so a prediction of it is a guess"
        ),
        "{rare}"
    );
    let header = "x,share,at,code\n";
    let rows: String = (0..6).map(|at| row(at).0 + "\n").collect();
    let predict = |more: &str, arguments: &[&str]| {
        write("new.csv", &format!("{header}{rows}{more}\n"));
        let output = fet(folder.path(), &[&["predict", "result", "--rows", "new.csv"], arguments].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), message, String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, quiet, usual) = predict("5.500,5%,2020-01-05T10:00:00,4", &[]);
    assert_eq!(code, Some(0), "{quiet}");
    let check = |more: &str, expected: i32, part: &str| {
        let (code, message, found) = predict(more, &[]);
        assert_eq!(code, Some(expected), "{more}: {message}");
        assert!(message.contains(part), "{more}: {message}");
        let others = |text: &str| text.lines().take(7).map(String::from).collect::<Vec<_>>();
        assert!(expected != 0 || others(&found) == others(&usual), "{more}: {found}");
    };
    check("\"5,5\",5%,2020-01-05T10:00:00,4", 2, "line 8 column `x`");
    check("1.234.567,5%,2020-01-05T10:00:00,4", 2, "line 8 column `x`");
    check("5.500,0.05,2020-01-05T10:00:00,4", 0, "column `share`: 1 of 7 cells is written with no unit");
    check("5.500,5‰,2020-01-05T10:00:00,4", 0, "with the unit ‰");
    check("5.500,\"5,5%\",2020-01-05T10:00:00,4", 2, "line 8 column `share`");
    check(
        "5.500,5%,2020-01-05T10:00:00+09:00,4",
        0,
        "column `at`: 1 of 7 cells is written with a time and a zone",
    );
    check("5.500,5%,2020-01-05,4", 0, "column `at`: 1 of 7 cells is written without a time");
    // An identifier keeps the spaces around it.
    write("ids.csv", &format!("name,{header} Ann ,{}\n", row(0).0));
    let output = fet(folder.path(), &["predict", "result", "--rows", "ids.csv", "--id", "name"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("0, Ann ,") || text.contains("0,\" Ann \","), "{text} {output:?}");
    // One cell does not decide the form of a key, and the setting that the message names does.
    let odd = format!("{s}\"5,5\",1.500\n");
    write("odd.csv", &odd);
    let run = |columns: &str| {
        let table = format!("file = \"odd.csv\", columns = {{ {columns} }}");
        write("odd.toml", &FORMS.replace("file = \"s.csv\"", &table));
        let output = fet(folder.path(), &["run", "odd.toml", "--out", "odd"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, message) = run("");
    assert!(code == Some(2) && message.contains("columns.x = \"number:1.234,5\""), "{message}");
    let (code, message) = run("x = \"number:1,234.5\"");
    assert!(code == Some(2) && message.contains("line 122 column `x`"), "{message}");
    let (code, message) = run("x = \"number:1.234,5\"");
    assert!(code == Some(0), "{message}");
    // The table of a secondary is held to its form, too.
    std::fs::create_dir(folder.path().join("other")).expect("writable");
    for cell in ["\"5,5\"", "1.234.567"] {
        write("other/s.csv", &format!("{s}5.500,{cell}\n"));
        let (code, message, _) = predict("5.500,5%,2020-01-05T10:00:00,4", &["--data", "other"]);
        assert!(code == Some(2) && message.contains("column `v`"), "{message}");
    }
    write("other/s.csv", "x,v\n5.500,\"1.234,5\"\n6.500,\"2.234,5\"\n");
    let (code, message, _) = predict("5.500,5%,2020-01-05T10:00:00,4", &["--data", "other"]);
    assert!(code == Some(2) && message.contains("`v`") && message.contains("in training"), "{message}");
}
