//! Tests SplitAvg as a whole: secure aggregation trains like plain sums, parties may drop out, and the run
//! reports its privacy cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fet_core::data::{Task, VerticalData};
use fet_core::party::Party;
use fet_core::privacy::Spent;
use fet_federation::trainer::Trainer;
use serde_json::Value;

use crate::command::{TINY, fet};
use crate::errors::refuse;
use crate::support::{
    devices, experiment, flex, losses, model, open, report, square, trainer, vanishing_party, watched,
    with_copies,
};

/// Returns `square` with a third secondary, a copy of the first.
fn three(rows: usize) -> VerticalData {
    with_copies(square(rows, Task::Regression), &["third"])
}

/// Range of the digits' pixels, which is public knowledge.
const PIXELS: &str = "data.bounds=[0, 16]";

fn on_three(sets: &[&str]) -> Trainer {
    trainer(&experiment(sets), three(200), &flex()).expect("a trainer")
}

const SECURE: &str = "aggregator.kind=secure-average";

/// A few steps amplify the quantisation to 2^-24 only slightly.
#[test]
fn secure_sums_train_like_plain_sums() {
    for sets in [&[][..], &["method.party_dropout=0.34"], &["train.recompute=true"]] {
        let plain = losses(&mut on_three(sets));
        let secret = losses(&mut on_three(&[sets, &[SECURE]].concat()));
        assert!(plain.len() >= 4 && plain.len() == secret.len());
        for (a, b) in plain.iter().zip(&secret) {
            assert!((a - b).abs() < 1e-5 * a, "{sets:?}: {plain:?} and {secret:?}");
        }
    }
}

#[test]
fn averages_encodings_with_secure_sums() {
    let average = |sets: &[&str]| {
        let experiment = experiment(&[&["method.pe_average_every=1"], sets].concat());
        let (mut trainer, parties) = open(&experiment, three(200), &flex());
        losses(&mut trainer);
        let all = model(&trainer, &parties);
        let name = |party: &str| format!("{party}.embedding.position.frequencies");
        let own = all.get(&name("primary")).expect("a parameter").to_vec();
        assert_eq!(Some(own.as_slice()), all.get(&name("party3")));
        own
    };
    let (plain, secret) = (average(&[]), average(&[SECURE]));
    let largest = plain.iter().fold(0.0f32, |m, x| m.max(x.abs()));
    assert!(plain.iter().zip(&secret).all(|(a, b)| (a - b).abs() < 1e-5 * largest), "{plain:?} {secret:?}");
}

