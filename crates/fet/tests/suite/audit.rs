//! Tests `fet audit` end to end: lower bounds stay below the claim, and audits detect parties and accounts
//! with known, since fixed, faults.

use std::path::Path;

use fet::audit::{Audit, Settings, audit, audit_on};
use fet::experiment_file::{ExperimentArguments, load};
use fet_core::data::{Bounds, DatasetContext, Matrix, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::plugins;
use fet_privacy::accountant::{Account, Event};
use fet_privacy::audit::epsilon_lower_bound;
use serde_json::Value;

use crate::command::fet;
use crate::support::flex;

/// Returns the repository's experiment, changed by `sets`.
fn experiment(sets: &[&str]) -> Experiment {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/audit.toml");
    let sets = sets.iter().map(|set| (*set).to_string()).collect();
    load(&ExperimentArguments { file, sets, ..Default::default() }).expect("a sound experiment")
}

fn settings(canaries: usize, runs: usize) -> Settings {
    // Any of the three bounds exceeds the truth with probability at most α; the audits are determined by
    // their seed.
    Settings { canaries, runs, alpha: 0.03 }
}

fn audited(sets: &[&str], settings: &Settings) -> Audit {
    audit(&experiment(sets), settings).expect("an audit")
}

/// Checks that no bound exceeds the claim, and that no canary moves the releases farther than accounted for.
///
/// The movement is not a statistic: it follows from the noiseless releases of the parties' copies.
fn assert_below(found: &Audit) {
    let (claimed, accounted) = found.epsilon.zip(found.accounted).expect("a claim");
    let most = found.many_runs.max(found.many_runs_gaussian.unwrap_or(0.0)).max(found.one_run);
    assert!(most <= claimed && !found.refuted, "{found:?}");
    // Copies compute in 32-bit floats.
    assert!(found.moved <= accounted * (1.0 + 1e-3), "{found:?}");
}

#[test]
fn no_bound_exceeds_the_claim_of_any_mechanism_under_any_neighbouring() {
    for plugin in plugins::<dyn PrivacyMechanism>() {
        let kind = format!("privacy.kind={}", plugin.kind);
        if !plugin.defaults().contains_key("neighbouring") {
            continue;
        }
        for neighbouring in ["record", "replace", "add-remove"] {
            let neighbouring = format!("privacy.neighbouring={neighbouring}");
            let common = [&neighbouring, "privacy.target_epsilon=4"];
            let frozen = ["privacy.learning=frozen", "privacy.max_occurrences=1"];
            let found = audited(&[&[kind.as_str()], &common[..], &frozen].concat(), &settings(20, 48));
            assert_below(&found);
            let (accounted, least) = (found.accounted.expect("a claim"), found.moved);
            // The account assumes that the blocks of three parties have the worst directions. With `replace`
            // they have the directions of each party's own weights. The canaries of `add-remove` move one
            // row, while the account counts as many rows as a record has occurrences.
            let share = if neighbouring.ends_with("record") { 0.9 } else { 0.3 };
            assert!(least > share * accounted, "the canaries are far from the worst case: {found:?}");
            let counted = ["privacy.learning=counted", "privacy.max_occurrences=0"];
            let found = audited(&[&[kind.as_str()], &common[..], &counted].concat(), &settings(4, 12));
            assert_below(&found);
            assert!(found.moved > 0.2 * found.accounted.expect("a claim"), "{found:?}");
        }
    }
}

/// Without noise, an attacker who replays its requests is right about every canary, in every run.
///
/// The attacker's copies answer like the parties, for every linker, aggregator and encoder, and while models
/// learn.
#[test]
fn detects_every_canary_without_noise() {
    let separate = |runs: usize| {
        let rest = runs / 2 - runs / 2 / 4;
        epsilon_lower_bound(&vec![1.0; rest], &vec![-1.0; rest], 0.0, 0.0, 0.01)
    };
    for sets in [
        &[][..],
        &["aggregator.kind=concat", "linker.neighbours=3", "train.wire=bytes"],
        &["method.pe_average_every=1", "method.party_dropout=0.4", "method.dropout=0.1"],
        &["linker.kind=psi"],
        &["method.kind=fedsim"],
        &["data.keys=names", "linker.kind=edit", "linker.neighbours=2"],
    ] {
        let found = audited(&[&["privacy.kind=none"], sets].concat(), &settings(12, 16));
        assert_eq!(found.guesses, found.right, "{sets:?}: {found:?}");
        assert!((found.many_runs - separate(16)).abs() < 1e-9, "{sets:?}: {found:?}");
        assert_eq!((found.epsilon, found.refuted), (None, false), "the experiment claims no ε: {found:?}");
    }
}

/// Returns a table as prepared by an owner that standardises columns by their own means and deviations, and
/// only then declares ranges.
fn careless(mut table: PartyTable) -> PartyTable {
    let own = table.features.numbers().expect("numbers").clone();
    let (rows, columns) = (own.rows() as f64, own.columns());
    let mut values = own.values().to_vec();
    for column in 0..columns {
        let all = |of: &dyn Fn(f64) -> f64| {
            (0..own.rows()).map(|row| of(f64::from(own.row(row)[column]))).sum::<f64>()
        };
        let mean = all(&|x| x) / rows;
        let deviation = (all(&|x| (x - mean).powi(2)) / rows).sqrt().max(1e-9);
        for value in values.iter_mut().skip(column).step_by(columns) {
            *value = ((f64::from(*value) - mean) / deviation) as f32;
        }
    }
    table.features = Matrix::new(columns, values).into();
    table.bounds = Some(Bounds { keys: Vec::new(), features: vec![[-3.0, 3.0]; columns] });
    table
}

/// Reproduces finding 2 outside of the product: one record affects the scaling of the others.
///
/// The audit refutes the claim, which holds if the owner declares ranges from public knowledge. (δ is large
/// for the same reason as below.)
#[test]
fn detects_scaling_by_the_owners_statistics() {
    type Prepared<'a> = &'a dyn Fn(PartyTable) -> PartyTable;
    let found = |sets: &[&str], runs: usize, owner: Prepared<'_>| {
        let experiment = experiment(sets);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let context = DatasetContext { folders: &folder.path().into(), seed: experiment.seed, metadata: &[] };
        let data = experiment.data.build(&context).expect("settings").load().expect("the digits");
        let machine = fet::run::machine(&flex());
        audit_on(&experiment, &data, &settings(4, runs), &machine, owner).expect("an audit")
    };
    // At a small δ a few runs suffice: the canary moves more than accounted for, which does not depend on
    // chance.
    let (usual, few) = (["privacy.target_epsilon=1", "privacy.delta=1e-5"], 8);
    assert_below(&found(&usual, few, &|table| table));
    let caught = found(&usual, few, &careless);
    assert!(
        caught.refuted && caught.why.len() == 1 && caught.why[0].contains("the account covers"),
        "{caught:?}"
    );
    // At a large δ the bounds on ε also detect the fault.
    let sets = ["privacy.target_epsilon=0", "privacy.noise=0.94", "privacy.delta=0.3"];
    assert_below(&found(&sets, 300, &|table| table));
    let careless = found(&sets, 300, &careless);
    let (claimed, accounted) = careless.epsilon.zip(careless.accounted).expect("a claim");
    assert!(careless.refuted && careless.many_runs > claimed, "{careless:?}");
    assert!(careless.many_runs_gaussian.is_some_and(|found| found > claimed), "{careless:?}");
    assert!(careless.moved > 2.0 * accounted, "{careless:?}");
}

