//! Tests `fet predict --explain`, the reliance of each prediction on parties and columns.

use std::path::Path;

use fet_tables::Table;

use crate::command::{fet, read, refused};
use crate::drift::{LIKE, flats, predicted, trained};
use crate::own_data::{finished, numbers, table};

/// Predicts the first `rows` rows of the shops, and returns predictions and reliance.
fn explained(folder: &Path, rows: usize) -> [Table; 2] {
    let text: String =
        read(folder, "shops.csv").lines().take(1 + rows).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("some.csv"), text).expect("writable");
    let arguments = ["predict", "result", "--rows", "some.csv", "--out", "out.csv", "--explain", "why.csv"];
    let output = fet(folder, &arguments);
    assert!(output.status.success(), "{output:?}");
    ["out.csv", "why.csv"].map(|file| table(folder, file))
}

/// The mean absolute reliance on a party or column.
fn strength(table: &Table, name: &str) -> f64 {
    let values = numbers(table, name);
    values.iter().map(|value| value.abs()).sum::<f64>() / values.len() as f64
}

/// In a linear model the reliance on a column is its coefficient times the difference from the mean of the drawn
/// values, and the reliance on all columns is their sum.
#[test]
fn reliance_in_a_linear_model_is_linear_and_adds_up() {
    let temporary = trained(2_000, &["--set", "data.primary.drop=[\"day\"]"]);
    let folder = temporary.path();
    predicted(folder, &flats(100, 2, [6.0, 0.0], LIKE), &["--explain", "why.csv"]);
    let (why, new, out) = (table(folder, "why.csv"), table(folder, "new.csv"), table(folder, "out.csv"));
    assert_eq!(numbers(&why, "explained"), numbers(&out, "prediction"));
    let (size, of_size, of_kind, of_all) = (
        numbers(&new, "size"),
        numbers(&why, "p.csv: size"),
        numbers(&why, "p.csv: kind"),
        numbers(&why, "p.csv"),
    );
    let slope = (of_size[1] - of_size[0]) / (size[1] - size[0]);
    assert!((slope - 3.0).abs() < 0.3, "the price is 3 for each unit: {slope}");
    for row in 0..100 {
        let expect = of_size[0] + slope * (size[row] - size[0]);
        assert!((of_size[row] - expect).abs() < 1e-2, "{row}: {} for {expect}", of_size[row]);
        let sum = of_size[row] + of_kind[row];
        assert!((of_all[row] - sum).abs() < 1e-2, "{row}: {} for {sum}", of_all[row]);
    }
    // Training sizes are between 5 and 10, so sizes from 9 on raise the price and those below 6 lower it.
    assert!((0..100).all(|row| size[row] < 9.0 || of_size[row] > 0.0), "{of_size:?}");
}

/// Each kind of saved model is explained: shops are busy by size, kind and lanes; seats are noise. A row has the same reliance
/// in another file.
#[test]
fn explains_networks_and_trees() {
    for sets in [
        &["train.epochs=12", "data.rows=300"][..],
        &["method.kind=gbdt-top1", "train.epochs=20"],
        &["method.kind=with-trees", "method.growth.trees=20"],
    ] {
        let (folder, _) = finished(sets);
        let folder = folder.path();
        let [out, why] = explained(folder, 120);
        assert_eq!(numbers(&why, "explained"), numbers(&out, "probability of yes"), "{sets:?}");
        let names: Vec<&str> = why.columns.iter().map(|column| column.name.as_str()).collect();
        for name in ["row", "shops", "shops: size", "streets", "streets: lanes", "buses", "buses: seats"] {
            assert!(names.contains(&name), "{sets:?}: {name} in {names:?}");
        }
        let [lanes, size, seats] =
            ["streets: lanes", "shops: size", "buses: seats"].map(|name| strength(&why, name));
        // Only trees that see the nearest record learn more than the size from 210 rows.
        let learns_lanes = sets[0].contains("gbdt");
        assert!(
            size > 2.0 * seats && (!learns_lanes || lanes > 2.0 * seats),
            "{sets:?}: lanes {lanes}, size {size}, seats {seats}"
        );
        let [_, few] = explained(folder, 5);
        for name in ["shops", "streets", "streets: lanes"] {
            let (few, all) = (numbers(&few, name), numbers(&why, name));
            assert!((0..5).all(|row| few[row].to_bits() == all[row].to_bits()), "{sets:?}: {name}");
        }
    }
}

#[test]
fn refuses_to_explain_without_the_training_rows_or_with_parties_elsewhere() {
    let temporary = trained(300, &[]);
    let folder = temporary.path();
    std::fs::write(folder.join("new.csv"), flats(30, 2, [6.0, 0.0], LIKE)).expect("writable");
    let predict = |more: &[&str]| fet(folder, &[&["predict", "run", "--rows", "new.csv"], more].concat());
    refused(&predict(&["--explain", "-"]), &["--explain -", "name a file"]);
    refused(&predict(&["--explain", "new.csv"]), &["overwrite an input"]);
    refused(&predict(&["--out", "a.csv", "--explain", "a.csv"]), &["another output"]);
    refused(&predict(&["--explain", "why.txt"]), &["--explain"]);
    refused(
        &predict(&["--explain", "why.csv", "--parties", "roster.toml", "--key", "key"]),
        &["cannot be used with"],
    );
    let rows = read(folder, "p.csv");
    std::fs::write(folder.join("p.csv"), rows.replacen("flat", "house", 1)).expect("writable");
    refused(
        &predict(&["--out", "a.csv", "--explain", "why.csv"]),
        &["--explain: the data files have changed"],
    );
    assert!(!folder.join("why.csv").exists() && !folder.join("a.csv").exists());
}