#[test]
fn run_skips_a_lost_party_and_ends_with_too_few() {
    // First step at which each of three parties has dropped out.
    let vanishing = |sets: &[&str]| {
        let from: [Arc<AtomicU64>; 3] = std::array::from_fn(|_| Arc::new(AtomicU64::new(u64::MAX)));
        let wrap =
            |index: usize, party| -> Box<dyn Party> { vanishing_party(party, Arc::clone(&from[index])) };
        let (trainer, _) = watched(&experiment(sets), three(200), &flex(), wrap).expect("a trainer");
        (trainer, from)
    };
    let (mut trainer, from) = vanishing(&[SECURE]);
    from[1].store(2, Ordering::Relaxed);
    let found = losses(&mut trainer);
    assert!(found.len() >= 4 && found.iter().all(|loss| loss.is_finite()));
    let tally = &trainer.releases().tallies[0];
    assert_eq!(tally.fewest(), Some(2), "the account knows that fewer take part");
    assert_eq!(trainer.federation().dropped(), [1]);
    // After a second party drops out, one party remains, and a sum over one party is its value.
    from[0].store(0, Ordering::Relaxed);
    let error = trainer.epoch(&mut |_| true).expect_err("refused").to_string();
    assert!(error.contains("at least 2 parties") && error.contains("1 of 1"), "{error}");
    let said = trainer.warnings().join("\n");
    assert!(said.contains("1 of 2 are left") && said.contains("steps are left out"), "{said}");
    // If no sum hides the parts, the run must not leave out a party silently.
    let (mut trainer, from) = vanishing(&[]);
    from[1].store(2, Ordering::Relaxed);
    let error = trainer.epoch(&mut |_| true).expect_err("refused").to_string();
    for part in ["party \"second\"", "Forward", "training step 3", "no longer answers"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

const PRIVATE: [&str; 3] = [SECURE, "privacy.kind=discrete-gaussian", "train.epochs=3"];

fn spent(sets: &[&str], epochs: usize) -> Spent {
    let mut trainer = on_three(&[&PRIVATE, sets].concat());
    for _ in 0..epochs {
        losses(&mut trainer);
    }
    trainer.spent().expect("others take part")
}

#[test]
fn derived_noise_meets_the_target() {
    for sets in [
        &["privacy.target_epsilon=3"][..],
        &["privacy.target_epsilon=20", "privacy.neighbouring=record"],
        &["privacy.target_epsilon=0.5", "privacy.neighbouring=record"],
        &["privacy.target_epsilon=8", "privacy.learning=frozen", "privacy.max_occurrences=2"],
        &[
            "privacy.target_epsilon=2",
            "privacy.learning=assumed",
            "privacy.max_occurrences=1",
            "privacy.neighbouring=add-remove",
            "privacy.sample_rate=0.2",
            "privacy.amplification=true",
            "train.batches=poisson",
        ],
    ] {
        let spent = spent(sets, 3);
        let target: f64 =
            sets[0].split_once('=').and_then(|(_, target)| target.parse().ok()).expect("a number");
        let (found, guarantee) = (spent.epsilon.expect("bounded"), spent.guarantee.expect("private"));
        assert!(found <= target && found > 0.999 * target, "{sets:?}: {found}");
        assert_eq!(guarantee.epsilon_by_epoch.last(), Some(&found), "{sets:?}");
        assert!(guarantee.epsilon_by_rdp >= found, "{sets:?}");
        assert!(spent.statement.contains("not protected"), "{}", spent.statement);
        assert_eq!(spent.statement.contains("NOT COUNTED"), sets.contains(&"privacy.learning=assumed"));
    }
}

/// Frozen secondaries release every row once: more epochs cost no more, and the secondaries do not change.
#[test]
fn frozen_secondaries_release_every_row_once() {
    let sets = [
        "privacy.learning=frozen",
        "privacy.max_occurrences=2",
        "privacy.neighbouring=record",
        "privacy.noise=1",
    ];
    let (mut trainer, parties) = open(&experiment(&[&PRIVATE[..], &sets].concat()), three(200), &flex());
    let before = model(&trainer, &parties);
    losses(&mut trainer);
    let after_one = trainer.spent().and_then(|spent| spent.epsilon).expect("bounded");
    losses(&mut trainer);
    assert_eq!(trainer.spent().and_then(|spent| spent.epsilon), Some(after_one));
    assert_eq!(trainer.releases().requests, 1);
    let after = model(&trainer, &parties);
    assert_eq!(before.part("party1.").values(), after.part("party1.").values());
    assert_ne!(before.part("primary.").values(), after.part("primary.").values());
    // One release moves √4 rows by 2C/3 under noise of C: a replaced record leaves two rows and joins two.
    let mu = 4f64.sqrt() * 2.0 / 3.0;
    let truth = fet_privacy::accountant::gaussian::epsilon(mu, 1e-5);
    assert!(after_one >= truth && after_one < truth + 1e-3, "{after_one} and {truth}");
}

/// The host draws noise and masks, so devices agree, except for values that round to different units.
#[test]
fn private_training_is_equal_on_every_device() {
    for kind in ["privacy.kind=gaussian", "privacy.kind=discrete-gaussian"] {
        let experiment = experiment(&[SECURE, kind, "privacy.noise=0.05"]);
        let runs: Vec<_> = devices()
            .iter()
            .map(|backend| {
                let mut trainer = trainer(&experiment, three(300), backend).expect("a trainer");
                (backend.name.clone(), losses(&mut trainer))
            })
            .collect();
        let (base, expected) = &runs[0];
        for (name, found) in &runs[1..] {
            let worst = expected.iter().zip(found).map(|(a, b)| (a - b).abs() / a).fold(0.0, f64::max);
            assert!(worst < 1e-4, "{kind}: {name} differs from {base} by {worst:.1e}");
        }
    }
}

#[test]
fn private_runs_repeat_and_resume_and_report() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let run = |out: &str| {
        let sets = [SECURE, "privacy.kind=discrete-gaussian", "privacy.target_epsilon=8", PIXELS];
        let sets = sets.map(|set| ["--set", set]).concat();
        let output = fet(folder.path(), &[&["run", "tiny.toml", "--out", out], sets.as_slice()].concat());
        assert!(output.status.success(), "{output:?}");
        report(&folder.path().join(out))
    };
    let (a, b) = (run("a"), run("b"));
    assert_eq!(a, b);
    let privacy = a.privacy.expect("a privacy loss");
    let epsilon = privacy.epsilon.expect("a bound");
    assert!(epsilon <= 8.0 && epsilon > 7.99, "{privacy:?}");
    assert_eq!(privacy.delta, 1e-5);
    let guarantee = privacy.guarantee.expect("a guarantee");
    assert_eq!((guarantee.mechanism.as_str(), guarantee.epsilon_by_epoch.len()), ("discrete-gaussian", 2));
    assert!(guarantee.assumptions.len() >= 5, "{guarantee:?}");
}

#[test]
fn refuses_wrong_use() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("tiny.toml"), TINY).expect("writable");
    let check = |sets: &[&str], parts: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        refuse(folder.path(), "tiny.toml", &sets, parts);
    };
    let noise = "privacy.kind=discrete-gaussian";
    check(
        &[noise],
        &["the features of \"party 1\"", "declared ranges", "`bounds` in `data`", "\"discrete-gaussian\""],
    );
    check(&["data.bounds=[16, 0]"], &["`data.bounds` must be a range [low, high]"]);
    check(&[noise, "privacy.delta=1"], &["privacy", "delta", "below 1", "it is 1"]);
    check(&[noise, "privacy.delta=0"], &["privacy", "delta", "above 0", "it is 0"]);
    check(&[noise, "privacy.clip=0"], &["privacy", "clip", "at least 0.000001", "it is 0"]);
    check(&[noise, "privacy.noise=-1"], &["privacy", "noise", "it is -1"]);
    check(&[noise, "privacy.sample_rate=0"], &["privacy", "sample_rate", "above 0"]);
    check(&[noise, "privacy.target_epsilon=-1"], &["privacy", "target_epsilon", "it is -1"]);
    check(&[SECURE, "aggregator.bits=64"], &["aggregator", "bits", "at least 8 and at most 32", "it is 64"]);
    check(&[SECURE, noise, "aggregator.bits=12"], &["aggregator.bits", "need", "bits", "it is 12"]);
    check(&[SECURE, "aggregator.bits=8", "aggregator.range=1000"], &["aggregator.bits", "need", "it is 8"]);
    check(&[SECURE, "data.parties=2"], &["aggregator.kind", "at least two secondaries", "1 of 1"]);
    check(&[SECURE, "method.party_dropout=0.5"], &["aggregator.kind", "at least two secondaries", "1 of 2"]);
    check(
        &[SECURE, noise, "privacy.colluding=2"],
        &["aggregator.degree", "privacy.colluding", "2 parties take part"],
    );
    check(&[noise, "privacy.colluding=2"], &["privacy.colluding", "honest party", "it is 2"]);
    let many = ["data.parties=8", "aggregator.degree=2", "privacy.colluding=3"];
    check(
        &[&[SECURE, noise], many.as_slice()].concat(),
        &["aggregator.degree", "privacy.colluding", "it is 2"],
    );
    let claim = ["privacy.sample_rate=0.5", "privacy.amplification=true"];
    let claimed = |more: &[&str], parts: &[&str]| check(&[&[noise], claim.as_slice(), more].concat(), parts);
    claimed(&[], &["amplification", "counted", "it is true"]);
    claimed(&["privacy.learning=assumed"], &["amplification", "add-remove"]);
    for learning in ["privacy.learning=assumed", "privacy.learning=frozen"] {
        claimed(&[learning, "privacy.neighbouring=record"], &["amplification", "add-remove", "it is true"]);
        claimed(&[learning, "privacy.neighbouring=replace"], &["amplification", "add-remove", "it is true"]);
    }
    let sound = ["privacy.learning=assumed", "privacy.neighbouring=add-remove"];
    claimed(&sound, &["train.batches", "\"poisson\"", "amplification", "it is \"shuffled\""]);
    check(&[noise, "privacy.max_occurrences=1"], &["max_occurrences", "counted", "it is 1"]);
    let limited = [noise, "privacy.learning=frozen", "privacy.max_occurrences=9"];
    check(&limited, &["privacy.max_occurrences", "linker.neighbours", "4", "it is 9"]);
    let random = [noise, "privacy.learning=frozen", "privacy.max_occurrences=1", "linker.kind=random"];
    check(&random, &["linker.kind", "not depend on other records", "\"random\""]);
    let sealed = [noise, "privacy.sample_rate=0.5", "linker.kind=random"];
    check(&sealed, &["linker.kind", "in the clear", "privacy.sample_rate"]);
    check(&[noise, "method.pe_average_every=1"], &["pe_average_every", "carry no noise", "it is 1"]);
    check(
        &[noise, "aggregator.kind=similarity-weighted"],
        &["privacy.kind", "similarities", noise.rsplit('=').next().expect("a kind")],
    );
    let frozen = [noise, "privacy.learning=frozen", "method.party_dropout=0.5"];
    check(&frozen, &["method.party_dropout", "frozen", "0.5"]);
}

