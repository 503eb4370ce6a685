//! Tests of the release `record-code` with the command itself: symbols, account, predictions and refusals.

use std::fmt::Write;
use std::path::Path;
use std::process::Output;

use fet_core::rng::{ChaCha8Rng, Purpose, stream};
use fet_eval::records::TableRelation;
use fet_privacy::accountant::gaussian;
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::command::{self, fet, read, refused, text, write};
use crate::own_data::{numbers, table};
use crate::support::report;

pub(crate) const EXPERIMENT: &str = r#"
name = "codes"
seed = 4

[train]
epochs = 3
batch_size = 64

[data]
kind = "linked"
task = "multiclass"
label = "state"
primary = { name = "clinic", file = "patients.csv", keys = ["time"] }
secondaries = [{ name = "laboratory", file = "laboratory.csv", keys = ["time"] }]

[linker]
kind = "nearest"
neighbours = 1

[method]
kind = "gbdt-solo"
trees = 60

[release]
kind = "record-code"
epsilon = 4.0
columns.laboratory = { a = [-1, 1], b = [-1, 1] }
"#;

/// Writes patients of three states, with a column that says little about them, and the laboratory's records with two columns
/// that separate the states.
pub(crate) fn tables(folder: &Path, rows: usize) {
    let mut rng = stream(8, 0, Purpose::Parties, 0);
    let mut own = "time,age,state\n".to_string();
    let mut theirs = Vec::new();
    for row in 0..rows {
        let state = rng.random_range(0..3usize);
        let age = 50.0 + 3.0 * state as f64 + rng.random_range(-20.0..20.0);
        let _ = writeln!(own, "{row},{age},{}", ["ill", "unsure", "well"][state]);
        let [a, b] = [[0.7, 0.0], [-0.4, 0.6], [-0.4, -0.6]][state];
        let near = |middle: f64, rng: &mut ChaCha8Rng| middle + rng.random_range(-0.3..0.3);
        let (a, b) = (near(a, &mut rng), near(b, &mut rng));
        theirs.push(format!("{},{a},{b},x{row}\n", row as f64 + rng.random_range(-0.2..0.2)));
    }
    theirs.shuffle(&mut rng);
    write(folder, "patients.csv", &own);
    write(folder, "laboratory.csv", &format!("time,a,b,note\n{}", theirs.concat()));
    write(folder, "codes.toml", EXPERIMENT);
}

fn run(folder: &Path, out: &str, sets: &[&str]) -> Output {
    command::run(folder, "codes.toml", out, sets)
}

/// Returns the test accuracy of a finished run.
fn accuracy(folder: &Path, out: &str, sets: &[&str]) -> f64 {
    command::tested(folder, "codes.toml", out, sets)
}

