//! Tests of `[release]` with the command itself: columns, account, memoised releases, predictions and refusals.

use std::fmt::Write;
use std::path::Path;
use std::process::Output;

use fet_core::rng::{Purpose, stream};
use fet_eval::records::{Randomness, TableRelation};
use fet_privacy::accountant::gaussian;
use rand::RngExt;

use crate::command::{self, fet, read, refused, text, write};
use crate::own_data::{numbers, table};
use crate::support::report;

pub(crate) const EXPERIMENT: &str = r#"
name = "places"
seed = 4

[train]
epochs = 3
batch_size = 64

[data]
kind = "linked"
task = "regression"
label = "price"
primary = { name = "flats", file = "flats.csv", keys = ["lon", "lat"] }
secondaries = [
    { name = "hosts", file = "hosts.csv", keys = ["lon", "lat"] },
    { name = "shops", file = "shops.csv", keys = ["lon", "lat"] },
]

[method]
kind = "gbdt-solo"
trees = 60

[release]
kind = "surface"
area = [[0, 1], [0, 1]]
epsilon = 3.0
finest = 16
columns.hosts = { rent = [0, 4] }
"#;

/// Writes flats whose price is the mean rent of their place and their size, places of hosts with a rent that
/// varies by place, and shops. The prices vary by 1 through the place, and by 0.3 through the size.
pub(crate) fn places(folder: &Path, flats: usize) {
    let mut rng = stream(8, 0, Purpose::Parties, 0);
    let rent = |x: f64, y: f64| 2.0 + 1.4 * (7.0 * x).sin() * (5.0 * y).cos();
    let mut own = "lon,lat,size,price\n".to_string();
    for _ in 0..flats {
        let (x, y, size): (f64, f64, f64) = (rng.random(), rng.random(), rng.random());
        let _ = writeln!(own, "{x},{y},{size},{}", rent(x, y) + size);
    }
    let (mut hosts, mut shops) = ("lon,lat,rent\n".to_string(), "lon,lat,staff\n".to_string());
    for row in 0..6000 {
        let (x, y): (f64, f64) = (rng.random_range(-0.1..1.1), rng.random());
        let _ = writeln!(hosts, "{x},{y},{}", rent(x, y) + rng.random_range(-0.5..0.5));
        let _ = writeln!(shops, "{x},{y},{}", row % 9);
    }
    for (name, text) in [("flats.csv", own), ("hosts.csv", hosts), ("shops.csv", shops)] {
        write(folder, name, &text);
    }
    write(folder, "places.toml", EXPERIMENT);
}

fn run(folder: &Path, out: &str, sets: &[&str]) -> Output {
    command::run(folder, "places.toml", out, sets)
}

/// Returns the test error of a finished run.
fn error(folder: &Path, out: &str, sets: &[&str]) -> f64 {
    command::tested(folder, "places.toml", out, sets)
}

#[test]
fn a_release_gives_the_primary_columns_and_states_its_cost() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 400);
    let released = error(folder, "released", &[]);
    let noise = error(folder, "noise", &["release.noise_only=true"]);
    write(folder, "alone.toml", EXPERIMENT.split("[release]").next().expect("the rest"));
    let output = fet(folder, &["run", "alone.toml", "--out", "alone"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let alone = report(&folder.join("alone"));
    assert_eq!(alone.release, None);
    // 280 training rows for a field with several waves: the release knows it, the noise does not.
    assert!(released < 0.75 * alone.best.test, "{released} {}", alone.best.test);
    assert!(released < 0.75 * noise, "{released} {noise}");

    let found = report(&folder.join("released"));
    assert!(found.privacy.is_none() && found.secondaries == 0);
    let record = found.release.expect("a release");
    assert_eq!((record.neighbouring, record.randomness), (TableRelation::Record, Randomness::Experiment));
    let names: Vec<&str> = record.parties.iter().map(|party| party.party.as_str()).collect();
    assert_eq!(names, ["hosts", "shops"]);
    // 4² + 8² + 16² cells with a count, and a sum for hosts.
    assert_eq!(record.parties.iter().map(|party| party.values).collect::<Vec<_>>(), [672, 336]);
    for party in &record.parties {
        let exact = gaussian::epsilon(1.0 / party.noise_multiplier, 1e-5);
        let found = party.epsilon.expect("a bound");
        assert!(found <= 3.0 && found > 2.999 && found >= exact, "{found} {exact}");
    }
    // The sensitivity of hosts is √(4·3), and that of counts alone √(2·3).
    let ratio = record.parties[0].noise_of_count / record.parties[1].noise_of_count;
    assert!((ratio - 2f64.sqrt()).abs() < 1e-4, "{ratio}");
    let precision: f64 = record.parties.iter().map(|party| party.noise_multiplier.powi(-2)).sum();
    let both = gaussian::epsilon(precision.sqrt(), 1e-5);
    let found_both = record.epsilon_of_person.expect("a bound");
    assert!(found_both >= both && found_both < both + 1e-3, "{found_both} {both}");
    assert_eq!(record.epsilon_by_colluding.len(), 2);
    let most = record.parties.iter().filter_map(|party| party.epsilon).fold(0.0, f64::max);
    assert_eq!(record.epsilon_by_colluding, [most, most]);
    let twin = report(&folder.join("noise")).release.expect("a release");
    assert!(twin.noise_only && twin.parties.iter().all(|party| party.epsilon == Some(0.0)));
    let card = read(&folder.join("released"), "model-card.md");
    assert!(
        card.contains("\"hosts\" released 672 numbers once (`surface`): ε = 3.0000, δ = 0.00001"),
        "{card}"
    );
    assert!(card.contains("anyone who knows the seed can subtract it"), "{card}");
    assert!(card.contains("a person with one record in every table: ε = 4."), "{card}");
}

/// Every method on the primary's own columns takes the columns of the release.
#[test]
fn each_method_on_own_columns_takes_the_columns_of_a_release() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 400);
    for (out, sets) in [
        ("linear", &["method={kind='linear-solo'}"][..]),
        ("fet", &["method={kind='fet-alone', hidden=16, heads=2, agg_blocks=1}"]),
        ("pool", &["method={kind='fet-pool', others=false}"]),
        ("mixed", &["method={kind='with-trees', growth={trees=60}, inner={kind='solo'}}"]),
    ] {
        let with = error(folder, out, &[sets, &["train.epochs=10"]].concat());
        let noise = error(
            folder,
            &format!("{out}-noise"),
            &[sets, &["train.epochs=10", "release.noise_only=true"]].concat(),
        );
        assert!(with < 0.95 * noise, "{out}: {with} {noise}");
    }
}