#[test]
fn prints_the_account() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ask = |arguments: &[&str]| {
        let output = fet(folder.path(), &[&["account"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let base = ["--rate", "0.01", "--steps", "1e3", "--delta", "1e-5"];
    let json: Value =
        serde_json::from_str(&ask(&[&["--noise", "1", "--json"], base.as_slice()].concat())).expect("JSON");
    assert!((json["epsilon"]["pld"].as_f64().expect("a number") - 1.828244).abs() < 1e-3, "{json}");
    assert!((json["epsilon"]["rdp"].as_f64().expect("a number") / 2.101367 - 1.0).abs() < 0.01, "{json}");
    assert!(json["epsilon"]["exact"].is_null(), "{json}");
    let solved: Value =
        serde_json::from_str(&ask(&["--epsilon", "3", "--delta", "1e-5", "--json"])).expect("JSON");
    assert!((solved["noise"].as_f64().expect("a number") - 1.39059).abs() < 1e-5, "{solved}");
    assert!(ask(&["--noise", "1", "--delta", "1e-5"]).contains("4.377178"));
    for (arguments, parts) in [
        (&["--noise", "1", "--delta", "1"][..], &["delta", "below 1"][..]),
        (&["--noise", "0", "--delta", "1e-5"], &["noise", "it is 0"]),
        (&["--noise", "1", "--delta", "1e-5", "--rate", "2"], &["rate", "from 0 to 1", "it is 2"]),
        (&["--epsilon", "-1", "--delta", "1e-5"], &["epsilon", "positive", "it is -1"]),
        (&["--delta", "1e-5"], &["--noise"]),
        (&["--noise", "1", "--epsilon", "1", "--delta", "1e-5"], &["cannot be used with"]),
    ] {
        let output = fet(folder.path(), &[&["account"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(parts.iter().all(|part| message.contains(part)), "{arguments:?}: {message}");
    }
}
