//! Tests the results of attacks on data with a known answer, with and without protection.

use std::sync::atomic::AtomicBool;

use fet_attacks::Environment;
use fet_core::attack::{Attack, AttackRecord};
use fet_core::data::{Task, VerticalData};
use fet_core::experiment::Experiment;
use fet_core::registry::Slot;

use crate::command::{TINY, fet};
use crate::errors::refuse;
use crate::labels::digits;
use crate::support::{experiment, flex, square};

/// Noise with an ε near 1 on frozen secondaries, which release every row once.
const PRIVATE: [&str; 4] = [
    "privacy.kind=discrete-gaussian",
    "privacy.learning=frozen",
    "privacy.target_epsilon=1",
    "privacy.delta=1e-3",
];

pub(crate) fn record(experiment: &Experiment, data: VerticalData, attack: &str) -> AttackRecord {
    let (machine, stop) = (fet::run::machine(&flex()), AtomicBool::new(false));
    let mut environment = Environment::new(experiment, data, &machine, &stop).expect("an environment");
    let table: toml::Table = attack.parse().expect("a table");
    fet_attacks::attack(&mut environment, &Slot::<dyn Attack>::from_table(table).expect("an attack"))
        .expect("a result")
}

fn leakage(sets: &[&str], task: Task, attack: &str) -> f64 {
    let record = record(&experiment(sets), square(400, task), attack);
    eprintln!("{sets:?}: {record:?}");
    record.leakage()
}

#[test]
fn features_leak_from_the_transcript_without_noise() {
    for model in ["ridge", "network"] {
        let attack = format!("kind = \"reconstruction\"\nmodel = \"{model}\"");
        let open = leakage(&["train.epochs=4"], Task::Regression, &attack);
        let private = leakage(&[&["train.epochs=1"], &PRIVATE[..]].concat(), Task::Regression, &attack);
        assert!(open > 0.5 && private < 0.2, "{model}: {open} {private}");
    }
}

/// The schedule sums different parties for the same row.
///
/// A primary that withholds gradients can solve for the attacked party's part, and reconstructs almost as
/// much as from visible parts. Sums over all parties have no such solution.
#[test]
fn secure_sums_over_different_parties_hide_no_features() {
    let sets = [
        "data.source.kind=digits",
        "data.parties=4",
        "method.dropout=0",
        "method.hidden=64",
        "train.epochs=8",
    ];
    let leakage = |more: &[&str]| {
        let experiment = experiment(&[&sets[..], more].concat());
        let found = record(&experiment, digits(&experiment), "kind = \"reconstruction\"");
        eprintln!("{more:?}: {found:?}");
        found.leakage()
    };
    let (secure, dropout) = ("aggregator.kind=secure-average", "method.party_dropout=0.4");
    let (open, summed, whole) =
        (leakage(&[dropout]), leakage(&[secure, dropout]), leakage(&[secure, "method.party_dropout=0"]));
    assert!(summed > 0.9 * open && whole < 0.8 * summed, "{open} {summed} {whole}");
}

/// The primary computes a secondary's gradients from its own columns and the other parties' blocks.
#[test]
fn gradients_reveal_other_parties_features_to_a_secondary() {
    for (target, least) in [(0, 0.1), (2, 0.1)] {
        let attack = format!("kind = \"gradient-reconstruction\"\ntarget = {target}");
        let found = leakage(&["train.epochs=4", "method.dropout=0"], Task::Regression, &attack);
        assert!(found > least, "{target}: {found}");
    }
    let frozen = leakage(&PRIVATE, Task::Regression, "kind = \"gradient-reconstruction\"");
    assert_eq!(frozen, 0.0, "no gradient was sent");
}

#[test]
fn membership_and_links_leak_without_noise() {
    let membership = "kind = \"membership\"\nshadows = 4\ntargets = 100";
    let open = leakage(&["train.epochs=1"], Task::Regression, membership);
    let private = leakage(&[&["train.epochs=1"], &PRIVATE[..]].concat(), Task::Regression, membership);
    // By chance, the AUC of 100 targets is 0.5 with a standard deviation of 0.058. A leakage of 0.5 is an AUC
    // of 0.75 (α < 1e-4).
    assert!(open > 0.8 && private < 0.5, "{open} {private}");
}

