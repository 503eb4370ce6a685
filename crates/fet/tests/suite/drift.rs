//! Tests `fet predict` on rows that differ from the training rows, and on rows with known labels.

use std::fmt::Write;
use std::path::Path;

use fet_core::rng::{Purpose, stream};
use rand::RngExt;

use crate::command::fet;
use crate::own_data::table;
use crate::support::report;

const EXPERIMENT: &str = r#"
name = "drift"

[split]
kind = "time"
column = "day"

[train]
epochs = 1

[data]
kind = "linked"
task = "regression"
label = "price"
primary = { file = "p.csv", keys = ["k"], columns = { kind = "category" } }
secondaries = [{ name = "s", file = "s.csv", keys = ["k"] }]

[linker]
kind = "nearest"
neighbours = 1

[method]
kind = "linear-solo"
"#;

/// Returns rows of flats, sorted by day: the price is 3 for each unit of size, plus `inflation` and noise that
/// grows with the size. `smallest` is the least size, and the days are in the first months of a year.
fn flats(rows: usize, seed: u64, [smallest, inflation]: [f64; 2], [year, months]: [usize; 2]) -> String {
    let mut rng = stream(seed, 0, Purpose::Parties, 0);
    let mut text = "k,day,size,kind,price\n".to_string();
    for row in 0..rows {
        let k: f64 = rng.random();
        let size = smallest + 5.0 * rng.random::<f64>();
        let kind = ["flat", "house"][rng.random_range(0..2usize)];
        let noise: f64 = rng.random_range(-0.5..0.5);
        let price = 3.0 * size + inflation + noise * size;
        let day = format!("{year}-{:02}-{:02}", 1 + row * months / rows, 1 + row % 28);
        let _ = writeln!(text, "{k},{day},{size},{kind},{price}");
    }
    text
}

/// Year and months of rows like the training rows.
const LIKE: [usize; 2] = [2020, 8];

/// Predicts rows and returns standard output and standard error.
fn predicted(folder: &Path, rows: &str, more: &[&str]) -> [String; 2] {
    std::fs::write(folder.join("new.csv"), rows).expect("writable");
    let arguments = ["predict", "run", "--rows", "new.csv", "--out", "out.csv"];
    let output = fet(folder, &[&arguments, more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    [String::from_utf8_lossy(&output.stdout).into_owned(), said]
}

/// Returns a folder with a finished run on these rows of 2020; its training rows end in September.
fn trained(rows: usize, more: &[&str]) -> tempfile::TempDir {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    let secondary: String = (0..50).map(|row| format!("{},{}\n", f64::from(row) / 50.0, row % 7)).collect();
    for (name, text) in [
        ("p.csv", flats(rows, 1, [5.0, 0.0], [2020, 12])),
        ("s.csv", format!("k,z\n{secondary}")),
        ("e.toml", EXPERIMENT.to_string()),
    ] {
        std::fs::write(folder.join(name), text).expect("writable");
    }
    let output = fet(folder, &[&["run", "e.toml", "--out", "run"], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    temporary
}

#[test]
fn names_the_columns_that_moved_most() {
    let temporary = trained(2_000, &[]);
    let folder = temporary.path();
    // Rows of the same year and kind get no warning about their distribution.
    let [_, said] = predicted(folder, &flats(300, 2, [5.0, 0.0], LIKE), &[]);
    assert!(!said.contains("differ from the training rows"), "{said}");
    let [_, said] = predicted(folder, &flats(300, 3, [7.0, 0.0], [2023, 12]), &[]);
    let warning = said.lines().find(|line| line.contains("differ from the training rows")).expect(&said);
    for part in
        ["column `day` 1.00 ± 0.", "column `size` 0.", "the predictions 0.", "`day` from 2020-01-01 to"]
    {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert!(!warning.contains("kind") && !warning.contains("key"), "{warning}");
    let card = std::fs::read_to_string(folder.join("run/model-card.md")).expect("a card");
    assert!(card.contains("| period of the training rows (`day`) | 2020-01-01 to 2020-"), "{card}");
    assert!(card.contains("assume rows like the ") && card.contains("| prediction from "), "{card}");
}

/// Prices rose, and no input shows it: `--labels` does.
#[test]
fn labels_show_errors_that_inputs_do_not() {
    // A coefficient of the day would be an extrapolation for the test rows, which are the latest.
    let temporary = trained(2_000, &["--set", "data.primary.drop=[\"day\"]"]);
    let folder = temporary.path();
    let [shown, said] = predicted(folder, &flats(300, 4, [5.0, 0.0], LIKE), &["--labels", "price"]);
    assert!(shown.starts_with("300 of 300 rows have a label in `price`"), "{shown}");
    for part in ["RMSE", "bias (predicted minus true)", "coverage (90.0 % stated)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!said.contains("rows with a label"), "{said}");

    let [shown, said] = predicted(folder, &flats(300, 5, [5.0, 9.0], LIKE), &["--labels", "price"]);
    for part in ["worse than the run's test rows", "below the true values", "not 90.0 % as stated"] {
        assert!(said.contains(part), "{part}: {said}\n{shown}");
    }
    assert!(!said.contains("differ from the training rows"), "the inputs are the same: {said}");

    // Missing labels are left out, and a text is refused.
    let rows = flats(300, 6, [5.0, 0.0], LIKE);
    let mut lines: Vec<String> = rows.lines().map(String::from).collect();
    lines[7] = lines[7].rsplit_once(',').expect("a label").0.to_string() + ",";
    let [shown, _] = predicted(folder, &(lines.join("\n") + "\n"), &["--labels", "price"]);
    assert!(shown.starts_with("299 of 300 rows have a label"), "{shown}");
    let output = fet(folder, &["predict", "run", "--rows", "new.csv", "--labels", "kind"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// The intervals of a run with residuals that grow with the price are wider for expensive flats, and the report
/// has their coverage by decile.
#[test]
fn intervals_grow_with_the_residuals() {
    let temporary = trained(6_000, &[]);
    let folder = temporary.path();
    let out = table(folder, "run/predictions.csv");
    let numbers = |name: &str| crate::own_data::numbers(&out, name);
    let (predictions, lower, upper) = (numbers("prediction"), numbers("lower"), numbers("upper"));
    assert!(lower.iter().zip(&upper).all(|(lower, upper)| lower < upper));
    let report = report(&folder.join("run"));
    let coverage = report.coverage.expect("finite predictions");
    assert_eq!((coverage.deciles.len(), coverage.all.rows), (10, report.rows.test));
    let width = |at: usize| coverage.deciles[at].covered.size.expect("finite");
    assert!(
        predictions.len() == report.rows.validation + report.rows.test && width(9) > 1.3 * width(0),
        "{coverage:?}"
    );
}