/// Reproduces finding 1 with the old count: m rows for a replaced record, which leaves m rows and joins m
/// others.
///
/// A canary moves the releases farther than the old count allows. The bound for μ-Gaussian curves refutes the
/// old count's ε for the same noise, but not the present claim. (δ = 1/2 gives no privacy, but a few runs can
/// test the curve there.)
#[test]
fn detects_a_count_of_half_the_rows_of_a_replaced_record() {
    let sets = ["privacy.target_epsilon=0", "privacy.noise=0.315", "privacy.delta=0.5"];
    let found = audited(&sets, &settings(4, 1_500));
    assert_below(&found);
    let (claimed, accounted) = found.epsilon.zip(found.accounted).expect("a claim");
    let epsilon = |mu: f64| {
        let event = Event { noise: 1.0 / mu, rate: 1.0, steps: 1 };
        Account::from_events(&[event], found.delta).expect("in range").epsilon()
    };
    assert!((epsilon(accounted) - claimed).abs() < 0.01 * claimed, "one release: {found:?}");
    let before = accounted / std::f64::consts::SQRT_2;
    assert!(found.moved > 1.2 * before, "{before}: {found:?}");
    let gaussian = found.many_runs_gaussian.expect("a claim without sampling");
    assert!(gaussian > epsilon(before), "{gaussian} does not refute {}: {found:?}", epsilon(before));
    eprintln!("{} claimed, {} before: {found:?}", claimed, epsilon(before));
}

#[test]
fn audit_prints_claim_and_bounds_and_refuses_invalid_settings() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/audit.toml");
    let file = file.display().to_string();
    let run = |more: &[&str]| fet(folder.path(), &[&["audit", file.as_str()], more].concat());
    let few = ["--canaries", "8", "--runs", "8"];
    let output = run(&few);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    for field in ["epsilon", "delta", "accounted", "moved", "many_runs", "many_runs_gaussian", "one_run"] {
        assert!(found[field].is_number(), "{field} in {found}");
    }
    assert_eq!(found["neighbouring"], "record", "{found}");
    let output = run(&[&few[..], &["--table"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for plugin in plugins::<dyn PrivacyMechanism>() {
        let relations = if plugin.defaults().contains_key("neighbouring") { 3 } else { 1 };
        let rows = table.lines().filter(|line| line.starts_with(&format!("| {} |", plugin.kind))).count();
        assert_eq!(rows, relations, "{}: {table}", plugin.kind);
    }
    for (refused, part) in [
        (&["--alpha", "1"][..], "`--alpha`"),
        (&["--runs", "7"], "`--runs`"),
        (&["--canaries", "3"], "`--canaries`"),
        (&["--canaries", "61"], "at most 60"),
        (&["--set", "method.kind=solo"], "without secondaries"),
        (&["--set", "policy.least_noise=1000"], "least_noise"),
        (&["--set", "data.bound=[0, 16]"], "bound"),
    ] {
        let output = run(refused);
        assert_eq!(output.status.code(), Some(2), "{refused:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part), "{part} in {said}");
    }
}