#[test]
fn symbols_tell_the_primary_what_the_records_say_and_state_their_cost() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 900);
    let released = accuracy(folder, "released", &[]);
    let noise = accuracy(folder, "noise", &["release.noise_only=true"]);
    write(folder, "alone.toml", EXPERIMENT.split("[release]").next().expect("the rest"));
    let output = fet(folder, &["run", "alone.toml", "--out", "alone"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let alone = report(&folder.join("alone")).best.test;
    assert!(released > alone + 0.25 && released > noise + 0.25, "{released} {alone} {noise}");

    let record = report(&folder.join("released")).release.expect("a release");
    assert_eq!(record.neighbouring, TableRelation::AddRemove);
    let party = &record.parties[0];
    let code = party.code.expect("a code");
    let epsilon = party.epsilon.expect("a bound");
    assert!(epsilon <= 4.0 && epsilon > 3.999, "{epsilon}");
    assert!(code.symbols == 3 && code.truth > 0.9 && (code.epsilon - 3.2).abs() < 1e-3, "{code:?}");
    // The sums differ by 1 for an added record, and by 2·√(2/3) for replaced columns; the symbols by ln(p·2/(1 − p)).
    let replaced = gaussian::epsilon(2.0 * (2f64 / 3.0).sqrt() / party.noise_multiplier, 1e-5)
        + (code.truth * 2.0 / (1.0 - code.truth)).ln();
    let found = code.epsilon_of_columns;
    assert!(found >= replaced && found < replaced + 1e-3, "{found} {replaced}");
    assert!(epsilon < found);
    let card = read(&folder.join("released"), "model-card.md");
    for part in [
        "\"laboratory\" released 900 numbers once (`record-code`): ε = 4.0000, δ = 0.00001; a symbol of 3 is true with a \
         probability of 0.97",
        "Each secondary learned the primary's keys, and the labels of the training rows without protection.",
        "the columns of a record that is known to be in a table: ε = ",
    ] {
        assert!(card.contains(part), "{part} in {card}");
    }
    for wrong in ["No data left the primary", "no data left it"] {
        assert!(!card.contains(wrong) && !read(&folder.join("released"), "report.html").contains(wrong));
    }
}

/// Labels at ε = 3 still separate the states; the model itself trains on the true labels, and without the release equals a run
/// without protection.
#[test]
fn symbols_follow_from_randomised_labels() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 900);
    let protected = "labels={kind='randomised-response', epsilon=3}";
    let released = accuracy(folder, "released", &[protected]);
    let noise = accuracy(folder, "noise", &[protected, "release.noise_only=true"]);
    let open = accuracy(folder, "open", &["release.noise_only=true"]);
    assert!(released > noise + 0.2, "{released} {noise}");
    assert_eq!(noise, open, "the gate leaves the primary's own model");
    let found = report(&folder.join("released"));
    assert_eq!(found.labels.and_then(|labels| labels.epsilon.map(f64::round)), Some(3.0));
    let card = read(&folder.join("released"), "model-card.md");
    for part in [
        "a randomised label of each training row (ε = 3.0000;",
        "NOT COVERED: the primary's model, scores and warnings",
    ] {
        assert!(card.contains(part), "{part} in {card}");
    }
    assert!(!card.contains("without protection"), "{card}");
    assert_eq!(report(&folder.join("open")).labels, None);
    assert_eq!(accuracy(folder, "again", &[protected]), released);
    // A run that lost its report repeats the labels: other labels would not fit the release in the secondary's folder.
    let own = [protected, "train.randomness=own"];
    let first = accuracy(folder, "own", &own);
    let released = read(folder, "own/parties/party1/release.json");
    std::fs::remove_file(folder.join("own/report.json")).expect("removed");
    assert_eq!(accuracy(folder, "own", &own), first);
    assert_eq!(read(folder, "own/parties/party1/release.json"), released);
}

/// Answers at ε = 0.1 are nearly uniform. The age tells the state, so that only a model of the true labels predicts it.
#[test]
fn a_run_with_a_release_trains_on_the_true_labels() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 900);
    let patients = read(folder, "patients.csv");
    let known = |line: &str| {
        let (time, rest) = line.split_once(',').expect("a time");
        let state = rest.rsplit(',').next().expect("a state");
        match ["ill", "unsure", "well"].iter().position(|known| *known == state) {
            Some(place) => format!("{time},{},{state}\n", 30 * (place + 1)),
            None => format!("{line}\n"),
        }
    };
    write(folder, "patients.csv", &patients.lines().map(known).collect::<String>());
    let sets =
        ["labels={kind='randomised-response', epsilon=0.1}", "release.noise_only=true", "train.gate=false"];
    let trained = accuracy(folder, "trained", &sets);
    assert!(trained > 0.98, "{trained}");
}

/// The bins of a regression are the symbols.
#[test]
fn labels_of_a_regression_become_bins() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 900);
    let patients = read(folder, "patients.csv");
    let number = |line: &str| line.replace("ill", "10").replace("unsure", "20.5").replace("well", "40");
    write(folder, "patients.csv", &patients.lines().map(|line| number(line) + "\n").collect::<String>());
    let sets = ["data.task=regression", "release.epsilon=8"];
    let released = accuracy(folder, "released", &sets);
    let noise = accuracy(folder, "noise", &[&sets[..], &["release.noise_only=true"]].concat());
    assert!(released < 0.7 * noise, "{released} {noise}");
    let record = report(&folder.join("released")).release.expect("a release");
    // Three different labels have two edges.
    assert_eq!(record.parties[0].code.expect("a code").symbols, 3);
    write(folder, "patients.csv", &patients.replace("ill", "7").replace("unsure", "7").replace("well", "7"));
    refused(&run(folder, "out", &sets), &["labels", "at least two different values"]);
}

