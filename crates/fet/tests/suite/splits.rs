//! Tests splits and scores of an experiment on a user's own tables.

use fet_eval::Metric;
use fet_tables::Values;

use crate::command::fet;
use crate::own_data::{finished, numbers, table, tables};
use crate::support::report;

#[test]
fn reads_the_part_of_each_row_from_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let parts: String = (0..300)
        .map(|row| {
            if row < 200 {
                "train\n"
            } else if row < 240 {
                "validation\n"
            } else {
                "test\n"
            }
        })
        .collect();
    std::fs::write(folder.path().join("parts.csv"), format!("part\n{parts}")).expect("writable");
    let run = |file: &str, out: &str| {
        let (kind, file) = ("split.kind=file", format!("split.file={file}"));
        fet(
            folder.path(),
            &["run", "shops.toml", "--out", out, "--set", kind, "--set", &file, "--set", "train.epochs=1"],
        )
    };
    let output = run("parts.csv", "result");
    assert!(output.status.success(), "{output:?}");
    let rows = report(&folder.path().join("result")).rows;
    assert_eq!((rows.train, rows.validation, rows.test), (200, 40, 60));
    for (text, part) in [
        ("part\ntrain\n", "must have a row for each row of the primary's table"),
        ("parts\ntrain\n", "lacks the column `part`"),
        (&*format!("part\n{}", parts.replace("validation", "valid")), "valid"),
    ] {
        std::fs::write(folder.path().join("bad.csv"), text).expect("writable");
        let output = run("bad.csv", "other");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(part), "{part} in {message}");
    }
}

#[test]
fn refuses_invalid_scores_and_splits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    for (sets, parts) in [
        (&["scores.metric=rmse"][..], &["scores.metric", "\"rmse\"", "auc-roc"][..]),
        (&["scores.metric=auc"], &["scores.metric", "auc"]),
        (&["scores.coverage=1.5"], &["scores.coverage", "below 1"]),
        (&["scores.groups=sort"], &["shops.csv", "lacks the column `sort`"]),
        (&["split.kind=time"], &["split.column", "must name a column"]),
        (&["split.column=kind"], &["split.column", "must be left out"]),
        (&["split.kind=time", "split.column=kind"], &["kind", "dates or numbers"]),
        (&["split.kind=time", "split.column=size"], &["size", "value in every record"]),
        (
            &["split.kind=stratified", "labels.kind=randomised-response"],
            &["split.kind", "stratified", "randomised-response"],
        ),
        (&["split.validation=0.9"], &["split", "0.9"]),
        (&["split.folds=3", "split.fold=3"], &["split.fold", "below the number of folds (3)"]),
        (&["split.kind=file"], &["split.file", "must name a table"]),
        (&["train.class_weights=[1.0]"], &["train.class_weights", "each of the 2 classes"]),
        (&["train.class_weights=[1.0, 0.0]"], &["train.class_weights", "0"]),
        (&["train.class_weights=fair"], &["class_weights", "\"balanced\""]),
        (
            &[
                "train.class_weights=balanced",
                "data.task=regression",
                "data.label=x2",
                "data.primary.keys=[\"x\", \"y\"]",
            ],
            &["x2"],
        ),
    ] {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        crate::errors::refuse(folder.path(), "shops.toml", &sets, parts);
    }
}

/// A run ends after the set number of epochs without a better validation metric.
#[test]
fn stops_early() {
    let (_, report) =
        finished(&["train.epochs=60", "train.early_stopping=2", "method.optimizer.learning_rate=0.05"]);
    assert!(report.epochs.len() < 60, "{}", report.epochs.len());
    assert_eq!(report.epochs.len(), report.best.epoch + 2);
}

