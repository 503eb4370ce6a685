//! End-to-end tests of the harness with a stand-in for `fet`: executed and skipped cells, written files, and
//! exit codes. No test trains a model.

use std::fs;
use std::time::Instant;

use crate::study::{CommandOutcome, STUDY, Study, check};
use fet_eval::records::Report;
use serde_json::Value;

#[test]
fn second_run_computes_no_cell() {
    let study = Study::new(STUDY);
    let first = study.ablate("", &[]);
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(study.calls().len(), 4, "{first:?}");
    check(
        &first.stdout,
        &["test accuracy, % (mean ± std)", " 55.00 ± 7.07", "untested", "Results in", "report.html"],
    );
    check(&first.stderr, &["[4/4]", "Full, seed 0: test accuracy 50.00 % (epoch 2)"]);
    let csv = study.read("runs/tiny/results.csv");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 5, "{csv}");
    assert!(rows[1].starts_with("Full,0,accuracy,2,0.5,0.5,12,0,0,0,,,,,,,,,,cells/full-s0-"), "{csv}");
    assert!(rows[4].starts_with("No mask,1,accuracy,2,0.5,0.6,12,0,0,0,,,,,,,,,,cells/no-mask-s1-"), "{csv}");
    check(&study.read("runs/tiny/costs.csv"), &["Full,0,1.5,80,1024,abc,cells/full-s0-"]);
    check(&study.read("runs/tiny/table.md"), &["55.00 ± 7.07", "| No mask |", "Fewer than 3 seeds"]);
    check(&study.read("runs/tiny/report.html"), &["<!doctype html>", "No mask", "4 of 4 cells"]);
    check(
        &study.read("runs/tiny/table.md"),
        &[
            "Every metric:",
            "| 95 % by test rows |",
            " 55.00 ± 7.07 |           ± 10.00 |",
            "variation with other test rows",
        ],
    );
    check(
        &study.read("runs/tiny/report.html"),
        &[
            "<th scope=\"col\">balanced accuracy, %</th>",
            "true class",
            "Calibration",
            "By region",
            "<td>± 10.00</td>",
        ],
    );
    assert!(
        rows[0].ends_with(
            ",cell,test_rmse,test_mae,test_r2,test_mape,test_median-absolute-error,test_accuracy,\
        test_balanced-accuracy,test_macro-f1,test_auc-roc,test_auc-pr,test_log-loss,test_brier,\
        test_calibration-error,interval_lower,interval_upper"
        ),
        "{csv}"
    );
    assert!(rows[1].contains(",,,,,,0.5,0.") && rows[1].ends_with(",0.4,0.6"), "{csv}");
    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    assert_eq!((&json["cells"]["done"], &json["variants"][1]["mean"]), (&Value::from(4), &Value::from(0.55)));
    let full = &json["variants"][0];
    assert_eq!(full["metrics"]["accuracy"]["seeds"], serde_json::json!({"0": 0.5, "1": 0.6}));
    assert_eq!(
        (&full["metrics"]["brier"]["n"], &full["interval_half_width_95"]["n"]),
        (&2.into(), &2.into())
    );
    for cell in study.cells() {
        check(&fs::read_to_string(cell.join("cell.log")).expect("a log"), &["a line that is not an event"]);
    }

    let second = study.ablate("", &[]);
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!(study.calls().len(), 4, "{second:?}");
    check(&second.stderr, &["4 of 4 cells were done"]);
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(study.read("runs/tiny/results.csv"), csv);
}

/// Two defences under two attacks.
const ATTACKED: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1, 2]\n\
    [ablation.axes]\n\"attack.kind\" = [\"gradient-norm\", \"reconstruction\"]\n\
    [[ablation.variants]]\nname = \"plain\"\nset = [\"defence.leak=0.5\", \"defence.test=0.9\"]\n\
    [[ablation.variants]]\nname = \"noise\"\nset = [\"defence.leak=0.125\", \"defence.test=0.8\"]\n";

