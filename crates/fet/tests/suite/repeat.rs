//! Tests that runs repeat: the same seed gives the same report, and an interrupted run ends like an
//! uninterrupted one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fet::run::{Keep, Log, RunOutcome, run};
use fet_core::data::Task;
use fet_core::experiment::Experiment;
use fet_core::method::Method;
use fet_core::registry::plugins;
use fet_federation::checkpoint;
use fet_federation::simulation::Simulation;
use serde_json::Value;

use crate::support::{devices, experiment, flex, losses, report, square, trainer};

fn digits(device: &str, sets: &[&str]) -> Experiment {
    let device = format!("device={device}");
    let base = ["data.rows=300", "data.parties=3", "train.epochs=2", "method.party_dropout=0.5", &device];
    experiment(&[&base, sets].concat())
}

fn train(experiment: &Experiment, folder: &Path) -> RunOutcome {
    run(experiment, folder, Log::Human, Keep::Nothing, &AtomicBool::new(false)).expect("a run")
}

#[test]
fn the_same_seed_gives_the_same_report_on_every_device() {
    for backend in devices() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (a, b, c) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("c"));
        train(&digits(&backend.name, &[]), &a);
        train(&digits(&backend.name, &[]), &b);
        assert_eq!(report(&a), report(&b), "{}", backend.name);
        let model = |folder: &Path| std::fs::read(folder.join("model.safetensors")).expect("a model");
        assert!(model(&a) == model(&b), "the models are the same bytes");
        train(&digits(&backend.name, &["seed=1"]), &c);
        assert_ne!(report(&a).epochs, report(&c).epochs, "another seed, another run");
    }
}

#[test]
fn every_method_repeats() {
    for plugin in plugins::<dyn Method>() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let experiment = experiment(&[
            "data.rows=300",
            "data.parties=3",
            "train.epochs=2",
            &format!("method.kind={}", plugin.kind),
        ]);
        train(&experiment, &a);
        train(&experiment, &b);
        assert_eq!(report(&a), report(&b), "{}", plugin.kind);
    }
}

/// Compares two runs that differ only in the order of sums in the backward pass.
///
/// The difference is a few roundings of 32-bit floats per step, so the test would detect a newly drawn
/// dropout or mask.
#[test]
fn recomputed_graphs_give_the_same_run() {
    let run = |recompute: &str| {
        let experiment = experiment(&["method.party_dropout=0.5", "method.dropout=0.3", recompute]);
        let mut trainer = trainer(&experiment, square(400, Task::Regression), &flex()).expect("a trainer");
        losses(&mut trainer)
    };
    let (kept, built) = (run("train.recompute=false"), run("train.recompute=true"));
    assert!(kept.len() >= 8 && kept[0] == built[0], "{kept:?} and {built:?}");
    assert!(kept.iter().zip(&built).all(|(a, b)| (a - b).abs() < 1e-6 * a), "{kept:?} and {built:?}");
}

#[test]
fn interrupted_run_continues_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let experiment = digits("flex", &["train.epochs=4", "method.pe_average_every=2"]);
    train(&experiment, &whole);
    // Stop within an epoch after a checkpoint; the appearance of the checkpoint is the clock.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !broken.join("checkpoint.safetensors").exists() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let outcome = run(&experiment, &broken, Log::Human, Keep::Nothing, &stop).expect("a run");
        assert!(matches!(outcome, RunOutcome::Interrupted(_)), "{outcome:?}");
    });
    assert!(!broken.join("report.json").exists(), "no report before the run is whole");
    assert!(matches!(train(&experiment, &broken), RunOutcome::Done(_)));
    assert_eq!(report(&whole), report(&broken));
    assert!(!broken.join("checkpoint.safetensors").exists(), "no checkpoint is left to continue from");
    assert!(matches!(train(&experiment, &broken), RunOutcome::WasDone(_)));
}

#[test]
fn refuses_damaged_checkpoints_and_those_of_other_experiments() {
    let (experiment, machine) = (experiment(&[]), fet::run::machine(&flex()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let simulation = Simulation { folder: Some(folder.path()), ..Simulation::new(&experiment, &machine) };
    let made = || simulation.start(square(100, Task::Regression)).expect("a trainer");
    let identity = serde_json::json!({"name": "test"});
    let mut first = made();
    losses(&mut first);
    let bytes = checkpoint::save(&mut first, &identity, 12.5).expect("saved");
    let mut second = made();
    let refuse = |trainer: &mut _, identity: &Value, bytes: &[u8]| {
        checkpoint::load(trainer, identity, bytes).expect_err("refused").to_string()
    };
    assert!(refuse(&mut second, &serde_json::json!({"name": "other"}), &bytes).contains("other settings"));
    assert!(refuse(&mut second, &identity, &bytes[..bytes.len() / 2]).contains("damaged"));
    assert!(refuse(&mut second, &identity, b"").contains("damaged"));
    // The program detects any flipped bit in the header, the names and the values.
    for place in (0..bytes.len()).step_by(bytes.len() / 97) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        assert!(checkpoint::load(&mut second, &identity, &flipped).is_err(), "bit {place}");
    }
    // The program also detects a flipped bit in a party's own state, and a missing state.
    let state = folder.path().join("party2/state-1.safetensors");
    let sound = std::fs::read(&state).expect("party 2 saved its state");
    let mut flipped = sound.clone();
    flipped[sound.len() - 3] ^= 1;
    std::fs::write(&state, &flipped).expect("writable");
    let error = refuse(&mut second, &identity, &bytes);
    assert!(error.contains("party \"second\"") && error.contains("damaged"), "{error}");
    std::fs::remove_file(&state).expect("there");
    assert!(refuse(&mut made(), &identity, &bytes).contains("no saved state of epoch 1"));
    std::fs::write(&state, &sound).expect("writable");
    let mut second = made();
    assert_eq!(checkpoint::load(&mut second, &identity, &bytes).expect("its own checkpoint"), 12.5);
    assert_eq!(second.best(), first.best());
    assert_eq!(losses(&mut first), losses(&mut second), "the next epoch is the same");
}