/// The model of a run whose releases do not help is that of the primary alone, to the last bit.
#[test]
fn a_model_uses_releases_only_if_they_help_on_the_validation_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 400);
    write(folder, "alone.toml", EXPERIMENT.split("[release]").next().expect("the rest"));
    assert!(fet(folder, &["run", "alone.toml", "--out", "alone"]).status.success());
    let gate = |out: &str| report(&folder.join(out)).release.expect("a release").gate;
    error(folder, "released", &[]);
    let helps = gate("released").expect("a comparison");
    assert!(helps.used && helps.gain > 2.0 * helps.error, "{helps:?}");
    assert!((helps.gain - (helps.alone - helps.released)).abs() < 1e-12, "{helps:?}");
    let found = report(&folder.join("released"));
    assert_eq!(helps.alone, report(&folder.join("alone")).best.validation);
    assert_eq!(helps.released, found.best.validation);
    let noise = error(folder, "noise", &["release.noise_only=true"]);
    let fails = gate("noise").expect("a comparison");
    assert!(!fails.used && fails.gain <= fails.error, "{fails:?}");
    assert_eq!(
        read(&folder.join("noise"), "predictions.csv"),
        read(&folder.join("alone"), "predictions.csv")
    );
    let card = read(&folder.join("noise"), "model-card.md");
    assert!(card.contains("the model uses the primary's own columns alone"), "{card}");
    // The model without the columns predicts new rows, and needs no release for it.
    write(folder, "new.csv", "lon,lat,size\n0.5,0.5,0.5\n0.1,0.9,0.2\n");
    let predicted = |out: &str| {
        let output = fet(folder, &["predict", out, "--rows", "new.csv", "--out", "new-predictions.csv"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        read(folder, "new-predictions.csv")
    };
    assert_eq!(predicted("noise"), predicted("alone"));
    // Without the gate, the model uses the noise.
    let open = error(folder, "open", &["release.noise_only=true", "train.gate=false"]);
    assert!(gate("open").is_none() && open != noise, "{open} {noise}");
}

#[test]
fn a_release_is_made_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 300);
    let own = "train.randomness=own";
    let file = |out: &str, party: usize| read(folder, &format!("{out}/parties/party{party}/release.json"));
    error(folder, "first", &[own]);
    error(folder, "second", &[own]);
    assert_ne!(file("first", 1), file("second", 1), "secrets of the parties");
    // A run that begins again in a folder finds the release, whatever else it lost.
    let (hosts, shops) = (file("first", 1), file("first", 2));
    let predictions = read(folder, "first/predictions.csv");
    std::fs::remove_file(folder.join("first/report.json")).expect("there");
    error(folder, "first", &[own]);
    assert_eq!((file("first", 1), file("first", 2)), (hosts.clone(), shops));
    assert_eq!(read(folder, "first/predictions.csv"), predictions);
    // Other settings or another table would be another release.
    std::fs::remove_file(folder.join("first/report.json")).expect("there");
    let output = run(folder, "first", &[own, "release.epsilon=1.0"]);
    refused(&output, &["party1/release.json", "\"hosts\"", "other settings", "use another folder"]);
    let table = read(folder, "hosts.csv");
    write(folder, "hosts.csv", &table.replacen("\n", "\n0.5,0.5,1.0\n", 1));
    refused(&run(folder, "first", &[own]), &["party1/release.json", "another table"]);
    write(folder, "hosts.csv", &table);
    write(folder, "first/parties/party1/release.json", &hosts[..hosts.len() / 2]);
    refused(&run(folder, "first", &[own]), &["release.json", "is damaged"]);

    // With the experiment's seed a run repeats, and another table never gets the same noise.
    error(folder, "seeded", &[]);
    error(folder, "again", &[]);
    assert_eq!(file("seeded", 1), file("again", 1));
    write(folder, "hosts.csv", &table.replacen("\n", "\n0.5,0.5,1.0\n", 1));
    error(folder, "other", &[]);
    let values = |out: &str| -> Vec<i64> {
        let text: serde_json::Value = serde_json::from_str(&file(out, 1)).expect("JSON");
        let values = text["released"]["values"].as_array().expect("values");
        values.iter().map(|value| value.as_i64().expect("an integer")).collect()
    };
    let equal = values("seeded").iter().zip(values("other")).filter(|(one, other)| **one == *other).count();
    // With the same noise all except six of 672 values would be equal; without, one in some thousand is.
    assert!(equal < 20, "{equal}");
}