#[test]
fn compares_attacked_variants_as_defences() {
    let study = Study::new(ATTACKED);
    let outcome = study.ablate("", &[]);
    assert_eq!((outcome.code, study.calls().len()), (0, 12), "{outcome:?}");
    // The DCS of the noise is 1 / (1 + √(0.5 L² + 0.5 · 0.1²)) for L = 1/8, 2/8, 3/8: 0.898317, 0.840058,
    // 0.784664.
    check(&outcome.stdout, &["leakage: gradient-norm", "T-DCS labels", "0.841 ± 0.057", "attacks.csv"]);
    let csv = study.read("runs/tiny/results.csv");
    check(&csv, &["label_delta,attack,attack_value,attack_baseline,attack_perfect,leakage,cell"]);
    let row =
        "noise · kind=reconstruction,1,accuracy,2,0.5,0.81,12,0,0,0,,,,,reconstruction,1.5,2,0,0.25,cells/";
    assert!(csv.lines().any(|line| line.starts_with(row)), "{row} in {csv}");
    let attacks = study.read("runs/tiny/attacks.csv");
    assert_eq!(
        attacks.lines().count(),
        1 + 2 * 3 * 3,
        "two measures and one, for each defence and seed: {attacks}"
    );
    check(&attacks, &["noise · kind=gradient-norm,0,gradient-norm,secondary,labels,1,error,1.75,2,0,0.125"]);

    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    let defences = &json["defences"];
    assert_eq!(defences["undefended"], "plain");
    let noise = &defences["defences"][1];
    assert_eq!(
        noise["variants"],
        serde_json::json!(["noise · kind=gradient-norm", "noise · kind=reconstruction"])
    );
    for (found, expected) in [
        (&noise["attacks"]["gradient-norm"]["leakage"]["mean"], 0.25),
        (&noise["attacks"]["reconstruction"]["dcs"]["seeds"]["1"], 0.840_058),
        (&noise["t_dcs"]["features"]["mean"], 0.841_013),
        (&noise["c_dcs"]["mean"], 0.841_013),
        // The undefended run has 1 / (1 + √0.5 L) for L = 4/8, 5/8, 6/8.
        (&defences["defences"][0]["c_dcs"]["mean"], 0.695_253),
    ] {
        assert!(
            found.as_f64().is_some_and(|found| (found - expected).abs() < 1e-6),
            "{found}, not {expected}"
        );
    }
    check(
        &study.read("runs/tiny/table.md"),
        &[" leakage  ", "| 0.250 ± 0.125 |", "β = 0.5", "the undefended run (plain)"],
    );
    let page = study.read("runs/tiny/report.html");
    check(
        &page,
        &["id=\"defences\"", "T-DCS features", "Utility against leakage: reconstruction", "Zou et al."],
    );
    assert!(!page.contains("id=\"axis-kind\""), "along the attacks the metric is the same");
    let file = study.read("runs/tiny/leakage.svg");
    assert_eq!(file.matches("<text class=\"title\"").count(), 2, "a chart for each attack: {file}");

    // Without its attacks, the same study writes neither files nor columns of attacks.
    fs::write(
        study.path("tiny.toml"),
        ATTACKED.replace("[ablation.axes]\n\"attack.kind\"", "[other.axes]\n\"kind\""),
    )
    .expect("written");
    let without = study.ablate("", &[]);
    assert_eq!(without.code, 0, "{without:?}");
    for file in ["attacks.csv", "leakage.svg"] {
        assert!(!study.path("runs/tiny").join(file).exists(), "{file} is left over");
    }
    for file in ["table.md", "results.json", "report.html"] {
        let text = study.read(&format!("runs/tiny/{file}"));
        assert!(!text.to_lowercase().contains("leakage") && !text.contains("efences"), "{file}: {text}");
    }
    check(&study.read("runs/tiny/results.csv"), &["plain,0,accuracy,2,0.5,0.9,12,0,0,0,,,,,,,,,,cells/"]);
}

