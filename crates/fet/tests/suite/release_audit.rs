//! Audits of releases with canaries: bounds stay below the claims, and planted faults refute them.
//!
//! Each bound of an audit exceeds the true ε with probability at most α = 0.03. The seeds are fixed.

use std::fmt::Write;
use std::path::Path;

use fet::audit::{Audit, MadeReleases, Settings, audit_releases};
use fet_core::data::{Folders, VerticalData};
use fet_core::experiment::{Experiment, set};
use fet_core::rng::OwnSeed;
use fet_federation::release_maker::ReleaseMaker;
use fet_federation::simulation::Simulation;

use crate::command::{self, fet};
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
        assert!(found.many_runs_gaussian.expect("sums") > 0.1, "the audit sees something: {found:?}");
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

/// Means whose noise is not counted: the party spends ε = 19.6 on them and claims 0.1. The canary has a rare label, and moves
/// its mean towards the half of the other records that are between both means.
#[test]
fn means_that_are_not_counted_refute_the_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (mut own, mut theirs) = ("time,age,state\n".to_string(), "time,a,b,note\n".to_string());
    for row in 0..240 {
        let side = if row % 2 == 0 { 0.6 } else { -0.6 };
        let (state, value) = if row % 60 == 0 { ("rare", 0.0) } else { ("usual", side) };
        let _ = writeln!(own, "{row},{},{state}", row % 7);
        let _ = writeln!(theirs, "{row}.1,{value},{value},x");
    }
    command::write(folder, "patients.csv", &own);
    command::write(folder, "laboratory.csv", &theirs);
    let text = record_code::EXPERIMENT.replace("multiclass", "binary");
    let split = "split={kind='stratified'}";
    let claimed = experiment(&text, &["release.epsilon=0.5", split]);
    // The symbols keep their ε of 0.4.
    let made = experiment(&text, &["release.epsilon=20", "release.means_share=0.98", split]);
    let faulty = ReleaseMaker::new(&made, &data(folder, &claimed), 0).expect("sound settings");
    let found = honest(folder, &claimed);
    assert!(!found.refuted, "{found:?}");
    let found = audited(folder, &claimed, &|_, table, seed| Ok(vec![faulty.make(table, seed)?]));
    assert!(found.refuted && found.why.concat().contains("many runs"), "{found:?}");
}

/// Sums with the noise of ε = 8, and a claim of 1.
#[test]
fn sums_with_too_little_noise_refute_the_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    release::places(folder, 100);
    let claimed = experiment(release::EXPERIMENT, &["release.epsilon=1"]);
    let made = experiment(release::EXPERIMENT, &["release.epsilon=8"]);
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
    let control = ["audit", "codes.toml", "--canaries", "20", "--set", "release.noise_only=true"];
    let output = fet(folder, &control);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("there is nothing to audit"), "{error}");
    let output = fet(folder, &["audit", "codes.toml", "--canaries", "51"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("at most 50"), "{error}");
}
