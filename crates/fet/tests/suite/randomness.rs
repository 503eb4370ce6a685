//! Tests `train.randomness = "own"`: each party derives its noise from its private secret, which stays in its
//! own folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fet::run::{Keep, Log, RunOutcome, run};
use fet_core::data::Task;
use fet_core::experiment::Experiment;
use fet_core::party::Party;
use fet_eval::records::Randomness;
use fet_federation::prepare::divide;
use fet_federation::secondary::{PartyConfig, Secondary};
use fet_federation::simulation::Simulation;
use fet_federation::trainer::Trainer;
use fet_privacy::identity::Identity;

use crate::support::{experiment, flex, losses, party_config, report, square, trainer};

/// Enough noise for a bound.
const NOISE: &str = "privacy.noise=200";
const OWN: &str = "train.randomness=own";

/// Returns a private run on digits with randomised labels, so that the primary's seed also matters.
fn private(sets: &[&str]) -> Experiment {
    let base = [
        "data.rows=300",
        "data.parties=3",
        "data.bounds=[0, 16]",
        "train.epochs=4",
        "aggregator.kind=secure-average",
        "privacy.kind=discrete-gaussian",
        "labels.kind=randomised-response",
    ];
    experiment(&[&base, sets].concat())
}

fn train(experiment: &Experiment, folder: &Path) -> anyhow::Result<RunOutcome> {
    run(experiment, folder, Log::Human, Keep::Nothing, &AtomicBool::new(false))
}

fn run_with(experiment: &Experiment, folder: &Path, stop: &AtomicBool) -> anyhow::Result<RunOutcome> {
    run(experiment, folder, Log::Human, Keep::Nothing, stop)
}

/// Stops a run within an epoch, after a checkpoint.
fn interrupt(experiment: &Experiment, folder: &Path) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !folder.join("checkpoint.safetensors").exists() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let outcome = run(experiment, folder, Log::Human, Keep::Nothing, &stop).expect("a run");
        assert!(matches!(outcome, RunOutcome::Interrupted(_)), "{outcome:?}");
    });
}

fn seeds(folder: &Path) -> Vec<PathBuf> {
    ["primary", "party1", "party2"].map(|party| folder.join("parties").join(party).join("seed")).to_vec()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn runs_with_own_randomness_differ_only_in_noise() {
    let run = |sets: &[&str]| {
        let experiment = experiment(&[&["train.epochs=1"], sets].concat());
        let mut trainer = trainer(&experiment, square(200, Task::Regression), &flex()).expect("sound");
        let losses = losses(&mut trainer);
        (losses, trainer.spent().expect("others take part"))
    };
    let noise = ["privacy.kind=gaussian", "privacy.noise=1"];
    let own = [noise.as_slice(), &[OWN]].concat();
    let (a, b, simulated) = (run(&own), run(&own), run(&noise));
    assert!(a.0 != b.0 && a.0 != simulated.0 && b.0 != simulated.0, "three noises");
    assert_eq!(simulated.0, run(&noise).0, "the experiment's repeats");
    // Results that do not depend on the noise are the same: the privacy cost, and a run without noise.
    assert_eq!(a.1, b.1);
    assert_eq!(a.1.epsilon, simulated.1.epsilon);
    assert_eq!(run(&[OWN]).0, run(&[]).0);
    let sentence = "noise is derived from the experiment's seed";
    let guarantee = |spent: &fet_eval::records::Spent| spent.guarantee.clone().expect("private");
    assert_eq!(guarantee(&a.1).randomness, Randomness::Own);
    assert_eq!(guarantee(&simulated.1).randomness, Randomness::Experiment);
    assert!(
        simulated.1.statement.contains(sentence) && !a.1.statement.contains(sentence),
        "{}",
        a.1.statement
    );
}

#[test]
fn interrupted_run_with_own_randomness_continues_bit_for_bit_with_visible_parts() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let experiment = private(&[OWN, "aggregator.kind=average"]);
    interrupt(&experiment, &broken);
    for (from, to) in seeds(&broken).iter().zip(seeds(&whole)) {
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("writable");
        std::fs::copy(from, to).expect("a seed");
    }
    train(&experiment, &whole).expect("a whole run");
    assert!(matches!(train(&experiment, &broken), Ok(RunOutcome::Done(_))));
    assert_eq!(report(&whole), report(&broken));
    let model = |folder: &Path, file: &str| std::fs::read(folder.join(file)).expect("a model");
    for file in ["model.safetensors", "parties/party1/model.safetensors", "parties/party2/model.safetensors"]
    {
        assert!(model(&whole, file) == model(&broken, file), "{file}");
    }
    // With other seeds it is a different run.
    let other = folder.path().join("other");
    train(&experiment, &other).expect("a run");
    assert_ne!(report(&whole).epochs, report(&other).epochs);
}