#[test]
fn continues_other_cells_after_a_failure_and_retries_only_it() {
    let study = Study::new(STUDY);
    let first = study.ablate("fail=mask=false --seed 0", &[]);
    assert_eq!(first.code, 1, "{first:?}");
    let parts = ["FAILED: No mask, seed 0", "101", "cell.log", "the log says why", "1 of 4 cells failed"];
    check(&first.stderr, &parts);
    check(&study.read("runs/tiny/report.html"), &["Failures (1)", "No mask, seed 0", "the log says why"]);
    check(&study.ablate("", &["--dry-run"]).stdout, &["failed   No mask, seed 0", "1 to run; about 2 s"]);
    let again = study.ablate("", &["--report"]);
    assert_eq!((again.code, study.calls().len()), (1, 4), "{again:?}");
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 4, "{first:?}");
    assert_eq!(study.calls().len(), 4);

    let second = study.ablate("", &[]);
    assert_eq!(second.code, 0, "{second:?}");
    check(&second.stderr, &["3 of 4 cells were done"]);
    let calls = study.calls();
    assert_eq!(calls.len(), 5, "{calls:?}");
    check(&calls[4], &["run tiny.toml", "--set encoder.mask=false", "--seed 0", "--log json"]);
    assert!(
        !study.read("runs/tiny/report.html").contains("Failures"),
        "a failure is forgotten once it is made good"
    );
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 5);
}

#[test]
fn cell_without_a_folder_fails_and_the_others_continue() {
    let study = Study::new(STUDY);
    let dry = study.ablate("", &["--dry-run", "--only", "Full", "--seeds", "0"]);
    let folder =
        dry.stdout.split_once("--out ").and_then(|(_, rest)| rest.split(' ').next()).expect("a folder");
    fs::create_dir_all(study.path("runs/tiny/cells")).expect("a folder");
    fs::write(study.path(folder), "in the way").expect("written");
    let outcome = study.ablate("", &[]);
    assert_eq!((outcome.code, study.calls().len()), (1, 3), "{outcome:?}");
    check(&outcome.stderr, &["FAILED: Full, seed 0: could not run"]);
    fs::remove_file(study.path(folder)).expect("there");
    assert_eq!((study.ablate("", &[]).code, study.calls().len()), (0, 4));
}

#[test]
fn refuses_a_folder_of_results_that_cannot_be_created() {
    let study = Study::new(STUDY);
    fs::write(study.path("file"), "in the way").expect("written");
    let outcome = study.ablate("", &["--out", "file"]);
    assert_eq!((outcome.code, study.calls().len()), (2, 0), "{outcome:?}");
    check(&outcome.stderr, &["--out: cannot create the folder file/tiny"]);
}

#[test]
fn starts_no_cell_if_one_is_invalid() {
    let study = Study::new(STUDY);
    let outcome = study.ablate("bad=mask=false", &[]);
    assert_eq!(outcome.code, 2, "{outcome:?}");
    check(&outcome.stderr, &["No mask, seed 0", "encoder.mask: unknown field"]);
    assert!(study.calls().is_empty() && !study.path("runs").exists(), "{outcome:?}");
}

#[test]
fn arguments_change_the_cells() {
    let calls = |arguments: &[&str], expected: usize, parts: &[&str]| {
        let study = Study::new(STUDY);
        let outcome = study.ablate("", arguments);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let calls = study.calls();
        assert_eq!(calls.len(), expected, "{arguments:?}: {calls:?}");
        let last = calls.last().map(String::as_str).unwrap_or_default();
        check(last, parts);
    };
    // The changes of the base come first, because the last change to a setting wins.
    calls(&["--set", "train.epochs=2"], 4, &["--set train.epochs=2 --set encoder.mask=false"]);
    calls(&["--device", "ndarray", "--out", "elsewhere"], 4, &["--device ndarray", "--out elsewhere/tiny/"]);
    calls(&["--only", "Full", "--seeds", "7,8,9"], 3, &["--seed 9"]);
    calls(&["--jobs", "3"], 4, &[]);
    calls(&["--dry-run"], 0, &[]);
    calls(&["--report"], 0, &[]);
}

