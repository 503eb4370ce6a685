//! Tests inputs that the program once accepted with a meaningless result or a lost file: now it refuses them
//! or handles them correctly.

use std::path::Path;
use std::process::Output;

use crate::command::{fet, read, refused, write};
use crate::own_data::{finished, numbers, table, tables};
use crate::support::report;

/// Returns the table with one cell of a data row (from 0) replaced.
fn with_cell(text: &str, delimiter: char, row: usize, column: &str, cell: &str) -> String {
    let place = text.lines().next().expect("a header").split(delimiter).position(|name| name == column);
    let place = place.expect("a column");
    let line = |(at, line): (usize, &str)| {
        let mut cells: Vec<&str> = line.split(delimiter).collect();
        if at == row + 1 {
            cells[place] = cell;
        }
        cells.join(&delimiter.to_string())
    };
    text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn run(folder: &Path, sets: &[&str]) -> Output {
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let _ = std::fs::remove_dir_all(folder.join("other"));
    fet(folder, &[&["run", "shops.toml", "--out", "other"], sets.as_slice()].concat())
}

/// A label of 1.7e9 seconds has a resolution of 128 seconds in 32 bits.
#[test]
fn labels_keep_their_digits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 200);
    let text = read(folder, "shops.csv");
    let mut lines = text.lines();
    let mut late = format!("{};late\n", lines.next().expect("a header"));
    for (row, line) in lines.enumerate() {
        late += &format!("{line};{}\n", 1_700_000_000 + row % 40);
    }
    write(folder, "shops.csv", &late);
    let sets = ["data.task=regression", "data.label=late", "data.primary.drop=[\"part\", \"busy\"]"];
    assert!(run(folder, &sets).status.success());
    let predictions = table(folder, "other/predictions.csv");
    for (row, label) in numbers(&predictions, "row").iter().zip(numbers(&predictions, "label")) {
        assert_eq!(label, 1_700_000_000.0 + row % 40.0);
    }
    let rmse = report(&folder.join("other")).best.test;
    assert!((1.0..40.0).contains(&rmse), "labels of a deviation of 11.5 that nothing tells: {rmse}");
    let beyond = with_cell(&read(folder, "shops.csv"), ';', 4, "late", "1e300");
    write(folder, "shops.csv", &beyond);
    refused(&run(folder, &sets), &["row 4 (from 0) column `late`", "1e300"]);
}

#[test]
fn reads_labels_that_are_codes_as_classes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 200);
    let text = read(folder, "shops.csv");
    write(folder, "shops.csv", &text.replace(";yes", ";5").replace(";no", ";-1"));
    assert!(run(folder, &["train.epochs=1"]).status.success());
    assert_eq!(report(&folder.join("other")).class_names, ["-1", "5"]);
    let three = with_cell(&read(folder, "shops.csv"), ';', 4, "busy", "7");
    write(folder, "shops.csv", &three);
    refused(&run(folder, &["seed=9"]), &["column `busy`", "2 classes", "-1, 5, 7"]);
}

/// Times in seconds differ by less than the resolution of 32 bits; every linker by distance still finds the
/// record itself.
#[test]
fn links_large_keys_with_small_differences() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lines: String = (0..300).map(|row| format!("{row},{}\n", 1_700_000_000 + row)).collect();
    write(folder.path(), "times.csv", &format!("id,time\n{lines}"));
    for linker in ["nearest", "hnsw", "rotation"] {
        let arguments = ["link", "times.csv", "times.csv", "--keys", "time", "--linker", linker, "--set"];
        let output = fet(folder.path(), &[&arguments[..], &["neighbours=1", "--out", "links.csv"]].concat());
        assert!(output.status.success(), "{output:?}");
        let links = table(folder.path(), "links.csv");
        let [left, right] = [0, 1].map(|at| numbers(&links, &links.columns[at].name));
        assert_eq!(left.len(), 300);
        assert_eq!(left, right, "{linker}");
    }
}

/// Numbers that a model cannot take are refused with their position, at the primary and at a party, before
/// and after training.
#[test]
fn names_numbers_beyond_the_range_of_a_model() {
    let (folder, _) = finished(&["train.epochs=1"]);
    let folder = folder.path();
    let (shops, streets) = (read(folder, "shops.csv"), read(folder, "streets.csv"));
    let predict = || fet(folder, &["predict", "result", "--rows", "new.csv"]);
    write(folder, "new.csv", &with_cell(&shops, ';', 2, "size", "1e300"));
    refused(&predict(), &["1e300", "row 2 (from 0) column `size`"]);
    write(folder, "new.csv", &with_cell(&shops, ';', 2, "x", "1e300"));
    refused(&predict(), &["row 2 (from 0) column `x`", "1e300"]);
    write(folder, "new.csv", &shops);
    write(folder, "streets.csv", &with_cell(&streets, ',', 6, "lanes", "-1.7e308"));
    refused(&predict(), &["row 6 (from 0) column `lanes`"]);
    refused(&run(folder, &[]), &["row 6 (from 0) column `lanes`"]);
    refused(&fet(folder, &["data", "check", "shops.toml"]), &["row 6 (from 0) column `lanes`"]);
    write(folder, "streets.csv", &streets);
    // The cell is in the range of 32 bits; the model's output for it is not.
    write(folder, "new.csv", &with_cell(&shops, ';', 2, "size", "9e37"));
    let output = predict();
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.lines().skip(1).all(|line| !line.contains(",,")), "{text}");
    } else {
        refused(&output, &["new.csv row 2 (from 0)"]);
    }
}

