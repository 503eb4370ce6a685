//! Tests `fet predict` on rows that differ from the training rows, and on rows with known labels.

use std::fmt::Write;
use std::path::Path;

use fet_core::rng::{Purpose, stream};
use fet_eval::conformal::rank;
use fet_tables::Values;
use rand::RngExt;

use crate::command::{fet, read, refused};
use crate::coverage::at_most;
use crate::own_data::{numbers, table};
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
pub(crate) fn flats(
    rows: usize,
    seed: u64,
    [smallest, inflation]: [f64; 2],
    [year, months]: [usize; 2],
) -> String {
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
pub(crate) const LIKE: [usize; 2] = [2020, 8];

/// Predicts rows and returns standard output and standard error.
pub(crate) fn predicted(folder: &Path, rows: &str, more: &[&str]) -> [String; 2] {
    std::fs::write(folder.join("new.csv"), rows).expect("writable");
    let arguments = ["predict", "run", "--rows", "new.csv", "--out", "out.csv"];
    let output = fet(folder, &[&arguments, more].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    [String::from_utf8_lossy(&output.stdout).into_owned(), said]
}

/// Returns a folder with a finished run on these rows of 2020; its training rows end in September.
pub(crate) fn trained(rows: usize, more: &[&str]) -> tempfile::TempDir {
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
    assert!(card.contains("| period of the training rows (day) | 2020-01-01 to 2020-"), "{card}");
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
    for part in ["worse than the run's test rows", "bias (predicted minus true) of -", "not 90.0 % as stated"]
    {
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
    let numbers = |name: &str| numbers(&out, name);
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

/// Four labels are too few for an interval or a warning, even if no prediction is right; twenty are enough.
#[test]
fn few_labels_give_no_interval_and_no_warning() {
    let temporary = trained(2_000, &["--set", "data.primary.drop=[\"day\"]"]);
    let folder = temporary.path();
    for (rows, is_few) in [(4, true), (19, true), (20, false)] {
        let [shown, said] = predicted(folder, &flats(rows, 5, [5.0, 9.0], LIKE), &["--labels", "price"]);
        assert_eq!(
            shown.contains("With fewer than 20 labels the figures have no intervals"),
            is_few,
            "{shown}"
        );
        assert_eq!(said.contains("have a bias (predicted minus true) of -"), !is_few, "{rows}: {said}");
        assert_eq!(said.contains("worse than"), !is_few, "{rows}: {said}");
        let of_these = |name: &str| {
            let line = shown.lines().find(|line| line.starts_with(name)).expect(&shown);
            line[30..64].to_string()
        };
        for name in ["RMSE", "bias", "coverage"] {
            let has_interval = of_these(name).contains(['(', '±']);
            assert_eq!(has_interval, !is_few, "{rows}: {name}: {}", of_these(name));
        }
    }
}

/// Returns dearer and dearer flats: the price rises by 1 each month of 2020.
fn rising(rows: usize) -> String {
    let text = flats(rows, 8, [5.0, 0.0], [2020, 12]);
    let dearer = |line: &str| {
        let (start, price) = line.rsplit_once(',').expect("a price");
        let month: f64 = start.split(',').nth(1).and_then(|day| day[5..7].parse().ok()).expect("a month");
        let price: f64 = price.parse().expect("a number");
        format!("{start},{}\n", price + month - 1.0)
    };
    let mut lines = text.lines();
    let head = lines.next().expect("a head").to_string();
    std::iter::once(head + "\n").chain(lines.map(dearer)).collect()
}

/// The error grows by month, and the table shows it by the column of the split, although no model sees it.
#[test]
fn labels_show_the_error_by_time() {
    let temporary = trained(2_000, &["--set", "data.primary.drop=[\"day\"]"]);
    let folder = temporary.path();
    let [shown, said] = predicted(folder, &rising(600), &["--labels", "price"]);
    let lines: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("by `day`")).collect();
    assert_eq!(lines.len(), 13, "a head and twelve months: {shown}");
    let bias = |line: &str| -> f64 {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[1], "50", "{line}");
        cells[3].parse().expect(line)
    };
    assert!(lines[1].starts_with("2020-01 ") && lines[12].starts_with("2020-12 "), "{shown}");
    assert!(bias(lines[1]).abs() < 2.0 && (bias(lines[12]) + 11.0).abs() < 2.5, "{shown}");
    assert!(said.contains("periods of `day`") || said.contains("rows with a label"), "{said}");

    // Another column must exist and hold dates.
    let with = |column: &'static str| {
        fet(folder, &["predict", "run", "--rows", "new.csv", "--labels", "price", "--time", column])
    };
    refused(&with("nosuch"), &["nosuch"]);
    refused(&with("kind"), &["kind"]);
    assert!(with("day").status.success());
    // A table by time needs a column of dates.
    let without: String = rising(600)
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{}\n", cells[0], cells[2..].join(","))
        })
        .collect();
    let [shown, _] = predicted(folder, &without, &["--labels", "price"]);
    assert!(!shown.contains("by `"), "{shown}");
}

