//! Tests inputs that differ from all training rows, through the whole program: they are bounded, a warning
//! names them, and they do not affect other rows.
//!
//! `fet-tables/tests/it/departures.rs` has the same matrix for the preparation alone.

use std::fmt::Write;
use std::path::Path;

use fet_core::rng::{Purpose, stream};
use rand::RngExt;

use crate::command::{fet, read};
use crate::own_data::{numbers, table};
use crate::support::report;

const EXPERIMENT: &str = r#"
name = "departures"

[train]
epochs = 8
batch_size = 16

[data]
kind = "linked"
task = "regression"
label = "y"
primary = { file = "p.csv", keys = ["k"], columns = { site = "category", kind = "category", code = "category", note = "text" }, one_hot = 4 }
secondaries = [{ name = "s", file = "s.csv", keys = ["k"] }]

[linker]
kind = "nearest"
neighbours = 1

[method]
kind = "fet"
hidden = 8
heads = 2
dropout = 0.0
optimizer = { learning_rate = 0.01 }
"#;

const ROWS: usize = 160;

/// Writes the tables: every kind of column, including a constant number, date and category, with missing
/// cells only in `gap`. `later` is the period of the last eighth of the rows.
fn write_tables(folder: &Path, later: &str) {
    let mut rng = stream(5, 0, Purpose::Parties, 0);
    let mut primary = "k,period,extract,site,x,gap,opened,kind,code,note,t,y\n".to_string();
    let mut secondary = "k,z,street\n".to_string();
    for row in 0..ROWS {
        let k = (row * 37 % ROWS) as f64 / 16.0;
        let (x, z): (f64, f64) = (rng.random(), rng.random());
        let period = if row < ROWS * 7 / 8 { "202312" } else { later };
        let gap = if row % 5 == 2 { String::new() } else { format!("{}", row % 7) };
        let opened = format!("20{}-0{}-15", 10 + row % 10, row % 9 + 1);
        let kind = ["bakery", "kiosk", "shop"][row % 3];
        let (code, note) = (row % 9, ["blue door", "red door and wall", "green wall"][row / 2 % 3]);
        let y = 3.0 * x + 2.0 * z;
        let _ = writeln!(
            primary,
            "{k},{period},2023-12-31,north,{x},{gap},{opened},{kind},C{code},{note},{row},{y}"
        );
        let _ = writeln!(secondary, "{k},{z},{}", ["lane", "road"][row % 2]);
    }
    for (name, text) in [("p.csv", primary), ("s.csv", secondary), ("e.toml", EXPERIMENT.to_string())] {
        std::fs::write(folder.join(name), text).expect("writable");
    }
}

/// Returns a table with a changed cell in a column of some rows, from 0.
fn changed(text: &str, column: &str, rows: &[usize], cell: &str) -> String {
    let mut lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let at = lines[0].iter().position(|name| *name == column).expect("a column");
    rows.iter().for_each(|row| lines[row + 1][at] = cell);
    lines.iter().map(|line| line.join(",") + "\n").collect()
}