#[test]
fn splits_and_scores_rows_by_the_experiment() {
    let (_, random) = finished(&["train.epochs=1"]);
    assert_eq!((random.rows.train, random.rows.validation, random.rows.test), (210, 30, 60));
    assert_eq!((random.metric, random.class_names.join(",")), (Metric::Accuracy, "no,yes".to_string()));
    let (folder, found) = finished(&[
        "train.epochs=1",
        "split.kind=column",
        "split.column=part",
        "scores.metric=auc-roc",
        "scores.groups=kind",
        "train.class_weights=balanced",
    ]);
    assert_eq!((found.rows.train, found.rows.validation, found.rows.test), (180, 60, 60));
    assert_eq!(found.metric, Metric::AucRoc);
    let auc = found.evaluation.test.get(Metric::AucRoc).expect("both classes occur");
    assert_eq!(auc.to_bits(), found.best.test.to_bits(), "the metric that counts is that of the report");
    assert!(found.evaluation.test.get(Metric::LogLoss).is_some());
    let groups = found.evaluation.groups.as_ref().expect("groups");
    assert_eq!((groups.column.as_str(), groups.groups.len()), ("kind", 3));
    let tested = table(folder.path(), "result/predictions.csv");
    let Values::Category { codes, names } = &tested.column("part").expect("a column").values else {
        panic!("two names")
    };
    let rows = numbers(&tested, "row");
    for (row, code) in rows.iter().zip(codes) {
        let expected = ["train", "train", "train", "validation", "test"][*row as usize % 5];
        assert_eq!(names[*code as usize], expected, "row {row}");
    }
    // The run drops the column of the split, so the model does not use it.
    let (_, time) = finished(&["train.epochs=1", "split.kind=time", "split.column=x"]);
    assert_eq!(time.rows.test, 60);
    let other = finished(&["train.epochs=1", "split.folds=5", "split.fold=1"]).1;
    assert_eq!(other.rows.test, 60);
    assert_ne!(other.data.split, random.data.split);
}

/// In a search over settings the results do not depend on the test rows: with other labels and other cells in
/// these rows the results are the same, bit for bit.
#[test]
fn search_over_settings_does_not_read_the_test_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    tables(folder.path(), 300);
    let run = |out: &str, tuning: bool| {
        let sets =
            ["split.kind=column", "split.column=part", "train.epochs=2", &format!("split.tuning={tuning}")];
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = fet(folder.path(), &[&["run", "shops.toml", "--out", out][..], &sets].concat());
        assert!(output.status.success(), "{output:?}");
        let model = std::fs::read(folder.path().join(out).join("model.safetensors")).expect("a model");
        (report(&folder.path().join(out)), model)
    };
    let (before, model) = run("before", true);
    let (whole, _) = run("whole", false);
    assert_eq!((whole.rows.train, whole.rows.validation, whole.rows.test), (180, 60, 60));
    assert_eq!((before.rows.train, before.rows.validation, before.rows.test), (180, 30, 30));
    let path = folder.path().join("shops.csv");
    let text = std::fs::read_to_string(&path).expect("readable");
    let mut changed = 0;
    let other = |line: &str| {
        let mut cells: Vec<&str> = line.split(';').collect();
        if cells[5] == "test" {
            changed += 1;
            (cells[2], cells[4]) = ("kiosk", "77.5");
            cells[6] = if cells[6] == "yes" { "no" } else { "yes" };
        }
        cells.join(";") + "\n"
    };
    let text: String = text.lines().map(other).collect();
    assert_eq!(changed, 60);
    std::fs::write(&path, text).expect("writable");
    let (after, same) = run("after", true);
    assert_eq!(after.best, before.best);
    assert_eq!(after.evaluation, before.evaluation);
    // The model's file names the run; its numbers equal those of the first run.
    // A file of safetensors begins with the length of its header in eight bytes.
    let numbers = |bytes: &[u8]| {
        let header = u64::from_le_bytes(bytes[..8].try_into().expect("a length"));
        bytes[8 + header as usize..].to_vec()
    };
    assert!(!numbers(&model).is_empty());
    assert_eq!(numbers(&same), numbers(&model));
    let (other, _) = run("other", false);
    assert_ne!(other.evaluation.test, whole.evaluation.test, "an ordinary run is tested on these rows");
}
