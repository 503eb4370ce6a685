//! Tests links by the order of rows: tables of different lengths, sampled records, and new rows.

use std::fmt::Write;
use std::path::Path;

use crate::command::{fet, refused};
use crate::own_data::{numbers, table};

const EXPERIMENT: &str = r#"
name = "aligned"
linker = { kind = "aligned", neighbours = 1 }
method = { kind = "fet", hidden = 8, heads = 2, positional_encoding = false }
train = { epochs = 2, batch_size = 32 }

[data]
kind = "linked"
task = "regression"
label = "y"
primary = { file = "p.csv", keys = ["id"] }
secondaries = [{ file = "s.csv", keys = ["id"] }]
"#;

const ROWS: usize = 80;

fn secondary(folder: &Path, rows: impl Iterator<Item = usize>) {
    let mut text = "id,z\n".to_string();
    rows.for_each(|row| writeln!(text, "{row},{}", row * 37 % 11).expect("text"));
    std::fs::write(folder.join("s.csv"), text).expect("writable");
}

/// Creates a folder with the experiment, a primary's table, and a secondary's table of `records` records.
fn prepared(records: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut text = "id,x,y\n".to_string();
    (0..ROWS).for_each(|row| {
        writeln!(text, "{row},{},{}", row * 13 % 7, row * 13 % 7 + row * 37 % 11).expect("text");
    });
    std::fs::write(folder.path().join("p.csv"), text).expect("writable");
    secondary(folder.path(), 0..records);
    std::fs::write(folder.path().join("new.csv"), "id,x\n900,1\n901,2\n902,3\n").expect("writable");
    std::fs::write(folder.path().join("exp.toml"), EXPERIMENT).expect("writable");
    folder
}

#[test]
fn refuses_tables_of_different_lengths_and_names_both() {
    for (records, sets) in [
        (ROWS + 1, &[][..]),
        (ROWS - 1, &[]),
        (ROWS, &["--set", "linker.neighbours=2"]),
        (2 * ROWS + 1, &["--set", "linker.neighbours=2"]),
    ] {
        let folder = prepared(records);
        let run = fet(folder.path(), &[&["run", "exp.toml", "--out", "out"], sets].concat());
        refused(&run, &["s.csv", &format!("{ROWS} primary records"), &format!("it has {records}")]);
        assert!(!folder.path().join("out").exists());
        // A method that uses only the primary asks no party, but still reads both tables.
        let alone = [&["run", "exp.toml", "--out", "alone", "--set", "method.kind=solo"], sets].concat();
        assert!(fet(folder.path(), &alone).status.success());
    }
}

/// Sampled records may be as many as the secondary's records, but they are in the sampled order.
#[test]
fn refuses_drawn_records() {
    let folder = prepared(ROWS);
    for rows in [ROWS, 40] {
        secondary(folder.path(), 0..rows);
        let set = format!("data.rows={rows}");
        refused(
            &fet(folder.path(), &["run", "exp.toml", "--out", "out", "--set", &set]),
            &["`data.rows` must be 0", "aligned"],
        );
    }
}

#[test]
fn new_rows_need_new_records() {
    let folder = prepared(ROWS);
    let path = folder.path();
    assert!(fet(path, &["run", "exp.toml", "--out", "out"]).status.success());
    let predict = |more: &[&str]| {
        fet(path, &[&["predict", "out", "--rows", "new.csv", "--out", "predictions.csv"], more].concat())
    };
    refused(&predict(&[]), &["s.csv", "aligned", "their own records", "--data FOLDER"]);
    // The command refuses new rows even if there are as many as in the run.
    refused(&fet(path, &["predict", "out", "--rows", "p.csv"]), &["their own records"]);
    refused(&fet(path, &["explain", "out"]), &["out", "aligned", "order of rows"]);
    let other = path.join("other");
    std::fs::create_dir(&other).expect("writable");
    secondary(&other, 0..4);
    refused(&predict(&["--data", "other"]), &["s.csv", "3 primary records", "it has 4"]);
    refused(&predict(&["--data", "nowhere"]), &["--data nowhere", "folder"]);
    secondary(&other, 3..6);
    let told = predict(&["--data", "other"]);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success(), "{said}");
    assert!(said.contains("s.csv: the table is not the one that the model was trained on"), "{said}");
    let first = numbers(&table(path, "predictions.csv"), "prediction");
    // Each row uses the record at its position.
    secondary(&other, (3..6).rev());
    assert!(predict(&["--data", "other"]).status.success());
    let turned = numbers(&table(path, "predictions.csv"), "prediction");
    assert_eq!(first[1].to_bits(), turned[1].to_bits());
    assert!(first[0] != turned[0] && first[2] != turned[2], "{first:?}, {turned:?}");
}