#[test]
fn predictions_need_no_table_of_a_secondary() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 300);
    error(folder, "run", &[]);
    let expected = table(folder, "run/predictions.csv");
    std::fs::remove_file(folder.join("hosts.csv")).expect("there");
    std::fs::remove_file(folder.join("shops.csv")).expect("there");
    let output = fet(folder, &["predict", "run", "--rows", "flats.csv", "--out", "new.csv"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("changed"), "{}", text(&output.stderr));
    let found = table(folder, "new.csv");
    let (rows, values) = (numbers(&expected, "row"), numbers(&expected, "prediction"));
    let all = numbers(&found, "prediction");
    assert!(!rows.is_empty());
    for (row, value) in rows.iter().zip(values) {
        assert!((all[*row as usize] - value).abs() < 1e-5, "{row}");
    }
}

#[test]
fn explanations_and_checks_know_the_columns_of_a_release() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 300);
    error(folder, "run", &[]);
    let output = fet(folder, &["explain", "run", "--repeats", "2"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("hosts: rent"), "{}", text(&output.stdout));
    let output = fet(folder, &["data", "check", "places.toml"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for part in
        ["secondary hosts", "A run would release:", "\"shops\" released 336 numbers once", "ε = 3.0000"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn refuses_releases_that_state_no_public_ranges_or_do_not_fit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    places(folder, 300);
    for (sets, parts) in [
        (&["release.area=[]"][..], &["`release.area`", "from public knowledge", "would reveal them"][..]),
        (&["release.area=[[0, 1], [1, 0]]"], &["`release.area`", "low below high"]),
        (&["release.area=[[0, 1]]"], &["`release.area`", "one range for each key column", "2 key columns"]),
        (&["release.area=[[0, 1], [0, 1], [0, 1]]"], &["`release.area`", "it has 3, and", "2 key columns"]),
        (
            &["release.area=[[0, 1], [0, 1], [0, 1]]", "release.finest=64"],
            &["`release.finest`", "at most 65536 cells"],
        ),
        (
            &["release.area=[[0,1],[0,1],[0,1],[0,1],[0,1],[0,1],[0,1],[0,1],[0,1]]"],
            &["`release.area`", "1 to 8 ranges"],
        ),
        (&["release.finest=48"], &["`release.finest`", "1, 2, 4, 8"]),
        (&["release.finest=1024"], &["`release.finest`", "at most 65536 cells"]),
        (&["release.epsilon=0"], &["`release.epsilon`", "at least 0.01"]),
        (&["release.delta=1"], &["`release.delta`", "at most 0.001"]),
        (&["release.neighbouring=replace"], &["`release.neighbouring`", "\"add-remove\""]),
        (&["release.columns={hosts={rent=[4, 0]}}"], &["`release.columns.hosts.rent`", "range [low, high]"]),
        (
            &["release.columns={host={rent=[0, 4]}}"],
            &["`release.columns`", "must name secondaries (hosts, shops)", "\"host\""],
        ),
        (
            &["release.columns={hosts={rents=[0, 4]}}"],
            &["`release.columns.hosts`", "lacks the column `rents`", "rent"],
        ),
        (&["release.kind=surfaces"], &["`release.kind`", "did you mean \"surface\""]),
        (
            &["method={kind='gbdt-pooled'}"],
            &["`method.kind`", "take no part in the training", "\"gbdt-pooled\""],
        ),
        (&["privacy.kind=discrete-gaussian"], &["`privacy.kind`", "its own noise"]),
        (&["attack.kind=gradient-norm"], &["`attack`", "without secondaries"]),
        (
            &["data={kind='split', source={kind='digits'}}", "release.columns={}"],
            &["`release.area`", "4 key columns"],
        ),
    ] {
        refused(&run(folder, "out", sets), parts);
        assert!(!folder.join("out").exists(), "{sets:?}");
    }
    // Rows of the primary outside the area are counted.
    write(folder, "places.toml", &EXPERIMENT.replace("[[0, 1], [0, 1]]", "[[0, 0.5], [0, 1]]"));
    let output = run(folder, "half", &[]);
    assert!(text(&output.stderr).contains("rows lie outside `release.area`"), "{}", text(&output.stderr));
}
