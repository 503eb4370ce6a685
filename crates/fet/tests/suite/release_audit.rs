//! Audits of releases with canaries: bounds stay below the claims, and planted faults refute them.
//!
//! Each bound of an audit exceeds the true ε with probability at most α = 0.03. The seeds are fixed.

use std::path::Path;

use fet::audit::{Audit, MadeReleases, Settings, audit_releases};
use fet_core::data::{Folders, VerticalData};
use fet_core::experiment::{Experiment, set};
use fet_core::rng::OwnSeed;
use fet_federation::release_maker::ReleaseMaker;
use fet_federation::simulation::Simulation;

use crate::command::fet;
use crate::support::flex;
use crate::{record_code, release};

const SETTINGS: Settings = Settings { canaries: 60, runs: 400, alpha: 0.03 };

fn experiment(text: &str, sets: &[&str]) -> Experiment {
    let mut table: toml::Table = text.parse().expect("TOML");
    sets.iter().for_each(|assignment| set(&mut table, assignment).expect("an assignment"));
    Experiment::from_table(table).expect("valid settings")
}

fn data(folder: &Path, experiment: &Experiment) -> VerticalData {
    let machine = fet::run::machine(&flex());
    Simulation::new(experiment, &machine).read(&Folders::new([folder.to_path_buf()])).expect("tables")
}

fn audited(folder: &Path, experiment: &Experiment, make: MadeReleases<'_>) -> Audit {
    audit_releases(experiment, &data(folder, experiment), &SETTINGS, make).expect("an audit")
}

fn honest(folder: &Path, experiment: &Experiment) -> Audit {
    audited(folder, experiment, &|maker, table, seed| Ok(vec![maker.make(table, seed)?]))
}

#[test]
fn no_bound_exceeds_the_claim_of_any_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::places(folder, 100);
    for relation in ["add-remove", "record"] {
        let found =
            honest(folder, &experiment(release::EXPERIMENT, &[&format!("release.neighbouring={relation}")]));
        assert!(!found.refuted, "{found:?}");
        // The canary moves the sums as far as the account covers: √(2L) of one record, or √(4L).
        let (moved, accounted) = (found.moved, found.accounted.expect("sums"));
        assert!(moved > 0.97 * accounted && moved <= accounted, "{relation}: {found:?}");
        assert!(found.many_runs_gaussian.expect("sums") > 1.0, "{found:?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record_code::tables(folder, 600);
    for relation in ["add-remove", "record", "features"] {
        let found = honest(
            folder,
            &experiment(record_code::EXPERIMENT, &[&format!("release.neighbouring={relation}")]),
        );
        assert!(!found.refuted, "{found:?}");
        let best = found.one_run.max(found.many_runs);
        // ε of the symbols alone is 3.2. The attacker has few runs, and noise decides the true symbols, too.
        assert!(best > 0.4, "the audit sees something: {found:?}");
    }
}

/// A party that draws each symbol again reveals twice as much.
#[test]
fn symbols_that_are_drawn_again_refute_the_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record_code::tables(folder, 600);
    let experiment =
        experiment(record_code::EXPERIMENT, &["release.epsilon=1", "release.neighbouring=features"]);
    assert!(!honest(folder, &experiment).refuted);
    let found = audited(folder, &experiment, &|maker, table, seed| {
        let again = |draw: u8| {
            let mut secret = *seed.secret("again");
            secret[0] ^= draw;
            Ok(maker.make(table, &OwnSeed::repeating(secret))?)
        };
        (0..8).map(again).collect()
    });
    assert!(found.refuted && found.why.concat().contains("one run"), "{found:?}");
}

/// Means whose noise is not counted: the party spends ε = 16 on them and claims 0.8. The canary is one of few records of its
/// label, so that it moves the mean, and with it the symbols of many records.
#[test]
fn means_that_are_not_counted_refute_the_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record_code::tables(folder, 600);
    let sets = ["release.epsilon=4", "release.means_share=0.2", "split.training_share=0.03"];
    let claimed = experiment(record_code::EXPERIMENT, &sets);
    // The symbols keep their ε of 3.2.
    let made = experiment(
        record_code::EXPERIMENT,
        &["release.epsilon=19.2", "release.means_share=0.8333333", sets[2]],
    );
    let all = data(folder, &claimed);
    let faulty = ReleaseMaker::new(&made, &all, 0).expect("sound settings");
    assert!(!honest(folder, &claimed).refuted);
    let found = audited(folder, &claimed, &|_, table, seed| Ok(vec![faulty.make(table, seed)?]));
    assert!(found.refuted && found.why.concat().contains("many runs"), "{found:?}");
}

/// Sums with half of the noise.
#[test]
fn sums_with_too_little_noise_refute_the_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::places(folder, 100);
    let claimed = experiment(release::EXPERIMENT, &["release.epsilon=1"]);
    let made = experiment(release::EXPERIMENT, &["release.epsilon=3"]);
    let faulty = ReleaseMaker::new(&made, &data(folder, &claimed), 0).expect("sound settings");
    let found = audited(folder, &claimed, &|_, table, seed| Ok(vec![faulty.make(table, seed)?]));
    assert!(found.refuted && found.why.concat().contains("many runs"), "{found:?}");
}

#[test]
fn command_audits_a_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record_code::tables(folder, 200);
    let output = fet(folder, &["audit", "codes.toml", "--runs", "40", "--canaries", "20"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((found["mechanism"].as_str(), found["refuted"].as_bool()), (Some("record-code"), Some(false)));
    let output = fet(folder, &["audit", "codes.toml", "--canaries", "51"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("at most 50"), "{error}");
}