/// Sums have new noise in each session, so the parties and the report count repeated sums again.
#[test]
fn interrupted_run_of_sums_counts_possible_releases() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |sets: &[&str], name: &str, broken: bool| {
        let (experiment, out) = (private(&[&[OWN, NOISE], sets].concat()), folder.path().join(name));
        if broken {
            interrupt(&experiment, &out);
        }
        assert!(matches!(train(&experiment, &out), Ok(RunOutcome::Done(_))));
        let report = report(&out);
        let privacy = report.privacy.expect("others take part");
        // Other tests check the warnings about the digits' pixels and about classes with few validation rows.
        let mut warnings = report.warnings;
        let others = ["validation and test rows", "`likely` always contains"];
        warnings.retain(|warning| !others.iter().any(|other| warning.contains(other)));
        (report.epochs.len(), privacy.epsilon.expect("bounded"), warnings.join("\n"))
    };
    let (epochs, whole, warnings) = run(&[], "whole", false);
    assert!(epochs == 4 && warnings.is_empty(), "{warnings}");
    let room = ["policy.most_epsilon=1000"];
    let (epochs, broken, warnings) = run(&room, "broken", true);
    assert!(epochs == 4 && broken > whole, "{broken} {whole}");
    assert!(warnings.contains("1 earlier session of this run"), "{warnings}");
    // If the policy allows only planned releases, the parties end the run an epoch earlier if the interrupted
    // epoch had releases (`restart` has a run where this is certain).
    let (epochs, _, warnings) = run(&[], "planned", true);
    assert!(epochs == 4 || warnings.contains("must be at most"), "{epochs}: {warnings}");
    // The first session is killed before its first checkpoint, but also counts.
    let out = folder.path().join("early");
    let experiment = private(&[OWN, NOISE, room[0]]);
    let stop = AtomicBool::new(true);
    assert!(matches!(run_with(&experiment, &out, &stop), Ok(RunOutcome::Interrupted(_))));
    train(&experiment, &out).expect("a run");
    let early = report(&out).privacy.and_then(|privacy| privacy.epsilon).expect("bounded");
    assert!((early - broken).abs() < 1e-9, "an epoch at most, in either case: {early} {broken}");
}

#[test]
fn only_the_partys_own_file_contains_its_seed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let experiment = private(&[OWN]);
    interrupt(&experiment, &out);
    let search = |expected: usize| {
        let files = files(&out);
        assert!(files.len() >= expected, "{files:?}");
        let all = seeds(&out);
        for path in &all {
            let file = std::fs::read(path).expect("a seed");
            // The first line of the file names its kind, and the last 32 bytes are a checksum.
            let secret = &file[file.len() - 64..file.len() - 32];
            let hex = fet_io::hex(secret);
            let forms = [secret.to_vec(), hex.clone().into_bytes(), hex.to_uppercase().into_bytes()];
            for other in &files {
                let bytes = std::fs::read(other).expect("readable");
                let holds = |form: &Vec<u8>| bytes.windows(form.len()).any(|window| window == form);
                assert_eq!(
                    forms.iter().any(holds),
                    other == path,
                    "{} in {}",
                    path.display(),
                    other.display()
                );
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let mode = std::fs::metadata(path).expect("there").permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{}", path.display());
            }
        }
        let distinct: std::collections::BTreeSet<_> =
            all.iter().map(|path| std::fs::read(path).expect("there")).collect();
        assert_eq!(distinct.len(), 3, "each party's own");
    };
    // First seeds, ledgers, states and the checkpoint; then models and the report.
    search(8);
    train(&experiment, &out).expect("resumed");
    search(9);
    let simulated = folder.path().join("simulated");
    train(&private(&[]), &simulated).expect("a run");
    assert!(seeds(&simulated).iter().all(|path| !path.exists()), "a simulated seed needs no file");
}

