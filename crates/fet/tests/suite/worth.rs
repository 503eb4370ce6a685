//! Tests `fet worth`: the verdict on tables whose answer is known, its files, and its refusals.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use fet_eval::records::Report;
use serde_json::Value;

use crate::command::text;
use crate::own_data::{numbers, table};

/// Writes a primary's table of 240 rows, and a table of another party whose column decides the label if
/// `decides` is true.
fn tables(folder: &Path, decides: bool) {
    let (mut primary, mut other) = (String::from("x,y,own,label\n"), String::from("x,y,theirs\n"));
    let mut state = 7_u64;
    // SplitMix64 with a fixed start, so that the tables are the same in every run.
    let mut uniform = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    for row in 0..240 {
        let (x, y) = (row % 16, row / 16);
        let (own, theirs, noise) = (uniform(), uniform(), uniform());
        let label = own + 0.1 * noise + if decides { 2.0 * theirs } else { 0.0 };
        let _ = writeln!(primary, "{x}.1,{y}.2,{own:.4},{label:.4}");
        let _ = writeln!(other, "{x}.2,{y}.1,{theirs:.4}");
    }
    fs::write(folder.join("primary.csv"), primary).expect("written");
    fs::write(folder.join("other.csv"), other).expect("written");
}

const WORTH: [&str; 6] = ["worth", "primary.csv", "other.csv", "--label", "label", "--quick"];

/// Returns the exit code and both streams of a command.
fn fet(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let output = crate::command::fet(folder, arguments);
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn answer(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("worth/worth.json")).expect("an answer");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn finds_that_another_party_decides_the_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tables(folder, true);
    let (code, out, err) = fet(&WORTH, folder);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("Yes: federating improves the prediction.\n"), "{out}");
    let found = answer(folder);
    assert_eq!(found["answer"]["verdict"], "yes", "{found}");
    assert!(found["answer"]["over_random"]["lower"].as_f64().expect("a gain") > 0.0, "{found}");
    let page = fs::read_to_string(folder.join("worth/worth.html")).expect("a page");
    assert!(page.contains("FeT-Pool with trees") && page.contains("<svg"), "{page}");

    // The second call finds every run and gives the same answer.
    let (code, again, err) = fet(&WORTH, folder);
    assert_eq!((code, again.as_str()), (0, out.as_str()), "{err}");
    assert!(!err.contains("seed 0: test"), "a run was repeated: {err}");
    assert_eq!(answer(folder), found);

    let (code, _, err) = fet(&["run", "worth/recommended.toml", "--set", "train.epochs=1"], folder);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn finds_that_another_party_does_not_help() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tables(folder, false);
    // Train for a few epochs only: the other party has no information for the networks to learn.
    let init = ["init", "primary.csv", "other.csv", "--label", "label", "--out", "few.toml"];
    let (code, _, err) = fet(&init, folder);
    assert_eq!(code, 0, "{err}");
    let experiment = fs::read_to_string(folder.join("few.toml")).expect("written");
    assert!(experiment.contains("\nepochs = 100\n"), "{experiment}");
    let experiment = experiment.replace("\nepochs = 100\n", "\nepochs = 5\n");
    fs::write(folder.join("few.toml"), experiment).expect("written");
    let (code, out, err) = fet(&["worth", "few.toml", "--quick"], folder);
    assert_eq!(code, 0, "{err}");
    let found = answer(folder);
    assert_ne!(found["answer"]["verdict"], "yes", "{out}");

    // The constant of each split is the mean of its training labels, and the answer has the mean over the splits.
    let labels = numbers(&table(folder, "primary.csv"), "label");
    let mut constants = Vec::new();
    for cell in fs::read_dir(folder.join("worth/methods/cells")).expect("cells") {
        let cell = cell.expect("readable").path();
        let report: Report =
            serde_json::from_str(&fs::read_to_string(cell.join("report.json")).expect("a report"))
                .expect("JSON");
        let predictions = table(&cell, "predictions.csv");
        let rows: Vec<usize> = numbers(&predictions, "row").into_iter().map(|row| row as usize).collect();
        let parts = predictions.column("part").expect("parts").values.texts();
        let training: Vec<f64> =
            (0..labels.len()).filter(|row| !rows.contains(row)).map(|row| labels[row]).collect();
        assert_eq!(training.len(), report.rows.train);
        let mean = training.iter().sum::<f64>() / training.len() as f64;
        let tested: Vec<f64> =
            (0..rows.len()).filter(|&at| parts[at] == "test").map(|at| labels[rows[at]]).collect();
        let square = tested.iter().map(|label| (label - mean).powi(2)).sum::<f64>() / tested.len() as f64;
        let constant = report.constant.expect("defined");
        assert!((constant - square.sqrt()).abs() < 1e-9, "{constant} for {}", square.sqrt());
        constants.push(constant);
    }
    // Every split has as many cells.
    let mean = constants.iter().sum::<f64>() / constants.len() as f64;
    let constant = found["constant"].as_f64().expect("a constant");
    assert!((constant - mean).abs() < 1e-9, "{constant} for {mean}");
}