/// At ε = 3 (μ near 0.7), membership in digits cannot be predicted with an AUC above Φ(μ/√2) = 0.69.
///
/// Some 370 targets estimate the AUC with a standard deviation of 0.03. Shadow runs that shared the attacked
/// run's noise would reveal almost every target. Shadow runs with independent noise keep from the attacker
/// information that it could have.
#[test]
fn membership_attack_reaches_the_limit_of_the_noise() {
    let sets = [
        "data.parties=4",
        "data.bounds=[0.0, 16.0]",
        "data.source.kind=digits",
        "linker.neighbours=1",
        "method.party_dropout=0",
        "train.epochs=1",
        "aggregator.kind=secure-average",
        "privacy.kind=discrete-gaussian",
        "privacy.learning=frozen",
        "privacy.clip=30",
        "privacy.max_occurrences=1",
        "privacy.target_epsilon=3",
    ];
    let experiment = experiment(&sets);
    let found = record(&experiment, digits(&experiment), "kind = \"membership\"");
    eprintln!("{found:?}");
    assert!(found.measures[0].value < 0.69 + 4.0 * 0.03, "{found:?}");
}

/// If the primary depends on a secondary, the secondary can plant a backdoor: the model takes its trigger for
/// the class. The record also contains the baseline.
#[test]
fn a_backdoor_is_planted_by_a_secondary_that_the_model_relies_on() {
    let sets =
        ["data.source.kind=digits", "data.parties=2", "linker.neighbours=10", "method.party_dropout=0"];
    let model =
        ["method.hidden=64", "method.heads=4", "method.optimizer.learning_rate=0.005", "train.epochs=10"];
    let experiment = experiment(&[&sets[..], &model].concat());
    let found = record(&experiment, digits(&experiment), "kind = \"backdoor\"");
    eprintln!("{found:?}");
    assert!(found.measures[0].value > 0.25 && found.measures[0].baseline < 0.1, "{found:?}");
    assert!(found.measures[1].value > 0.8, "the accuracy on other rows is unchanged: {found:?}");
}

#[test]
fn labels_of_a_regression_leak_through_the_side_of_gradients() {
    let open = leakage(&["train.epochs=1", "method.dropout=0"], Task::Regression, "kind = \"gradient-sign\"");
    assert!(open > 0.5, "{open}");
    let frozen = leakage(&PRIVATE, Task::Regression, "kind = \"gradient-sign\"");
    assert_eq!(frozen, 0.0, "no gradient was sent");
}

/// `fet run` with an attack keeps the run's results, and the report contains the attack's result.
#[test]
fn runs_the_attack_of_the_experiment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let run = |out: &str, sets: &[&str]| -> fet_eval::records::Report {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = ["run", "tiny.toml", "--out", out].into_iter().chain(sets).collect();
        let output = fet(folder.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        let report = std::fs::read(folder.path().join(out).join("report.json")).expect("a report");
        serde_json::from_slice(&report).expect("a report")
    };
    let (open, attacked) = (run("open", &[]), run("attacked", &["attack.kind=gradient-clustering"]));
    assert_eq!(open.epochs, attacked.epochs);
    assert_eq!(open.attack, None);
    let found = attacked.attack.expect("an attack");
    assert_eq!((found.attack.as_str(), found.party, found.runs), ("gradient-clustering", 1, 1));
    let words = fet(folder.path(), &["attack", "tiny.toml", "--attack", "gradient-clustering"]);
    let words = [words.stdout, words.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(
        words[0].starts_with("gradient-clustering: what secondary 1 learns about the training labels\n"),
        "{}",
        words[0]
    );
    assert!(words[0].lines().all(|line| line.chars().count() <= 80), "{}", words[0]);
    assert!(words[0].contains(&format!("{:.4}", found.measures[0].value)), "{}", words[0]);
    assert!(words[1].contains("attack 1/1  gradient-clustering  1 run, "), "{}", words[1]);
    let output = fet(folder.path(), &["attack", "tiny.toml", "--attack", "gradient-clustering", "--json"]);
    let told: AttackRecord = serde_json::from_slice(&output.stdout).expect("a record");
    assert_eq!(told, found);
    let check = |sets: &[&str], parts: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        refuse(folder.path(), "tiny.toml", &sets, parts);
    };
    check(&["attack.kind=gradient-clusters"], &["attack.kind", "did you mean \"gradient-clustering\""]);
    check(
        &["attack.kind=reconstruction", "attack.known=1"],
        &["attack", "known", "at least 0.05 and at most 0.95", "it is 1"],
    );
    check(
        &["attack.kind=reconstruction", "method.kind=solo", "method.hidden=[4]"],
        &["attack", "without secondaries"],
    );
}