#[test]
fn predictions_cover_the_rows_of_the_run_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 400);
    // A second row with the key of the first one has its symbol.
    let patients = read(folder, "patients.csv") + "0,55,well\n";
    write(folder, "patients.csv", &patients);
    accuracy(folder, "run", &["train.randomness=own"]);
    let kept = read(folder, "run/parties/party1/release.json");
    let kept: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    // Columns, symbols, and a digest and a symbol for each of 400 keys.
    assert_eq!(kept["released"]["values"].as_array().expect("values").len(), 2 + 2 * 400);
    let expected = table(folder, "run/predictions.csv");
    std::fs::remove_file(folder.join("laboratory.csv")).expect("there");
    // The rows may come in another order and number.
    let mut lines: Vec<&str> = patients.lines().collect();
    lines[1..].reverse();
    lines.truncate(300);
    write(folder, "some.csv", &(lines.join("\n") + "\n"));
    let output = fet(folder, &["predict", "run", "--rows", "some.csv", "--out", "new.csv"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = numbers(&table(folder, "new.csv"), "probability of ill");
    let rows = numbers(&expected, "row").into_iter().zip(numbers(&expected, "probability of ill"));
    let mut compared = 0;
    for (row, value) in rows {
        if let Some(found) = found.get(400 - row as usize) {
            assert!((found - value).abs() < 1e-5, "{row}");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
    write(folder, "some.csv", "time,age,state\n3,50,ill\n1000.5,50,ill\n");
    let output = fet(folder, &["predict", "run", "--rows", "some.csv", "--out", "other.csv"]);
    refused(&output, &["release of laboratory", "no symbol for 1 of 2 records", "row 1", "another release"]);
    assert!(!folder.join("other.csv").exists());
}

/// Labels of validation and test rows stay with the primary: other labels there give the same release.
#[test]
fn secondaries_learn_the_labels_of_training_rows_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 300);
    accuracy(folder, "run", &[]);
    let evaluated = numbers(&table(folder, "run/predictions.csv"), "row");
    let kept = |out: &str| read(folder, &format!("{out}/parties/party1/release.json"));
    let patients = read(folder, "patients.csv");
    let turned = |of_evaluated: bool| -> String {
        let line = |(number, line): (usize, &str)| {
            let is_turned = number > 0 && evaluated.contains(&(number as f64 - 1.0)) == of_evaluated;
            let line = if is_turned { line.replace("ill", "well") } else { line.to_string() };
            line + "\n"
        };
        patients.lines().enumerate().map(line).collect()
    };
    write(folder, "patients.csv", &turned(true));
    accuracy(folder, "evaluated", &[]);
    assert_eq!(kept("evaluated"), kept("run"));
    write(folder, "patients.csv", &turned(false));
    accuracy(folder, "training", &[]);
    assert_ne!(kept("training"), kept("run"));
}

#[test]
fn symbols_are_drawn_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 300);
    let own = "train.randomness=own";
    accuracy(folder, "run", &[own]);
    let file = || read(folder, "run/parties/party1/release.json");
    let kept = file();
    let again = || std::fs::remove_file(folder.join("run/report.json")).expect("there");
    again();
    accuracy(folder, "run", &[own]);
    assert_eq!(file(), kept);
    // Further keys, or labels of other rows, would be another release.
    again();
    let patients = read(folder, "patients.csv");
    write(folder, "patients.csv", &(patients.clone() + "1000,50,ill\n"));
    refused(&run(folder, "run", &[own]), &["party1/release.json", "rows of the primary"]);
    write(folder, "patients.csv", &patients);
    refused(&run(folder, "run", &[own, "split.test=0.3"]), &["party1/release.json", "rows of the primary"]);
    // A damaged release is refused, and never made again.
    let mut damaged: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    for values in [vec![], vec![2, 3], vec![-1, 3], vec![2, 1_i64 << 40, 5, 1]] {
        damaged["released"]["values"] = values.into();
        write(folder, "run/parties/party1/release.json", &damaged.to_string());
        refused(&run(folder, "run", &[own]), &["party1/release.json", "is damaged"]);
    }
    write(folder, "run/parties/party1/release.json", &kept);
    assert_eq!(file(), kept);
}

/// Warnings go to the user's terminal, and not into the report, because they follow from records without noise.
#[test]
fn warns_of_releases_that_say_little() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 300);
    let laboratory = read(folder, "laboratory.csv");
    let records = laboratory.split_once('\n').expect("a head").1;
    let cases: [(&str, String, &[&str]); 5] = [
        ("fine", laboratory.clone(), &[]),
        (
            "twice",
            laboratory.clone() + records,
            &["0 of the primary's 300 keys have exactly one record", "300 have several"],
        ),
        ("clipped", laboratory.clone(), &["column `a`", "outside [2, 3] and count as its ends"]),
        ("narrow", laboratory.clone(), &["column `b`", "the values cover 0 % of [-1000, 1000]"]),
        (
            "missing",
            "time,a,b,note\n1,0.5,,x\n2,,,x\n3,0.1,0.2,x\n".to_string(),
            &["% of the values are missing"],
        ),
    ];
    for (name, table, parts) in cases {
        write(folder, "laboratory.csv", &table);
        let ranges = match name {
            "clipped" => "release.columns={laboratory={a=[2, 3], b=[-1, 1]}}",
            "narrow" => "release.columns={laboratory={a=[-1, 1], b=[-1000, 1000]}}",
            _ => "release.epsilon=4.0",
        };
        for command in ["run", "data"] {
            let out = format!("out-{name}");
            let arguments: &[&str] = match command {
                "run" => &["run", "codes.toml", "--out", &out, "--set", ranges],
                _ => &["data", "check", "codes.toml", "--set", ranges],
            };
            let output = fet(folder, arguments);
            assert!(output.status.success(), "{}", text(&output.stderr));
            let warned = text(&output.stderr);
            assert!(parts.iter().all(|part| warned.contains(part)), "{name} {command}: {warned}");
            assert_eq!(
                warned.contains("warning: laboratory: "),
                !parts.is_empty(),
                "{name} {command}: {warned}"
            );
        }
        let report = read(folder, &format!("out-{name}/report.json"));
        assert!(!report.contains("exactly one record") && !report.contains("of the values"), "{name}");
    }
}