#[test]
fn refuses_incomplete_and_contradictory_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    tables(folder, true);
    fs::create_dir(folder.join("old")).expect("made");
    fs::write(folder.join("old/experiment.toml"), "name = \"other\"\n").expect("written");
    fs::create_dir(folder.join("run")).expect("made");
    fs::write(folder.join("run/report.json"), "{}\n").expect("written");
    let primary = fs::read(folder.join("primary.csv")).expect("a table");
    for (arguments, parts) in [
        (&["worth", "primary.csv", "other.csv"][..], &["--label"][..]),
        (&["worth", "primary.csv", "--label", "label"], &["the primary's table first"]),
        (
            &["worth", "primary.csv", "other.csv", "--label", "lable"],
            &["--label lable", "did you mean \"label\""],
        ),
        (&["worth", "none.toml"], &["none.toml"]),
        (&["worth", "old/experiment.toml", "--label", "label"], &["--label", "an experiment file"]),
        (
            &["worth", "primary.csv", "other.csv", "--label", "label", "--out", "old"],
            &["old/experiment.toml", "another folder"],
        ),
        (
            &["worth", "primary.csv", "other.csv", "--label", "label", "--out", "primary.csv"],
            &["--out primary.csv: is a file; name a folder"],
        ),
        (
            &["worth", "primary.csv", "other.csv", "--label", "label", "--out", "run"],
            &["--out run: has files of another origin, such as `report.json`", "new or empty folder"],
        ),
        (&["worth", "primary.csv", "other.csv", "--label", "label", "--out", "."], &["--out .: has files"]),
        (&["worth", "nosuch", "--label", "label"], &["nosuch: cannot be read"]),
        (&["worth", "primary.csv", "nosuch.csv", "--label", "label"], &["nosuch.csv: cannot be read"]),
        (
            &["worth", "primary.csv", "other.csv", "--label", "label", "--keys", "label"],
            &["--keys label: is the label"],
        ),
    ] {
        let (code, out, err) = fet(arguments, folder);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: {part:?} is not in {err}");
        }
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("readable")
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["old", "other.csv", "primary.csv", "run"], "{arguments:?}");
        assert_eq!(fs::read_dir(folder.join("run")).expect("readable").count(), 1, "{arguments:?}");
    }
    assert_eq!(fs::read(folder.join("primary.csv")).expect("a table"), primary);
}

/// The laboratory's symbols say much about the state at ε = 6, and nothing at ε = 0.1.
#[test]
fn states_what_private_releases_cost_and_bring_at_each_epsilon() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    crate::record_code::tables(folder, 300);
    let (code, out, err) = fet(&["worth", "codes.toml", "--epsilon", "6,0.1", "--quick"], folder);
    assert_eq!(code, 0, "{err}");
    let found = answer(folder);
    let level = |at: usize| &found["levels"][at];
    assert_eq!((level(0)["epsilon"].as_f64(), level(1)["epsilon"].as_f64()), (Some(0.1), Some(6.0)));
    assert_eq!(
        (level(0)["verdict"].as_str(), level(1)["verdict"].as_str()),
        (Some("not-shown"), Some("yes")),
        "{found}"
    );
    let number = |value: &Value| value.as_f64().expect("a number");
    assert!(number(&level(1)["gain"]["lower"]) > 0.1, "{found}");
    assert!(number(&level(0)["gain"]["lower"]) < 0.0, "{found}");
    let cost = number(&level(1)["cost"]["parties"][0]["epsilon"]);
    assert!(cost <= 6.0 && cost > 5.999, "{cost}");
    for part in [
        "ε = 0.1. Not shown: do not federate at this ε",
        "ε = 6. Yes: the releases improve the prediction.",
        "\"laboratory\" released 300 numbers once (`record-code`): ε = 6.0000",
        "--set release.epsilon=6.0 --set train.randomness=own` trains",
        "the smallest ε with a gain",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
    // The same command has its answer, without another run.
    assert_eq!(fet(&["worth", "codes.toml", "--epsilon", "6,0.1", "--quick"], folder).1, out);
    for (arguments, part) in [
        (&["worth", "codes.toml", "--epsilon", "0"][..], "--epsilon: must be above 0; it is 0"),
        (
            &["worth", "patients.csv", "laboratory.csv", "--label", "state", "--epsilon", "1", "--out", "o"],
            "needs an experiment file with `[release]`",
        ),
    ] {
        let (code, _, err) = fet(arguments, folder);
        assert!(code == 2 && err.contains(part), "{code} {err}");
    }
}
