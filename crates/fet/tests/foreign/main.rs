//! Registers and runs a plug-in of each slot that no crate of this workspace knows.
//!
//! The program must refuse no plug-in because of its name, and must ask plug-ins for their capabilities.
//! These tests are a separate binary, so that lists and suites over the program's own plug-ins do not include
//! these.

mod plugins;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fet::run::{Keep, Log, RunOutcome, run};
use fet_core::data::Folders;
use fet_core::experiment::{Experiment, set};
use fet_core::registry::SettingsError;
use fet_federation::simulation::Simulation;

fn experiment(sets: &[&str]) -> Result<Experiment, SettingsError> {
    let base = [
        "name=foreign",
        "data.kind=foreign-three",
        "linker.kind=nearest",
        "linker.neighbours=3",
        "train.epochs=1",
        "train.batch_size=16",
    ];
    let mut table = toml::Table::new();
    for assignment in base.iter().chain(sets) {
        set(&mut table, assignment).expect("a well-formed assignment");
    }
    Experiment::from_table(table)
}

fn check(sets: &[&str]) {
    let experiment = experiment(sets).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place: &Path = &folder.path().join("run");
    let outcome = run(&experiment, place, Log::Human, Keep::Nothing, &AtomicBool::new(false));
    let outcome = outcome.unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let RunOutcome::Done(report) = outcome else { panic!("{sets:?}: {outcome:?}") };
    assert!(report.exists(), "{sets:?}");
    // The party's operator receives the warnings about its links.
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let machine = fet::run::machine(&fet_backends::open("flex").expect("always there"));
    let tell = Arc::new(move |warning| heard.lock().expect("no panic").push(warning));
    let simulation = Simulation { tell, ..Simulation::new(&experiment, &machine) };
    simulation.load(&Folders::default()).unwrap_or_else(|error| panic!("{sets:?}: {error}"));
    let told =
        told.lock().expect("no panic").iter().any(|warning: &String| warning.contains("a foreign warning"));
    let asks = sets.iter().any(|set| set.contains("foreign-asking"));
    assert_eq!(told, asks, "{sets:?}: the data holder receives the warnings");
}

/// Settings of a small FeT.
const FET: [&str; 3] = ["method.kind=fet", "method.hidden=8", "method.heads=2"];
/// Settings of a small FedSim.
const FEDSIM: [&str; 2] = ["method.kind=fedsim", "method.local={ hidden = [4], width = 4 }"];

#[test]
fn foreign_plug_ins_run_next_to_built_in_ones() {
    for foreign in [
        "linker.kind=foreign-line",
        "linker.kind=foreign-asking",
        "encoder.kind=foreign-slim",
        "aggregator.kind=foreign-beside",
        "privacy.kind=foreign-open",
        "labels.kind=foreign-bare",
        "attack.kind=foreign-idle",
    ] {
        check(&[FET.as_slice(), &[foreign]].concat());
    }
    check(&["method.kind=foreign-plain"]);
    let cut = ["data.kind=split", "data.parties=3", "data.key_dims=2", "data.source.kind=foreign-wave"];
    check(&[FET.as_slice(), &cut].concat());
}

#[test]
fn foreign_plug_ins_run_together() {
    check(&["method.kind=foreign-plain", "linker.kind=foreign-line", "privacy.kind=foreign-open"]);
    check(&["method.kind=foreign-plain", "linker.kind=foreign-asking", "aggregator.kind=secure-average"]);
}

/// Tests capabilities that once depended on a plug-in's name: separate parts, no protection, independent
/// links per record.
#[test]
fn uses_the_capabilities_of_plug_ins() {
    check(&[FEDSIM.as_slice(), &["aggregator.kind=foreign-beside", "privacy.kind=foreign-open"]].concat());
    check(&[FEDSIM.as_slice(), &["linker.kind=foreign-line"]].concat());
    check(&["method.kind=gbdt-top1", "aggregator.kind=foreign-beside", "privacy.kind=foreign-open"]);
    let protected = [
        "aggregator.kind=secure-average",
        "privacy.kind=discrete-gaussian",
        "privacy.learning=frozen",
        "privacy.max_occurrences=2",
        "linker.kind=foreign-line",
    ];
    check(&[FET.as_slice(), &protected].concat());
}

#[test]
fn refuses_unsupported_uses_of_a_foreign_plug_in_by_name() {
    let refused = |sets: &[&str], parts: &[&str]| {
        let error = experiment(sets).expect_err("refused").to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{sets:?}: {error}");
    };
    let similar = ["linker.kind", "must give similarities", "method \"fedsim\"", "it is \"foreign-asking\""];
    refused(&[FEDSIM.as_slice(), &["linker.kind=foreign-asking"]].concat(), &similar);
    let apart = ["aggregator.kind", "parts separate", "\"concat\"", "it is \"average\""];
    refused(&[FEDSIM.as_slice(), &["aggregator.kind=average"]].concat(), &apart);
    let two = ["linker.kind", "two neighbours", "it is \"top1\""];
    refused(&["method.kind=foreign-plain", "linker.kind=top1"], &two);
    let clear = ["privacy.kind=gaussian", "privacy.sample_rate=0.5", "linker.kind=foreign-asking"];
    refused(&[FET.as_slice(), &clear].concat(), &["linker.kind", "in the clear", "it is \"foreign-asking\""]);
}
