//! Tests of the columns that `data.key_features` computes from keys.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use fet_core::rng::{Purpose, stream};
use rand::RngExt;

use crate::command::{fet, read, refused};
use crate::own_data::{numbers, table};

const EXPERIMENT: &str = r#"
name = "trips"

[data]
kind = "linked"
task = "regression"
label = "minutes"
primary = { file = "trips.csv", keys = ["from_x", "from_y", "to_x", "to_y"] }
secondaries = [{ name = "other", file = "other.csv", keys = ["from_x", "from_y", "to_x", "to_y"] }]

[linker]
kind = "nearest"
neighbours = 3

[method]
kind = "linear-solo"
"#;

/// Writes 300 trips that take three minutes for each unit of distance.
fn trips(folder: &Path) {
    let mut rng = stream(9, 0, Purpose::Parties, 0);
    let header = "from_x,from_y,to_x,to_y";
    let (mut own, mut other) = (format!("{header},size,minutes\n"), format!("{header},speed\n"));
    for _ in 0..300 {
        let [a, b, c, d]: [f64; 4] = std::array::from_fn(|_| 10.0 * rng.random::<f64>());
        let minutes = 3.0 * (c - a).hypot(d - b);
        let _ = writeln!(own, "{a},{b},{c},{d},{},{minutes}", rng.random::<f64>());
        let _ = writeln!(other, "{a},{b},{c},{d},{}", rng.random::<f64>());
    }
    for (name, text) in [("trips.csv", own), ("other.csv", other), ("e.toml", EXPERIMENT.to_string())] {
        fs::write(folder.join(name), text).expect("written");
    }
}

#[test]
fn a_linear_model_learns_a_distance_only_with_key_features() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trips(folder);
    let rmse = |out: &str, set: &str| {
        let run = fet(folder, &["run", "e.toml", "--set", set, "--out", out]);
        assert!(run.status.success(), "{run:?}");
        let report: serde_json::Value =
            serde_json::from_str(&read(folder, &format!("{out}/report.json"))).expect("JSON");
        report["best"]["test"].as_f64().expect("an RMSE")
    };
    let (with, without) =
        (rmse("with", "data.key_features=true"), rmse("without", "data.key_features=false"));
    assert!(with < 0.05 && without > 1.0, "{with} with key features, {without} without");
    // The columns of a single new row are constant, and its features follow the training rows all the same.
    let new = "from_x,from_y,to_x,to_y,size\n1,1,4,5,0.5\n";
    fs::write(folder.join("new.csv"), new).expect("written");
    let predicted = fet(folder, &["predict", "with", "--rows", "new.csv", "--out", "p.csv"]);
    assert!(predicted.status.success(), "{predicted:?}");
    let found = numbers(&table(folder, "p.csv"), "prediction")[0];
    assert!((found - 15.0).abs() < 0.2, "{found} minutes for a distance of 5");
}

#[test]
fn refuses_texts_and_a_column_of_that_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    trips(folder);
    let set = |more: &'static str| ["run", "e.toml", "--set", "data.key_features=true", "--set", more];
    refused(&fet(folder, &set("data.key_kind=text")), &["key_features", "must be false for keys of texts"]);
    let text = read(folder, "trips.csv").replacen("size", "to_x - from_x", 1);
    fs::write(folder.join("trips.csv"), text).expect("written");
    refused(&fet(folder, &set("data.rows=0")), &["trips.csv", "`to_x - from_x`", "rename it"]);
}