#[test]
fn refuses_codes_without_public_ranges_or_independent_links() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 300);
    for (sets, parts) in [
        (&["release.columns={}"][..], &["`release.columns`", "from public knowledge"][..]),
        (
            &["release.columns={laboratory={a=[1, -1]}}"],
            &["`release.columns.laboratory.a`", "range [low, high]"],
        ),
        (
            &["release.columns={lab={a=[-1, 1]}}"],
            &["`release.columns`", "must name secondaries (laboratory)", "\"lab\""],
        ),
        (
            &["release.columns={laboratory={c=[-1, 1]}}"],
            &["`release.columns.laboratory`", "lacks the column `c`"],
        ),
        (
            &["release.columns={laboratory={note=[-1, 1]}}"],
            &["`release.columns.laboratory`", "columns of numbers", "`note`"],
        ),
        (&["release.epsilon=0"], &["`release.epsilon`", "at least 0.01"]),
        (&["release.means_share=1"], &["`release.means_share`", "below 1"]),
        (
            &["labels={kind='randomised-response', prior=[0.2, 0.3, 0.5]}"],
            &["`labels.kind`", "\"randomised-response\" without `prior`"],
        ),
        (&["labels.kind=noisy-gradients"], &["`labels.kind`", "as classes"]),
        (
            &["labels.kind=randomised-response", "split.kind=stratified"],
            &["`split.kind`", "would reveal labels", "stratified"],
        ),
        (
            &["labels.kind=randomised-response", "split.kind=group", "split.column=state"],
            &["`split.kind`", "would reveal labels", "group"],
        ),
        (&["linker.neighbours=2"], &["`linker.neighbours`", "must be 1"]),
        (
            &["linker={kind='posterior', inner={kind='nearest', neighbours=5}}"],
            &["`linker.kind`", "without any other record", "\"posterior\""],
        ),
        (&["linker={kind='aligned'}"], &["`linker.kind`", "\"aligned\""]),
        (&["method={kind='fet'}"], &["`method.kind`", "take no part in the training"]),
        (
            &["data={kind='split', source={kind='digits'}}", "release.columns={'*'={a=[0, 16]}}"],
            &["`release.columns.party 1`", "the columns of this dataset are unnamed"],
        ),
    ] {
        refused(&run(folder, "out", sets), parts);
        assert!(!folder.join("out").exists(), "{sets:?}");
    }
}

/// An attack observes a training, and a table of mechanisms has no release.
#[test]
fn attacks_and_a_table_of_mechanisms_point_to_the_audit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    tables(folder, 60);
    refused(
        &fet(folder, &["attack", "codes.toml", "--attack", "membership"]),
        &["`fet audit` attacks the release"],
    );
    refused(
        &fet(folder, &["audit", "codes.toml", "--table"]),
        &["--table", "\"record-code\"", "Leave out --table"],
    );
}

/// All columns of a table without names, with one range for all parties.
#[test]
fn unnamed_columns_have_one_range() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    write(folder, "codes.toml", EXPERIMENT);
    let digits = "data={kind='split', source={kind='digits'}, key_noise=0.0, rows=600}";
    let linear = "method={kind='linear-solo'}";
    let sets = [digits, "release.columns={'*'={'*'=[0, 16]}}", "release.epsilon=8", linear];
    let released = accuracy(folder, "released", &sets);
    let noise = accuracy(folder, "noise", &[&sets[..], &["release.noise_only=true"]].concat());
    assert!(released > noise + 0.03, "{released} {noise}");
    assert_eq!(report(&folder.join("released")).release.expect("a release").parties.len(), 3);
}