#[test]
fn dry_runs_print_cells_and_write_no_files() {
    let study = Study::new(STUDY);
    let dry = study.ablate("", &["--dry-run"]);
    check(
        &dry.stdout,
        &[
            "missing  Full, seed 0",
            "fet run tiny.toml --set encoder.mask=false --seed 1 --out",
            "4 cells, 4 to run; no time estimate before the first cell is done",
        ],
    );
    assert!(!study.path("runs").exists());
    study.ablate("", &["--only", "Full"]);
    let dry = study.ablate("", &["--dry-run", "--jobs", "3"]);
    check(&dry.stdout, &["done     Full, seed 0", "missing  No mask, seed 1, about 2 s"]);
    // Two cells of 1.5 seconds each, three at a time.
    check(&dry.stdout, &["4 cells, 2 to run; about 1 s with 3 at a time, estimated from 2 finished cells"]);
}

#[test]
fn cells_depend_on_data_and_not_on_names() {
    let study = Study::new(STUDY);
    assert_eq!((study.ablate("", &[]).code, study.calls().len()), (0, 4));
    fs::write(study.path("tiny.toml"), STUDY.replace("No mask", "Without")).expect("written");
    let renamed = study.ablate("", &[]);
    assert_eq!((renamed.code, study.calls().len()), (0, 4), "another name, the same cell: {renamed:?}");
    check(&study.read("runs/tiny/results.csv"), &["Without,1,accuracy"]);
    let other =
        CommandOutcome::from_output(study.command("", &[]).env("FAKE_DATA", "others").output().expect("ran"));
    assert_eq!((other.code, study.calls().len()), (0, 8), "other data, other cells: {other:?}");
    assert_eq!(study.cells().len(), 8, "the cells on the first data are kept");
}

#[test]
fn omits_excluded_cells() {
    let text = format!(
        "{STUDY}[ablation.axes]\n\"x.k\" = [1, 2]\n[[ablation.exclude]]\nvariant = \"No mask\"\n\"x.k\" = 2\n"
    );
    let study = Study::new(&text);
    assert_eq!(
        (study.ablate("", &["--seeds", "5"]).code, study.calls().len()),
        (0, 3),
        "{:?}",
        study.calls()
    );
    assert!(!study.calls().iter().any(|call| call.contains("mask=false") && call.contains("x.k=2")));
}

#[test]
fn reports_progress_as_json() {
    let study = Study::new(STUDY);
    let outcome = study.ablate("fail=mask=false --seed 1", &["--log", "json"]);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let line = |line: &str| serde_json::from_str::<Value>(line).expect(line);
    let events: Vec<Value> = outcome.stdout.lines().map(line).collect();
    let of = |state: &str| events.iter().filter(|event| event["state"] == state).collect::<Vec<_>>();
    assert_eq!(events[0], serde_json::json!({"event": "study", "done": 0, "cells": 4}));
    assert_eq!((of("done").len(), of("failed").len()), (3, 1), "{events:?}");
    assert!(
        of("running").iter().any(|event| event["loss"] == 0.25 && event["validation"] == 0.5),
        "{events:?}"
    );
    assert_eq!(
        (&of("failed")[0]["variant"], &of("failed")[0]["seed"]),
        (&Value::from("No mask"), &Value::from(1))
    );
    let end = events.last().expect("an end");
    assert_eq!(
        (&end["event"], &end["failed"], &end["done"]),
        (&Value::from("end"), &Value::from(1), &Value::from(3))
    );
}