/// Returns the messages of `fet predict` and the bits of its predictions.
fn predicted(folder: &Path, rows: &str) -> (String, Vec<u64>) {
    std::fs::write(folder.join("new.csv"), rows).expect("writable");
    let output = fet(folder, &["predict", "run", "--rows", "new.csv", "--out", "out.csv"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let values = numbers(&table(folder, "out.csv"), "prediction");
    assert!(values.iter().all(|value| value.is_finite()));
    (said, values.iter().map(|value| value.to_bits()).collect())
}

/// Kind of preparation, name of the difference, column, rows, new cell, and warning.
type DepartureCase = (&'static str, &'static str, &'static str, &'static [usize], &'static str, &'static str);

const IGNORED: &str = "the model ignores this column";
const FAR: &str = "the model sees a value near the end of that range";

#[rustfmt::skip]
const CASES: [DepartureCase; 16] = [
    ("number", "constant changed", "period", &[1], "202412", "column `period`: is constant in every training row (202312), and 1 of 6 rows has another value (the first is row 1): "),
    ("number", "far value", "x", &[1], "1e7", "column `x`: 1 of 6 rows is far outside"),
    ("number", "missing where none was", "x", &[2], "", "column `x`: 1 of 6 rows lacks a value, which every training row has (the first is row 2): the mean replaces it"),
    ("number", "other unit", "x", &[0, 1, 2, 3, 4, 5], "431.7", "is the column in another unit or form?"),
    ("number", "missing where some were", "gap", &[1], "", ""),
    ("date", "constant changed", "extract", &[1], "2024-12-31", "column `extract`: is constant in every training row (2023-12-31), and 1 of 6 rows has another value"),
    ("date", "far value", "opened", &[3], "2091-05-05", "column `opened`: 1 of 6 rows is far outside"),
    ("date", "missing where none was", "opened", &[3], "", "column `opened`: 1 of 6 rows lacks a value"),
    ("one-hot", "constant changed", "site", &[1], "south", "column `site`: is constant in every training row (north), and 1 of 6 rows has another value"),
    ("one-hot", "unseen category", "kind", &[1], "zoo", "column `kind`: 1 of 6 rows has a value that no training row had (the first is row 1)"),
    ("one-hot", "missing where none was", "kind", &[1], "", "column `kind`: 1 of 6 rows lacks a value"),
    ("hashed category", "unseen category", "code", &[4], "D77", "column `code`: 1 of 6 rows has a value that no training row had (the first is row 4)"),
    ("text", "new text", "note", &[5], "violet garden", "column `note`: 1 of 6 rows has a text with at least half of its words in no training row (the first is row 5)"),
    ("text", "missing where none was", "note", &[5], "", "column `note`: 1 of 6 rows lacks a value"),
    ("key", "far value", "k", &[2], "1e6", "key column 1: 1 of 6 rows is far outside "),
    ("key", "worse link than any", "k", &[2], "1e6", "s: 1 of the primary's 6 rows to predict (the first is row 2) is far from any record of this party"),
];

#[test]
fn names_a_difference_and_keeps_predictions_of_other_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_tables(folder, "202312");
    let output = fet(folder, &["run", "e.toml", "--out", "run"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(report(&folder.join("run")).warnings, [""; 0], "{output:?}");
    let usual: String = read(folder, "p.csv").lines().take(7).map(|line| format!("{line}\n")).collect();
    let (said, before) = predicted(folder, &usual);
    assert!(!said.contains("warning"), "{said}");
    eprintln!("| preparation | difference | warning | predictions of other rows |\n|---|---|---|---|");
    for (preparation, difference, column, rows, cell, warning) in CASES {
        let name = format!("{preparation}, {difference}");
        let (said, after) = predicted(folder, &changed(&usual, column, rows, cell));
        let warned: Vec<&str> = said.lines().filter(|line| line.starts_with("warning: ")).collect();
        if warning.is_empty() {
            assert!(warned.is_empty(), "{name}: {said}");
        } else {
            assert!(said.contains(warning), "{name}: {said}");
            // For a far key, both the primary and the party that links the key warn their operators.
            assert_eq!(warned.len(), if preparation == "key" { 2 } else { 1 }, "{name}: {said}");
        }
        assert_eq!(said.contains(IGNORED), difference == "constant changed", "{name}: {said}");
        assert_eq!(
            said.contains(FAR),
            ["far value", "other unit", "worse link than any"].contains(&difference),
            "{name}: {said}"
        );
        for row in 0..6 {
            if !rows.contains(&row) || difference == "constant changed" {
                assert_eq!(after[row], before[row], "{name}: row {row}");
            }
        }
        let warning = warned.iter().map(|line| &line[9..]).collect::<Vec<_>>().join("<br>");
        eprintln!(
            "| {preparation} | {difference} | {} | the same bits |",
            if warning.is_empty() { "none" } else { &warning }
        );
    }
}

/// A secondary's table changes after training: only the secondary's operator gets a warning.
#[test]
fn names_a_changed_record_to_its_owner() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_tables(folder, "202312");
    assert!(fet(folder, &["run", "e.toml", "--out", "run"]).status.success());
    let usual = read(folder, "s.csv");
    let new: String = read(folder, "p.csv").lines().take(7).map(|line| format!("{line}\n")).collect();
    let (_, before) = predicted(folder, &new);
    for (column, row, cell, warning) in [
        ("z", 150, "1e9", "s: column `z`: 1 of 160 records is far outside"),
        (
            "street",
            150,
            "bridge",
            "s: column `street`: 1 of 160 records has a value that no record of the training had (the first is row 150)",
        ),
        (
            "street",
            150,
            "",
            "s: column `street`: 1 of 160 records lacks a value, which every record of the training has",
        ),
        ("k", 150, "-1e5", "s: key column 1: 1 of 160 records is far outside 0 to 9.9375"),
    ] {
        std::fs::write(folder.join("s.csv"), changed(&usual, column, &[row], cell)).expect("writable");
        let (said, after) = predicted(folder, &new);
        assert!(said.contains(warning), "{said}");
        // None of the six rows has a link with this record.
        assert_eq!(after, before, "{column}");
        assert!(!read(folder, "out.csv").contains("far outside"), "predictions are the primary's");
    }
}

/// A run compares its validation and test rows with its training rows.
#[test]
fn reports_values_of_later_rows_that_training_lacks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_tables(folder, "202401");
    // `k` of the last rows is far from all earlier keys and from all records.
    let rows: Vec<usize> = (ROWS - 5..ROWS).collect();
    let text = changed(&read(folder, "p.csv"), "k", &rows, "900");
    std::fs::write(folder.join("p.csv"), text).expect("writable");
    let sets =
        ["split.kind=time", "split.column=t", "data.primary.drop=[\"t\"]"].map(|set| ["--set", set]).concat();
    let output = fet(folder, &[&["run", "e.toml", "--out", "run"], sets.as_slice()].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let report_of = report(&folder.join("run"));
    let held_out = report_of.rows.validation + report_of.rows.test;
    let key = format!("key column 1: 5 of {held_out} validation and test rows are far outside 0 to ");
    let period = format!(
        "column `period`: is constant in every training row (202312), and 20 of {held_out} validation and test rows have another value \
         (the first is row 140): {IGNORED}"
    );
    let warnings = &report_of.warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with(&key) && warnings[1] == period, "{warnings:?}");
    // The secondary warns only its own operator.
    assert!(said.contains(&format!("s: 5 of the primary's {held_out} validation and test rows")), "{said}");
    let checked = fet(folder, &[&["data", "check", "e.toml"], sets.as_slice()].concat());
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    let note = "note: constant columns are ignored, because every training record has the same value in them: `period` (202312), `extract` \
                (2023-12-31), `site` (north)";
    assert!(text.contains(note), "{text}");
    // A model learns as much as without the column.
    let error = |column: &str, out: &str| {
        let dropped = format!("data.primary.drop=[\"t\"{column}]");
        let sets = ["split.kind=time", "split.column=t", &dropped].map(|set| ["--set", set]).concat();
        assert!(fet(folder, &[&["run", "e.toml", "--out", out], sets.as_slice()].concat()).status.success());
        report(&folder.join(out)).best.test
    };
    let (with, without) = (report_of.best.test, error(", \"period\"", "without"));
    assert!(with < 2.0 * without, "RMSE {with} with the constant column, {without} without it");
}

/// Rows count from 0 in every output, and identifiers are copied verbatim from the file.
#[test]
fn predictions_count_rows_from_0_and_copy_identifiers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write_tables(folder, "202312");
    assert!(fet(folder, &["run", "e.toml", "--out", "run"]).status.success());
    let rows = numbers(&table(folder, "run/predictions.csv"), "row");
    let labels = numbers(&table(folder, "run/predictions.csv"), "label");
    let of_file = numbers(&table(folder, "p.csv"), "y");
    assert!(rows.iter().zip(&labels).all(|(row, label)| of_file[*row as usize] == *label));
    let new: String = read(folder, "p.csv")
        .lines()
        .take(4)
        .zip(["id", "0123", "NA", "\" a,b\""])
        .map(|(line, id)| format!("{id},{line}\n"))
        .collect();
    std::fs::write(folder.join("new.csv"), &new).expect("writable");
    let arguments = ["predict", "run", "--rows", "new.csv", "--id", "id"];
    let output = fet(folder, &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("row,id,prediction,"), "{text}");
    for (line, start) in lines[1..].iter().zip(["0,0123,", "1,NA,", "2,\" a,b\","]) {
        assert!(line.starts_with(start), "{text}");
    }
    // A column that the model uses can also be an identifier.
    let output = fet(folder, &["predict", "run", "--rows", "new.csv", "--id", "k"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().nth(2).is_some_and(|line| line.starts_with("1,2.3125,")), "{text}");
    for (id, problem) in [("absent", "lacks the column `absent`"), ("prediction", "prediction")] {
        let renamed = new.replacen("id,", &format!("{},", if id == "prediction" { id } else { "id" }), 1);
        std::fs::write(folder.join("new.csv"), renamed).expect("writable");
        let output = fet(folder, &["predict", "run", "--rows", "new.csv", "--id", id, "--out", "no.csv"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("new.csv") || said.contains("--id"), "{said}");
        assert!(said.contains(problem) && !folder.join("no.csv").exists(), "{said}");
    }
}
