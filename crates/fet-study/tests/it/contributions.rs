//! Intervals by test rows, from the predictions that each run writes.

use std::fs;

use crate::study::{Study, check};
use serde_json::Value;

/// A method that gets ten more of 60 test rows right than its control variant, and one that gets one more, with
/// every seed.
const CONTRIBUTIONS: &str = "name = \"tiny\"\n[ablation]\nseeds = [0, 1, 2]\n\
    [[ablation.variants]]\nname = \"Alone\"\nset = [\"predictions.hits=40\"]\n\
    [[ablation.variants]]\nname = \"Ten more\"\nset = [\"predictions.hits=50\"]\ncontrol = \"Alone\"\n\
    [[ablation.variants]]\nname = \"One more\"\nset = [\"predictions.hits=41\"]\ncontrol = \"Alone\"\n";

#[test]
fn contributions_have_intervals_by_test_rows() {
    let study = Study::new(CONTRIBUTIONS);
    let first = study.ablate("", &[]);
    assert_eq!(first.code, 0, "{first:?}");
    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    let ends = |variant: usize, interval: &str| {
        let ends = &json["added"][variant]["over_rows"][interval];
        [&ends["lower"], &ends["upper"]].map(|end| end.as_f64().expect("a number"))
    };
    assert_eq!(json["added"][0]["over_rows"]["pairs"], 3);
    assert_eq!(json["added"][0]["over_rows"]["rows"], 60);
    // Ten of 60 rows differ: the share 0.167 has the standard error √(0.167 · 0.833 / 60) = 0.048.
    let [lower, upper] = ends(0, "over_rows");
    assert!((upper - lower - 2.0 * 1.96 * 0.048).abs() < 0.04 && lower > 0.0, "{lower} to {upper}");
    // The difference is equal for every seed, so that the seeds add nothing. Only Student's t is wider.
    let [low, high] = ends(0, "over_rows_and_splits");
    assert!(low <= lower && high >= upper && high - low < 1.3 * (upper - lower), "{low} to {high}");
    let [lower, _] = ends(1, "over_rows_and_splits");
    assert!(lower <= 0.0, "one row more could be chance: {lower}");
    let warning = "other test rows could reverse it: One more.";
    check(
        &study.read("runs/tiny/table.md"),
        &["95 % by test rows", "95 % by test rows and splits", warning, "All runs have the same split"],
    );
    check(&study.read("runs/tiny/report.html"), &["95 % by test rows and splits", warning]);
    check(&study.read("runs/tiny/results.json"), &["\"same_rows\": true"]);

    // The intervals follow from the predictions alone: the same command writes the same bytes.
    let (table, results) = (study.read("runs/tiny/table.md"), study.read("runs/tiny/results.json"));
    assert_eq!(study.ablate("", &["--report"]).code, 0);
    assert_eq!((study.read("runs/tiny/table.md"), study.read("runs/tiny/results.json")), (table, results));
}

#[test]
fn names_predictions_that_do_not_belong_to_the_report() {
    let study = Study::new(CONTRIBUTIONS);
    assert_eq!(study.ablate("", &[]).code, 0);
    let cell = study.cells().into_iter().find(|cell| cell.display().to_string().contains("ten-more-s1"));
    let path = cell.expect("a cell").join("predictions.csv");
    let text = fs::read_to_string(&path).expect("predictions");
    for (damaged, reason) in [
        (text.replace("2,test,no,no,1,0", "2,test,no,yes,0,1"), "but the report has"),
        (text.replace("2,test,no,no", "2,test,maybe,no"), "the report lacks the class \\\"maybe\\\""),
        (text.replace("row,part", "line,part"), "the column `row` is missing"),
        (text.replace("test", "rest"), "no row belongs to the test"),
        (text.replace("\n2,test", "\n99,test"), "tested on different rows"),
    ] {
        assert_ne!(damaged, text);
        fs::write(&path, damaged).expect("written");
        assert_eq!(study.ablate("", &["--report"]).code, 0, "{reason}");
        check(&study.read("runs/tiny/results.json"), &[reason]);
        check(
            &study.read("runs/tiny/table.md"),
            &["the intervals by test rows are undefined for 1 of 2 comparisons (Ten more: "],
        );
    }
    fs::remove_file(&path).expect("removed");
    assert_eq!(study.ablate("", &["--report"]).code, 0);
    check(&study.read("runs/tiny/table.md"), &["predictions.csv"]);
}

#[test]
fn folds_are_repetitions() {
    let study = Study::new(&CONTRIBUTIONS.replace("seeds = [0, 1, 2]", "seeds = [0]\nfolds = 3"));
    let outcome = study.ablate("", &[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let calls = study.calls();
    assert_eq!(calls.len(), 9, "{calls:?}");
    for fold in 0..3 {
        let set = format!("--set split.folds=3 --set split.fold={fold} --seed 0");
        assert_eq!(calls.iter().filter(|call| call.contains(&set)).count(), 3, "{set} in {calls:?}");
    }
    // Each variant is one row with three values.
    let csv = study.read("runs/tiny/results.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines.len() == 10 && lines[0].starts_with("variant,seed,fold,metric,best_epoch,"), "{csv}");
    assert!(lines[3].starts_with("Alone,0,2,accuracy,2,"), "{csv}");
    assert!(study.read("runs/tiny/curves.csv").starts_with("variant,seed,fold,epoch,train_loss"));
    let json: Value = serde_json::from_str(&study.read("runs/tiny/results.json")).expect("JSON");
    assert_eq!((&json["folds"], json["variants"].as_array().map(Vec::len)), (&3.into(), Some(3)));
    assert_eq!(json["variants"][0]["metrics"]["accuracy"]["seeds"]["0, fold 1"], 41.0 / 60.0);
    // The method gets 10, 11 and 12 rows more right: t = 11 / √(1/3 + 60/120) = 12.05 with 2 degrees of freedom, and
    // p = 1 - t / √(t² + 2).
    let added = &json["added"][0];
    let p = added["test"]["p"].as_f64().expect("a test");
    assert!((p - 0.006_817).abs() < 1e-4 && added["test"]["p_sign_flip"].is_null(), "{added}");
    assert_eq!((&added["over_rows"]["rows"], &added["over_rows"]["same_rows"]), (&180.into(), &false.into()));
    check(
        &study.read("runs/tiny/table.md"),
        &["3 folds", "Nadeau and Bengio", "over the folds that both have"],
    );
    check(&study.read("runs/tiny/report.html"), &["folds <b>3</b>"]);

    // `--folds 0` runs the split of the experiment.
    let plain = study.ablate("", &["--folds", "0", "--dry-run"]);
    check(&plain.stdout, &["missing  Alone, seed 0\n", "3 cells, 3 to run"]);
    let refused = study.ablate("", &["--folds", "1"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    check(&refused.stderr, &["--folds: must be at least 2"]);
}