#[test]
fn never_overwrites_an_input() {
    let (folder, _) = finished(&["train.epochs=1"]);
    let folder = folder.path();
    std::fs::copy(folder.join("shops.csv"), folder.join("new.csv")).expect("a copy");
    for out in ["streets.csv", "shops.csv", "new.csv", "result/predictions.csv", "result/model-card.md"] {
        let before = read(folder, out);
        let output = fet(folder, &["predict", "result", "--rows", "new.csv", "--out", out]);
        assert_eq!(output.status.code(), Some(2), "{out}: {output:?}");
        assert_eq!(read(folder, out), before);
    }
    refused(&fet(folder, &["run", "shops.toml", "--out", "shops.csv"]), &["shops.csv", "--out"]);
}

#[test]
fn warns_if_keys_never_match() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 100);
    let output = run(folder, &["linker.kind=exact", "linker.neighbours=1", "train.epochs=1"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    assert!(message.contains("streets: 100 of the primary's 100 records lack a link"), "{message}");
    assert!(!message.contains("buses:"), "its keys are the primary's: {message}");
}

#[test]
fn refuses_an_incomplete_run() {
    for sets in [&["seed=3"][..], &["method.kind=top1sim"], &["method.kind=fedsim", "linker.neighbours=2"]] {
        let (folder, _) = finished(&[sets, &["train.epochs=1"]].concat());
        let folder = folder.path();
        let asked = |parts: &[&str]| {
            refused(&fet(folder, &["predict", "result", "--rows", "shops.csv"]), parts);
            refused(&fet(folder, &["explain", "result"]), parts);
        };
        std::fs::remove_file(folder.join("result/parties/party1/model.safetensors")).expect("there");
        asked(&["parties/party1/model.safetensors"]);
        std::fs::remove_dir_all(folder.join("result/parties")).expect("there");
        asked(&["parties/party1/model.safetensors"]);
        std::fs::rename(folder.join("result/report.json"), folder.join("report.json")).expect("there");
        asked(&["not finished"]);
    }
}

#[test]
fn refuses_invalid_tables_and_experiments() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 100);
    let toml = read(folder, "shops.toml");
    let shops = read(folder, "shops.csv");
    refused(&run(folder, &["data.primary.name=buses"]), &["different names", "\"buses\""]);
    write(folder, "shops.toml", &toml.replace("name = \"streets\"", "name = \"a\\u001bb\""));
    refused(&run(folder, &[]), &["control characters"]);
    write(folder, "shops.toml", &toml);
    write(folder, "shops.csv", &shops.replacen("size", "si\u{1b}[31mze", 1));
    refused(&run(folder, &[]), &["shops.csv", "U+001B"]);
    refused(&fet(folder, &["data", "show", "shops.csv"]), &["U+001B"]);
    write(folder, "shops.csv", &shops);
    let group = ["split.kind=group", "split.column=opened"];
    refused(&run(folder, &group), &["`split.column` `opened`", "have none"]);
    write(folder, "parts.csv", &format!("part\n{}", "train\nvalidation\ntest\n".repeat(40)));
    refused(&run(folder, &["split.kind=file", "split.file=parts.csv"]), &["parts.csv", "100", "120"]);
    let column = ["split.kind=column", "split.column=kind"];
    refused(&run(folder, &column), &["row 0 (from 0)", "train"]);
    std::fs::remove_file(folder.join("streets.csv")).expect("there");
    refused(&run(folder, &[]), &["missing: streets.csv"]);
    let delimiter = run(folder, &["data.primary.delimiter=;;"]);
    refused(&delimiter, &["delimiter", "one character"]);
}

#[test]
fn shows_a_table_with_an_empty_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = "x".repeat(3_000_000);
    write(folder.path(), "t.csv", &format!("n,e,t\n1,,\"a\u{7}b\"\n2,,{long}\n"));
    let output = fet(folder.path(), &["data", "show", "t.csv"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("all cells of `e` are missing") && text.contains("`drop`"), "{text}");
    assert!(!text.contains('\u{7}') && text.len() < 10_000, "{}", text.len());
    let output = fet(folder.path(), &["data", "show", "t.csv", "--delimiter", "|"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 rows, 1 column"), "{output:?}");
}

/// `data check` refuses the same input as a run.
#[test]
fn check_refuses_the_same_input_as_a_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 100);
    for (set, part) in [
        ("scores.metric=rmse", "scores.metric"),
        ("linker.neighbours=401", "neighbours"),
        ("train.class_weights=[1, 2, 3]", "class_weights"),
        ("linker.kind=edit", "key"),
    ] {
        refused(&run(folder, &[set]), &[part]);
        refused(&fet(folder, &["data", "check", "shops.toml", "--set", set]), &[part]);
    }
}