#[test]
fn refuses_to_resume_without_its_seeds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let experiment = private(&[OWN]);
    interrupt(&experiment, &out);
    for path in seeds(&out) {
        let sound = std::fs::read(&path).expect("a seed");
        let refused = |why: &str| {
            let error = train(&experiment, &out).expect_err("refused").to_string();
            for part in [path.to_str().expect("plain"), why, "move the folder of the run away"] {
                assert!(error.contains(part), "{part} in {error}");
            }
        };
        std::fs::remove_file(&path).expect("there");
        refused("is missing");
        let mut flipped = sound.clone();
        let place = flipped.len() - 40;
        flipped[place] ^= 1;
        std::fs::write(&path, &flipped).expect("writable");
        refused("is damaged");
        std::fs::write(&path, &sound[..20]).expect("writable");
        refused("is damaged");
        std::fs::write(&path, &sound).expect("writable");
    }
    assert!(matches!(train(&experiment, &out), Ok(RunOutcome::Done(_))));
}

/// If the process was killed while writing a seed, the seed was never used, and the party draws another. With
/// any other file present, a missing seed is an error.
#[test]
fn draws_a_new_seed_after_an_incomplete_write() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Simulation::store(Some(folder.path()), 0);
    let place = folder.path().join("primary");
    std::fs::create_dir_all(&place).expect("writable");
    std::fs::write(place.join("seed.77-0.part"), b"half of").expect("writable");
    let seed = store.own_seed(false).expect("drawn again");
    store.keep_seed(&seed).expect("written");
    assert_eq!(store.own_seed(true).expect("kept").to_file(), seed.to_file());
    std::fs::remove_file(place.join("seed")).expect("there");
    std::fs::write(place.join("ledger-1"), b"").expect("writable");
    let error = store.own_seed(false).expect_err("a seed was used").to_string();
    assert!(error.contains("is missing"), "{error}");
}

/// Two seeds give two noises: a party's noise does not depend on anything that the primary knows.
#[test]
fn noise_depends_on_the_partys_own_seed() {
    let sets = ["privacy.kind=gaussian", "train.epochs=1"];
    let run = |own: [u8; 32]| {
        let experiment = experiment(&sets);
        let machine = fet::run::machine(&flex());
        let simulation = Simulation::new(&experiment, &machine);
        let (primary, tables) = divide(square(100, Task::Regression));
        let parties = tables.into_iter().map(|table| -> Box<dyn Party> {
            let seed = fet_core::rng::OwnSeed::new(own);
            let identity = Identity::from_secret(own);
            let roster = [identity.public(); 2].into_iter().collect();
            Box::new(Secondary::new(PartyConfig {
                seed,
                identity,
                roster,
                computation: experiment.train.computation(true),
                evaluation_cache: experiment.train.evaluation_cache_of(1),
                tell: Arc::clone(&simulation.tell),
                ..party_config(&experiment, table, 1, 2)
            }))
        });
        let mut trainer =
            Trainer::new(&experiment, primary, parties.collect(), Vec::new(), &machine).expect("sound");
        losses(&mut trainer)
    };
    assert_eq!(run([1; 32]), run([1; 32]));
    assert_ne!(run([1; 32]), run([2; 32]));
    let simulated =
        losses(&mut trainer(&experiment(&sets), square(100, Task::Regression), &flex()).expect("sound"));
    assert_ne!(simulated, run([1; 32]));
}