/// Checks the number of covered rows of a group by α = 1e-3, two-sided, if `rows` calibrated its bound at 90 %.
fn check_coverage([covered, tested]: [usize; 2], rows: usize, case: &str) {
    const ALPHA: f64 = 1e-3;
    let rank = rank(rows, 0.1).expect("enough rows");
    let (below, above) =
        (at_most(covered, tested, rank, rows), 1.0 - at_most(covered - 1, tested, rank, rows));
    let case = format!("{case}: {covered} of {tested} rows, {rows} calibration rows");
    assert!(below > ALPHA / 2.0, "too few, {case}");
    assert!(above > ALPHA / 2.0, "too many, {case}");
}

/// Prices rose by 9. The bounds of the run then cover too few rows; bounds from 400 labelled rows of the new kind cover
/// 600 other rows of this kind as stated, and the model stays as it was.
#[test]
fn recalibrated_intervals_cover_fresh_rows_as_stated() {
    let temporary = trained(2_000, &["--set", "data.primary.drop=[\"day\"]"]);
    let folder = temporary.path();
    let model = std::fs::read(folder.join("run/model.safetensors")).expect("a model");
    let labelled = ["--labels", "price", "--recalibrate", "bounds.json"];
    let [shown, _] = predicted(folder, &flats(400, 11, [5.0, 9.0], LIKE), &labelled);
    assert!(shown.contains("written: bounds.json with bounds from "), "{shown}");
    let fresh = flats(600, 12, [5.0, 9.0], LIKE);
    let covered = |more: &[&str]| {
        predicted(folder, &fresh, more);
        let (out, new) = (table(folder, "out.csv"), table(folder, "new.csv"));
        let (lower, upper, price) = (numbers(&out, "lower"), numbers(&out, "upper"), numbers(&new, "price"));
        (0..600).filter(|&row| (lower[row]..=upper[row]).contains(&price[row])).count()
    };
    let calibrated = report(&folder.join("run")).coverage.expect("bounds").calibration_rows;
    let before = covered(&[]);
    let probability = at_most(before, 600, rank(calibrated, 0.1).expect("enough rows"), calibrated);
    assert!(probability < 1e-6, "{before} of 600 rows are covered before: {probability}");
    let file: serde_json::Value = serde_json::from_str(&read(folder, "bounds.json")).expect("JSON");
    let rows = file["conformal"]["rows"].as_u64().expect("a number") as usize;
    check_coverage([covered(&["--calibration", "bounds.json"]), 600], rows, "prices");
    assert!(
        std::fs::read(folder.join("run/model.safetensors")).expect("a model") == model,
        "the model is the same"
    );

    // Bad files and bad uses are refused, and nothing is written.
    let arguments = ["predict", "run", "--rows", "new.csv", "--labels", "price"];
    let with = |more: &[&str]| fet(folder, &[&arguments, more].concat());
    refused(&with(&["--recalibrate", "new.csv"]), &["--recalibrate new.csv", "overwrite an input"]);
    refused(&with(&["--recalibrate", "run/model.safetensors"]), &["overwrite an input or a file of the run"]);
    refused(&with(&["--recalibrate", "-"]), &["name a file"]);
    refused(&with(&["--calibration", "new.csv"]), &["is not a file that `fet predict --recalibrate` wrote"]);
    refused(
        &with(&["--recalibrate", "bounds.json", "--calibration", "bounds.json"]),
        &["overwrite an input"],
    );
    let text = read(folder, "bounds.json");
    std::fs::write(folder.join("other.json"), text.replace("\"model\": \"", "\"model\": \"0"))
        .expect("writable");
    refused(&with(&["--calibration", "other.json"]), &["belongs to another model"]);
    for (place, value) in [
        ("/conformal/alpha", "7.1"),
        ("/conformal/alpha", "0.5"),
        ("/conformal/rows", "0"),
        ("/conformal/bounds", r#"{"width": null}"#),
        ("/conformal/bounds", r#"{"width": -1.0}"#),
        ("/conformal/bounds", r#"{"all-classes": 0.5}"#),
    ] {
        let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        *file.pointer_mut(place).expect(place) = serde_json::from_str(value).expect("JSON");
        std::fs::write(folder.join("other.json"), file.to_string()).expect("writable");
        refused(&with(&["--calibration", "other.json"]), &["--calibration other.json: is damaged"]);
    }
    std::fs::write(folder.join("new.csv"), flats(8, 13, [5.0, 9.0], LIKE)).expect("writable");
    refused(&with(&["--recalibrate", "few.json"]), &["8 rows have a label", "at least 9"]);
    assert!(!folder.join("few.json").exists());
}

/// Outputs that are one file, however the paths are written, and outputs in place of a file of the user.
#[test]
fn refuses_outputs_that_would_lose_a_file() {
    let temporary = trained(300, &["--set", "data.primary.drop=[\"day\"]"]);
    let folder = temporary.path();
    std::fs::write(folder.join("new.csv"), flats(30, 2, [5.0, 0.0], LIKE)).expect("writable");
    std::fs::write(folder.join("notes.json"), "{\"mine\": 1}\n").expect("writable");
    std::fs::create_dir(folder.join("d")).expect("made");
    let with = |more: &[&str]| {
        let arguments = ["predict", "run", "--rows", "new.csv", "--labels", "price"];
        fet(folder, &[&arguments, more].concat())
    };
    let mut cases = vec![
        (vec!["--out", "a.csv", "--explain", "./a.csv"], "--explain ./a.csv: is the file of another output"),
        (vec!["--out", "d/../a.csv", "--explain", "a.csv"], "--explain a.csv: is the file of another output"),
        (vec!["--recalibrate", "notes.json"], "--recalibrate notes.json: exists, and is not a calibration"),
        (vec!["--recalibrate", "bounds.csv"], "--recalibrate bounds.csv: must end in .json"),
        (vec!["--recalibrate", "bounds"], "--recalibrate bounds: must end in .json"),
    ];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.csv", folder.join("link.csv")).expect("made");
        std::os::unix::fs::symlink("notes.json", folder.join("link.json")).expect("made");
        cases.extend([
            (
                vec!["--out", "a.csv", "--explain", "link.csv"],
                "--explain link.csv: is the file of another output",
            ),
            (vec!["--recalibrate", "link.json"], "--recalibrate link.json: exists, and is not a calibration"),
        ]);
    }
    for (more, expected) in cases {
        refused(&with(&more), &[expected]);
        assert!(!folder.join("a.csv").exists() && !folder.join("bounds.csv").exists(), "{more:?}");
        assert_eq!(read(folder, "notes.json"), "{\"mine\": 1}\n");
    }
    // A calibration replaces a calibration.
    for _ in 0..2 {
        let output = with(&["--out", "a.csv", "--recalibrate", "bounds.json"]);
        assert!(output.status.success(), "{output:?}");
    }
    // The square of an error would overflow.
    let text = read(folder, "new.csv");
    let (start, _) = text.trim_end().rsplit_once(',').expect("a price");
    std::fs::write(folder.join("new.csv"), format!("{start},1e308\n")).expect("writable");
    refused(
        &with(&[]),
        &["new.csv: --labels price: row 29 (from 0) has the label 1e308; it must be within ±1e100"],
    );
}

/// Replaces the price by a class: "dear" above 22.5, otherwise "cheap".
fn by_class(text: &str) -> String {
    let class = |line: &str| match line.rsplit_once(',').expect("a price") {
        (start, "price") => format!("{start},price\n"),
        (start, price) => {
            let is_dear = price.parse::<f64>().expect("a number") > 22.5;
            format!("{start},{}\n", if is_dear { "dear" } else { "cheap" })
        }
    };
    text.lines().map(class).collect()
}

/// Returns a folder with a finished run on rows with a class.
fn trained_classes() -> tempfile::TempDir {
    let temporary = trained(50, &[]);
    let folder = temporary.path();
    std::fs::write(folder.join("p.csv"), by_class(&flats(3_000, 1, [5.0, 0.0], [2020, 12])))
        .expect("writable");
    std::fs::remove_dir_all(folder.join("run")).expect("a run");
    let sets = ["--set", "data.task=binary", "--set", "data.primary.drop=[\"day\"]"];
    let output = fet(folder, &[&["run", "e.toml", "--out", "run"][..], &sets].concat());
    assert!(output.status.success(), "{output:?}");
    temporary
}

/// Eight rows of "dear" are too few to exclude the class at 90 %, when the command writes the bounds and when it uses
/// them. Nine are enough.
#[test]
fn warns_of_a_class_with_too_few_rows_of_the_calibration() {
    let temporary = trained_classes();
    let folder = temporary.path();
    let rows = by_class(&flats(300, 31, [5.0, 0.0], LIKE));
    let with = |dear: usize| -> String {
        let mut seen = 0;
        let keep = |line: &&str| {
            seen += usize::from(line.ends_with("dear"));
            !line.ends_with("dear") || seen <= dear
        };
        rows.lines().filter(keep).map(|line| format!("{line}\n")).collect()
    };
    for (dear, expect) in [(8, true), (9, false)] {
        let labelled = ["--labels", "price", "--recalibrate", "bounds.json"];
        let [_, said] = predicted(folder, &with(dear), &labelled);
        let warning = "`likely` always contains \"dear\": fewer than 9 rows with a label have the class";
        assert_eq!(said.contains(warning), expect, "{dear}: {said}");
        let [_, said] = predicted(folder, &rows, &["--calibration", "bounds.json"]);
        let warning =
            "`likely` always contains \"dear\": fewer than 9 rows of the calibration have the class";
        assert_eq!(said.contains(warning), expect, "{dear}: {said}");
    }
}

/// Classes by a price above 22.5. Prices rose by 3: flats that became dear have a low probability of "dear". The
/// recalibrated sets cover the fresh rows of each class as stated.
#[test]
fn recalibrated_sets_cover_each_class_of_fresh_rows_as_stated() {
    let temporary = trained_classes();
    let folder = temporary.path();
    let labelled = ["--labels", "price", "--recalibrate", "bounds.json"];
    predicted(folder, &by_class(&flats(800, 21, [5.0, 3.0], LIKE)), &labelled);
    let fresh = by_class(&flats(1_000, 22, [5.0, 3.0], LIKE));
    let texts = |name: &str, file: &str| -> Vec<String> {
        let table = table(folder, file);
        let values: &Values = &table.column(name).expect("a column").values;
        values.texts()
    };
    let covered = |more: &[&str]| {
        predicted(folder, &fresh, more);
        let (likely, classes) = (texts("likely", "out.csv"), texts("price", "new.csv"));
        ["cheap", "dear"].map(|class| {
            let rows: Vec<usize> = (0..1_000).filter(|&row| classes[row] == class).collect();
            let is_in = |row: &&usize| likely[**row].split(" | ").any(|one| one == class);
            [rows.iter().filter(is_in).count(), rows.len()]
        })
    };
    let report = report(&folder.join("run"));
    let calibrated = report.rows.validation / 3;
    let [_, [before, dear]] = covered(&[]);
    let probability = at_most(before, dear, rank(calibrated, 0.1).expect("enough rows"), calibrated);
    assert!(probability < 1e-3, "{before} of {dear} dear rows are covered before: {probability}");
    let file: serde_json::Value = serde_json::from_str(&read(folder, "bounds.json")).expect("JSON");
    let after = covered(&["--calibration", "bounds.json"]);
    for (class, counts) in after.into_iter().enumerate() {
        let rows = file["conformal"]["bounds"]["classes"][class]["rows"].as_u64().expect("a number");
        check_coverage(counts, rows as usize, ["cheap", "dear"][class]);
    }
}