/// Listing and reporting a thousand finished cells took 0.6 s when the test was written. The limit here is
/// much larger, because tests share the machine: the test only detects a change in the order of growth.
#[test]
fn lists_a_thousand_cells_quickly() {
    let study =
        Study::new("name = \"tiny\"\n[ablation]\nseeds = [0, 1, 2, 3, 4]\n[ablation.axes]\n\"x.k\" = [1]\n");
    assert_eq!(study.ablate("", &[]).code, 0);
    let values: Vec<String> = (1..=200).map(|k| k.to_string()).collect();
    let text = study.read("tiny.toml").replace("[1]", &format!("[{}]", values.join(", ")));
    fs::write(study.path("tiny.toml"), text).expect("written");
    // Create the cells as runs would leave them: each report is a copy of the first cell's report with
    // another setting and seed.
    let dry = study.ablate("", &["--dry-run"]);
    let lines = dry.stdout.lines().filter(|line| line.trim_start().starts_with("fet run"));
    let first = fs::read(study.cells()[0].join("report.json")).expect("a report");
    let first: Report = serde_json::from_slice(&first).expect("a report");
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |flag: &str| words[words.iter().position(|word| *word == flag).expect(flag) + 1];
        let folder = study.path(after("--out"));
        if folder.join("report.json").exists() {
            continue;
        }
        let (seed, set) = (after("--seed"), after("--set"));
        let mut report = first.clone();
        report.seed = seed.parse().expect("a seed");
        report.experiment["seed"] = report.seed.into();
        report.experiment["sets"] = set.into();
        report.data.split = format!("s{seed}");
        report.best.test = report.seed as f64 / 10.0;
        report.epochs = vec![report.epochs[0].clone(); 25];
        let report = serde_json::to_string(&report).expect("plain data");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("report.json"), report).expect("written");
    }
    let start = Instant::now();
    let outcome = study.ablate("", &[]);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!((outcome.code, study.calls().len()), (0, 5), "nothing ran: {}", outcome.stderr);
    check(&outcome.stderr, &["1000 of 1000 cells were done"]);
    assert_eq!(study.read("runs/tiny/results.csv").lines().count(), 1_001);
    eprintln!("1,000 cells in {seconds:.2} s");
    assert!(seconds < 10.0, "{seconds} s");
}

#[test]
fn moves_invalid_reports_away() {
    let study = Study::new("name = \"tiny\"\nseed = 3\n");
    assert_eq!(study.ablate("", &[]).code, 0);
    let report = study.cells()[0].join("report.json");
    let good = fs::read_to_string(&report).expect("a report");
    let renamed = good.replace("\"train_loss\"", "\"loss\"");
    let bad = [
        ("", "1 of the missing cells have a report that cannot be read"),
        ("{\"half\":", "1 of the missing cells have a report that cannot be read"),
        (&renamed, "unknown field `loss`"),
        (&good.replace("\"seed\":3,\"train\"", "\"seed\":4,\"train\""), "[1/1]"),
    ];
    for (index, (text, said)) in bad.iter().enumerate() {
        fs::write(&report, text).expect("written");
        let outcome = study.ablate("", &[]);
        check(&outcome.stderr, &[said]);
        assert_eq!((outcome.code, study.calls().len()), (0, index + 2), "{outcome:?}");
        assert_eq!(fs::read_to_string(&report).expect("a report"), good);
    }
    check(&study.calls()[0], &["--seed 3"]);
}

#[test]
fn errors_name_the_file_and_the_rule() {
    let refused = |text: &str, arguments: &[&str], parts: &[&str]| {
        let study = Study::new(text);
        let outcome = study.ablate("", arguments);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        check(&outcome.stderr, parts);
        assert!(study.calls().is_empty());
    };
    refused("name = \"x\"\n[ablation]\nseeds = []\n", &[], &["tiny.toml", "ablation.seeds"]);
    refused(STUDY, &["--only", "Ful"], &["tiny.toml", "--only", "\"Ful\"", "\"No mask\""]);
    refused(STUDY, &["--seeds", "1,1"], &["--seeds", "1 appears twice"]);
    refused(STUDY, &["--jobs", "0"], &["--jobs"]);
    refused(STUDY, &["--poll", "0"], &["--poll", "0.1"]);
    let exclude = format!("{STUDY}[[ablation.exclude]]\nvariant = \"Ful\"\n");
    refused(&exclude, &[], &["tiny.toml", "ablation.exclude", "\"Ful\""]);
    let controls = "name = \"x\"\n[ablation]\nseeds = [0]\n[[ablation.variants]]\nname = \"A b\"\n\
        [[ablation.variants]]\nname = \"A-B\"\n";
    refused(controls, &[], &["\"A b\"", "\"A-B\"", "same experiment"]);
}
