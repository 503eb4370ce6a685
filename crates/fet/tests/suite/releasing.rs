//! Tests of parties that make a release in place of taking part in the training: the same bytes as in a simulation, the
//! account over several runs, policies, and hostile messages on both sides.

use std::path::Path;
use std::sync::{Arc, Mutex};

use fet::ledger::{LedgerCommand, LedgerShowArguments, ledger};
use fet_core::data::{Folders, Keys, Matrix, PartyTable, VerticalData};
use fet_core::experiment::{Experiment, set};
use fet_core::message::{Forward, Parts, ReleasePlaces, ReleasedValues, Reply, Request, Round, Terms};
use fet_core::party::{Failure, Party};
use fet_core::policy::Policy;
use fet_core::privacy::Neighbouring;
use fet_core::release::Released;
use fet_core::rng::OwnSeed;
use fet_eval::records::Randomness;
use fet_federation::lifetime::SharedLifetime;
use fet_federation::releasing::ReleasingParties;
use fet_federation::secondary::{LifetimePlace, PartyConfig, Secondary, Store};
use fet_federation::simulation::Simulation;
use fet_federation::trainer::RunError;
use fet_privacy::accountant::gaussian;

use crate::support::{flex, party_config, terms};
use crate::{record_code, release};

fn parsed(text: &str, sets: &[&str]) -> Experiment {
    let mut table: toml::Table = text.parse().expect("TOML");
    sets.iter().for_each(|assignment| set(&mut table, assignment).expect("an assignment"));
    Experiment::from_table(table).expect("valid settings")
}

/// A study: its folder with the tables, and the text of its experiment.
struct Study {
    folder: tempfile::TempDir,
    experiment: &'static str,
}

impl Study {
    /// Two secondaries that release surfaces.
    fn surfaces() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        release::places(folder.path(), 60);
        Self { folder, experiment: release::EXPERIMENT }
    }

    /// One secondary that releases symbols.
    fn codes() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        record_code::tables(folder.path(), 120);
        Self { folder, experiment: record_code::EXPERIMENT }
    }

    fn experiment(&self, sets: &[&str]) -> Experiment {
        parsed(self.experiment, sets)
    }

    fn data(&self, experiment: &Experiment) -> VerticalData {
        let machine = fet::run::machine(&flex());
        let folders = Folders::new([self.folder.path().to_path_buf()]);
        Simulation::new(experiment, &machine).read(&folders).expect("tables")
    }

    /// Returns the state folder of a party, from 1.
    fn state(&self, number: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("state{number}"))
    }

    /// Returns a party on its own machine.
    fn party(&self, experiment: &Experiment, table: PartyTable, number: usize, own: &Own<'_>) -> Secondary {
        let state = self.state(number).join("party");
        Secondary::new(PartyConfig {
            seed: match own.rehearsal {
                true => OwnSeed::simulated(experiment.seed, number),
                false => OwnSeed::new([number as u8; 32]),
            },
            policy: own.policy.clone(),
            store: Store::in_folders(state.clone(), self.state(number).join("run")),
            lifetime: Some(LifetimePlace { folder: state, account: SharedLifetime::default(), table: None }),
            tell: own.tell.clone(),
            ..party_config(experiment, table, number, own.parties)
        })
    }

    /// Has the parties make their releases; returns what the primary holds.
    fn released(
        &self,
        sets: &[&str],
        own: &Own<'_>,
    ) -> Result<fet_federation::release::OneTimeReleases, RunError> {
        let experiment = self.experiment(sets);
        let VerticalData { secondaries, .. } = self.data(&experiment);
        let own = Own { parties: secondaries.len(), ..own.clone() };
        let parties =
            (1..).zip(secondaries).map(|(number, table)| self.party(&experiment, table, number, &own));
        let parties = parties.map(|party| Box::new(party) as Box<dyn Party>).collect();
        let seed = match own.rehearsal {
            true => OwnSeed::simulated(experiment.seed, 0),
            false => OwnSeed::new([0; 32]),
        };
        self.asked(&experiment, parties, &seed)
    }

    /// Asks these parties for their releases. `own` is the primary's seed.
    fn asked(
        &self,
        experiment: &Experiment,
        parties: Vec<Box<dyn Party>>,
        own: &OwnSeed,
    ) -> Result<fet_federation::release::OneTimeReleases, RunError> {
        let data = self.data(experiment);
        let names: Vec<String> = data.secondaries.iter().map(|table| table.name.clone()).collect();
        let rows = data.labels.len();
        let data = VerticalData { secondaries: Vec::new(), ..data };
        let mut releasing = ReleasingParties::new(experiment, &data, &names, own)?;
        releasing.join(parties, rows, 1)?;
        Ok(releasing.release(data)?.releases)
    }

    /// Returns the account of a party, in the form of `fet ledger show --json`.
    fn account(&self, number: usize) -> serde_json::Value {
        let show = LedgerShowArguments { place: self.state(number), delta: None, json: true };
        serde_json::from_str(&ledger(&LedgerCommand::Show(show)).expect("an account")).expect("JSON")
    }

    fn epsilon(&self, number: usize) -> f64 {
        let account = self.account(number);
        account["epsilon"].as_f64().unwrap_or_else(|| panic!("{account}"))
    }
}

/// Settings of a party that are its own.
#[derive(Clone)]
struct Own<'a> {
    policy: &'a Policy,
    rehearsal: bool,
    parties: usize,
    tell: Arc<dyn Fn(String) + Send + Sync>,
}

impl<'a> Own<'a> {
    fn new(policy: &'a Policy) -> Self {
        Self { policy, rehearsal: false, parties: 1, tell: Arc::new(|_| ()) }
    }
}

fn refused(found: Result<fet_federation::release::OneTimeReleases, RunError>, parts: &[&str]) {
    let message = found.expect_err("refused").to_string();
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
}

#[test]
fn parties_elsewhere_release_what_those_of_a_simulation_release() {
    let protected = ["labels={kind='randomised-response', epsilon=3}"];
    for (study, sets) in
        [(Study::surfaces(), &[][..]), (Study::codes(), &[][..]), (Study::codes(), &protected[..])]
    {
        let experiment = study.experiment(sets);
        let machine = fet::run::machine(&flex());
        let simulation = Simulation::new(&experiment, &machine);
        let (simulated, _) = simulation.divided(study.data(&experiment)).expect("released");
        let policy = Policy::default();
        let found = study.released(sets, &Own { rehearsal: true, ..Own::new(&policy) }).expect("released");
        assert_eq!(found.label_privacy().and_then(|labels| labels.epsilon).is_some(), !sets.is_empty());
        assert_eq!(found.released(), simulated.releases.released());
        assert_eq!(found.record(), simulated.releases.record());
        // The noise of a rehearsal follows from the experiment's seed.
        let account = study.account(1);
        assert!(
            account["epsilon"].is_null() && account["notes"].to_string().contains("rehearsal"),
            "{account}"
        );
    }
}

#[test]
fn account_counts_a_release_once_and_another_release_again() {
    let policy =
        Policy { neighbouring: vec![Neighbouring::Record, Neighbouring::AddRemove], ..Policy::default() };
    let own = Own::new(&policy);
    for (study, other) in
        [(Study::surfaces(), "release.finest=8"), (Study::codes(), "release.means_share=0.5")]
    {
        let first = study.released(&[], &own).expect("released");
        let stated = first.record().expect("a record").parties[0].epsilon.expect("a bound");
        let one = study.epsilon(1);
        assert!((one - stated).abs() < 1e-3, "{one} {stated}");
        assert!(first.warnings().is_empty(), "{:?}", first.warnings());
        // Another method, other epochs, and another session of the same run use the same release.
        for sets in [&[][..], &["method={kind='linear-solo'}", "train.epochs=1"]] {
            let again = study.released(sets, &own).expect("released");
            assert_eq!(again.released(), first.released());
            assert_eq!(study.epsilon(1), one);
        }
        // A lost file is drawn again with the same noise.
        for entry in std::fs::read_dir(study.state(1).join("party")).expect("a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with("release-") {
                std::fs::remove_dir_all(entry.path()).expect("removed");
            }
        }
        assert_eq!(study.released(&[], &own).expect("released").released(), first.released());
        assert_eq!(study.epsilon(1), one);
        let second = study.released(&[other], &own).expect("released");
        let warnings = second.warnings().concat();
        assert!(warnings.contains("its lifetime account has 1 earlier runs"), "{warnings}");
        let both = study.epsilon(1);
        assert!(both > 1.2 * one && both < 2.01 * one, "{one} {both}");
        assert_eq!(study.account(1)["runs"].as_array().map(Vec::len), Some(2));
    }
}

/// A party that keeps the places that it is asked with.
struct Listener(Secondary, Arc<Mutex<Option<ReleasePlaces>>>);

impl Party for Listener {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        if let Request::Release(Some(places)) = &request {
            *self.1.lock().expect("no panic") = Some(places.clone());
        }
        self.0.ask(request)
    }
}

/// With ε = ln 4, an answer of three classes is true with a probability of 2/3. Some 200 of 300 labels are true, with a standard
/// deviation of 8; the limits of 6 deviations have α = 2e-9. The primary's seed repeats its answers in every run.
#[test]
fn secondaries_learn_randomised_labels_alone() {
    let study = Study { folder: tempfile::tempdir().expect("a temporary folder"), ..Study::codes() };
    record_code::tables(study.folder.path(), 430);
    let heard = |sets: &[&str], seed: u8| {
        let protection = "labels={kind='randomised-response', epsilon=1.3862943611198906}";
        let experiment = study.experiment(&[&[protection], sets].concat());
        let table = study.data(&experiment).secondaries.remove(0);
        let (policy, places) = (Policy::default(), Arc::default());
        let party = Listener(study.party(&experiment, table, 1, &Own::new(&policy)), Arc::clone(&places));
        let own = OwnSeed::new([seed; 32]);
        let found = study.asked(&experiment, vec![Box::new(party)], &own).expect("released");
        let epsilon = found.label_privacy().and_then(|labels| labels.epsilon).expect("a bound");
        assert!((epsilon - 4f64.ln()).abs() < 1e-9, "{epsilon}");
        let of_primary = &found.record().expect("a record").of_primary;
        assert!(of_primary.contains("a randomised label of each training row (ε = 1.3863"), "{of_primary}");
        let places = places.lock().expect("no panic").take().expect("asked");
        assert!((places.label_truth - 2.0 / 3.0).abs() < 1e-9, "{}", places.label_truth);
        // The order of the file does not leave.
        assert!(places.keys.digests().is_sorted());
        let Keys::Numbers(times) = &places.keys else { panic!("times") };
        // Every row has its number as its time.
        let mut answers = vec![0; places.labels.len()];
        times.values().iter().zip(&places.labels).for_each(|(time, label)| answers[*time as usize] = *label);
        answers
    };
    let answers = heard(&[], 7);
    let labels = study.data(&study.experiment(&[])).labels;
    let training: Vec<usize> = (0..answers.len()).filter(|&row| answers[row] > 0).collect();
    let is_true = |&&row: &&usize| f64::from(answers[row] - 1) == labels[row];
    let (rows, found) = (training.len() as f64, training.iter().filter(is_true).count() as f64);
    assert!(
        rows >= 300.0 && (found - rows * 2.0 / 3.0).abs() < 6.0 * (rows * 2.0 / 9.0).sqrt(),
        "{found} {rows}"
    );
    // Another split and other settings of the release repeat the answers of the rows that both runs train on.
    let again = heard(&["seed=5", "release.epsilon=2"], 7);
    let common: Vec<usize> = training.iter().copied().filter(|&row| again[row] > 0).collect();
    assert!(common.len() > 150 && common.iter().all(|&row| again[row] == answers[row]));
    assert!(training.iter().any(|&row| again[row] == 0), "another split");
    let other = heard(&[], 8);
    assert!(training.iter().any(|&row| other[row] != answers[row]), "another seed");
}

/// Two rows have each key, and nearly all rows train. The first of the file gives the label, in any order of the records and for
/// any seed; answers of the other rows would differ for half of the keys.
#[test]
fn rows_with_one_key_have_one_answer_in_any_order_and_split() {
    let study = Study { folder: tempfile::tempdir().expect("a temporary folder"), ..Study::codes() };
    let folder = study.folder.path();
    record_code::tables(folder, 400);
    let patients = crate::command::read(folder, "patients.csv");
    let paired = patients.lines().enumerate().map(|(place, line)| match line.split_once(',') {
        Some((time, rest)) if place > 0 => {
            format!("{},{rest}\n", time.parse::<usize>().expect("a number") / 2)
        }
        _ => format!("{line}\n"),
    });
    crate::command::write(folder, "patients.csv", &paired.collect::<String>());
    let labels = |seed: &str, order: u8| -> Vec<u32> {
        let sets = [
            "labels={kind='randomised-response', epsilon=0.1}",
            "split.validation=0.01",
            "split.test=0.01",
            seed,
        ];
        let experiment = study.experiment(&sets);
        let mut data = study.data(&experiment);
        let table = data.secondaries.remove(0);
        let data = fet_federation::data::reordered(data, &OwnSeed::new([order; 32]));
        let (policy, places, rows) = (Policy::default(), Arc::default(), data.labels.len());
        let names = [table.name.clone()];
        let party = Listener(study.party(&experiment, table, 1, &Own::new(&policy)), Arc::clone(&places));
        let own = OwnSeed::new([7; 32]);
        let mut releasing = ReleasingParties::new(&experiment, &data, &names, &own).expect("prepared");
        releasing.join(vec![Box::new(party)], rows, 1).expect("joined");
        releasing.release(data).expect("released");
        let places = places.lock().expect("no panic").take().expect("asked");
        assert_eq!(places.labels.len(), 200);
        places.labels
    };
    let first = labels("seed=4", 1);
    for (seed, order) in [("seed=5", 1), ("seed=4", 2), ("seed=6", 3)] {
        let other = labels(seed, order);
        let differ = first.iter().zip(&other).filter(|(one, other)| one != other).count();
        // At most 8 rows of each run do not train, of 400.
        assert!(differ <= 16, "{seed} {order}: {differ} of 200");
    }
}

/// Other training rows have other labels, on which the means depend.
#[test]
fn account_counts_symbols_for_other_labels_again() {
    let study = Study::codes();
    let (policy, data) = (Policy::default(), study.data(&study.experiment(&[])));
    let (experiment, own) = (study.experiment(&[]), Own::new(&policy));
    let table = data.secondaries[0].clone();
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let own = Own { tell: Arc::new(move |line| heard.lock().expect("no panic").push(line)), ..own };
    let mut epsilons = Vec::new();
    for (label, label_truth) in [(1, 1.0), (2, 1.0), (1, 1.0), (1, 0.9)] {
        let mut party = study.party(&experiment, table.clone(), 1, &own);
        party.ask(Request::Join(joining(&experiment, "laboratory", 1))).expect("agreed");
        let keys = Keys::Numbers(Matrix::new(1, vec![3.0, 8.0, 21.0]));
        let places = ReleasePlaces { keys, labels: vec![label, 0, 3], symbols: 3, label_truth };
        let reply = party.ask(Request::Release(Some(places))).expect("released");
        assert!(matches!(&reply, Reply::Released(released) if released.values.len() == 8), "{reply:?}");
        epsilons.push(study.epsilon(1));
    }
    // The second release is another one, and the third the first again. The last has another correction of the sums.
    let told = told.lock().expect("no panic");
    assert_eq!(
        told.iter().filter(|line| line.contains("differs from an earlier one")).count(),
        2,
        "{told:?}"
    );
    assert!(epsilons[1] > 1.2 * epsilons[0] && epsilons[2] == epsilons[1], "{epsilons:?}");
    assert!(epsilons[3] > 1.1 * epsilons[2], "{epsilons:?}");
}

/// A session makes one release, and all sessions with the same settings have the limit of a run.
#[test]
fn limit_of_a_run_covers_all_its_releases() {
    let study = Study::codes();
    let policy = Policy { most_epsilon: 4.5, ..with_added() };
    let (experiment, own) = (study.experiment(&[]), Own::new(&policy));
    let table = study.data(&experiment).secondaries[0].clone();
    let places = |label| {
        let keys = Keys::Numbers(Matrix::new(1, vec![3.0, 8.0, 21.0]));
        Request::Release(Some(ReleasePlaces {
            keys,
            labels: vec![label, 0, 3],
            symbols: 3,
            label_truth: 1.0,
        }))
    };
    let says = |found: Result<Reply, Failure>, parts: &[&str]| {
        let message = found.expect_err("refused").to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
    };
    let joined = || {
        let mut party = study.party(&experiment, table.clone(), 1, &own);
        party.ask(Request::Join(joining(&experiment, "laboratory", 1))).expect("agreed");
        party
    };
    let values = |reply: Reply| match reply {
        Reply::Released(released) => released.values,
        other => panic!("{other:?}"),
    };
    let mut party = joined();
    let first = party.ask(places(1)).expect("released");
    assert_eq!(values(party.ask(places(1)).expect("the same")), values(first.clone()));
    says(party.ask(places(2)), &["has made its release in this session"]);
    says(joined().ask(places(2)), &["`policy.most_epsilon` (4.5)", "ε of all releases with these settings"]);
    assert_eq!(values(joined().ask(places(1)).expect("the same")), values(first));
    assert!(study.epsilon(1) < 4.001);
    let few = Policy { least_rows: 4, ..policy.clone() };
    let mut party = study.party(&experiment, table.clone(), 1, &Own::new(&few));
    party.ask(Request::Join(joining(&experiment, "laboratory", 1))).expect("agreed");
    says(party.ask(places(1)), &["policy.least_rows", "different keys (3)"]);
}

fn with_added() -> Policy {
    Policy { neighbouring: vec![Neighbouring::Record, Neighbouring::AddRemove], ..Policy::default() }
}

/// A party that lost its seed draws other noise, and a rehearsal draws public noise: both are other releases.
#[test]
fn account_counts_a_release_with_another_seed_again() {
    let study = Study::codes();
    let policy = with_added();
    let own = Own::new(&policy);
    let first = study.released(&[], &own).expect("released");
    let one = study.epsilon(1);
    let party = study.state(1).join("party");
    for entry in std::fs::read_dir(&party).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("release-") {
            std::fs::remove_dir_all(entry.path()).expect("removed");
        } else if name == "seed" {
            std::fs::remove_file(entry.path()).expect("removed");
        }
    }
    let experiment = study.experiment(&[]);
    let table = study.data(&experiment).secondaries[0].clone();
    let other = Secondary::new(PartyConfig {
        seed: OwnSeed::new([77; 32]),
        policy: policy.clone(),
        store: Store::in_folders(party.clone(), study.state(1).join("run")),
        lifetime: Some(LifetimePlace { folder: party, account: SharedLifetime::default(), table: None }),
        ..party_config(&experiment, table, 1, 1)
    });
    let second = study.asked(&experiment, vec![Box::new(other)], &OwnSeed::new([0; 32])).expect("released");
    assert_ne!(second.released(), first.released());
    let both = study.epsilon(1);
    assert!(both > 1.3 * one, "{one} {both}");
    // The noise of a rehearsal is public, also if the same release was made with secret noise.
    let limited = Policy { lifetime_epsilon: 100.0, ..with_added() };
    let rehearsal = Own { rehearsal: true, ..Own::new(&limited) };
    refused(study.released(&[], &rehearsal), &["lifetime_epsilon", "unbounded"]);
}

/// Returns the terms of a release for a party among some number of parties.
fn joining(experiment: &Experiment, name: &str, parties: usize) -> Terms {
    let settings = experiment.common().terms();
    Terms {
        settings_hash: fet_io::sha256(settings.as_bytes()),
        settings,
        name: name.to_string(),
        parties,
        parts: Parts::default(),
        ..terms(experiment)
    }
}

#[test]
fn limits_and_lists_of_a_policy_bind_releases() {
    let study = Study::surfaces();
    let with = |change: fn(&mut Policy)| {
        let mut policy = Policy::default();
        change(&mut policy);
        policy
    };
    let refuse = |sets: &[&str], change: fn(&mut Policy), parts: &[&str]| {
        let policy = with(change);
        refused(study.released(sets, &Own::new(&policy)), parts);
        assert!(!study.state(1).join("party/seed").exists(), "nothing was drawn");
    };
    refuse(
        &[],
        |policy| policy.most_epsilon = 2.9,
        &["\"hosts\", Join", "most_epsilon", "3.0000 at δ = 1e-5", "it is 2.9"],
    );
    refuse(
        &[],
        |policy| (policy.most_epsilon, policy.most_delta) = (3.0, 1e-7),
        &["most_epsilon", "δ = 1e-7"],
    );
    refuse(&[], |policy| policy.lifetime_epsilon = 2.0, &["lifetime_epsilon", "3.0000", "it is 2"]);
    refuse(
        &[],
        |policy| policy.releases = vec!["record-code".into()],
        &["policy.releases", "must name \"surface\""],
    );
    refuse(
        &[],
        |policy| policy.mechanisms = vec!["discrete-gaussian".into()],
        &["policy.releases", "policy.mechanisms"],
    );
    let misplaced = Policy { mechanisms: vec!["record-code".into()], ..Policy::default() };
    let error = misplaced.check().expect_err("refused").to_string();
    assert!(
        error.contains("`policy.mechanisms`") && error.contains("belong to `policy.releases`"),
        "{error}"
    );
    refuse(&[], |policy| policy.least_summed = 3, &["policy.releases", "policy.least_summed"]);
    refuse(&[], |policy| policy.least_rows = 61, &["least_rows", "(60)"]);
    let replaced = |policy: &mut Policy| policy.most_epsilon = 8.0;
    let added = "release.neighbouring=add-remove";
    refuse(&[added], replaced, &["policy.neighbouring", "release.neighbouring", "replacement"]);
    refuse(
        &[],
        |policy| policy.neighbouring = vec![Neighbouring::AddRemove],
        &["policy.neighbouring", "must name \"record\""],
    );
    let named = with(|policy| {
        policy.releases = vec!["surface".into()];
        policy.mechanisms = vec!["discrete-gaussian".into()];
        (policy.most_epsilon, policy.lifetime_epsilon) = (3.0, 4.0);
    });
    study.released(&[], &Own::new(&named)).expect("released");
    refused(
        study.released(&["release.finest=8"], &Own::new(&named)),
        &["lifetime_epsilon", "earlier runs spent 3.0000"],
    );
    // A party without limits is warned, and the release is made.
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let policy = Policy::default();
    let own =
        Own { tell: Arc::new(move |line| heard.lock().expect("no panic").push(line)), ..Own::new(&policy) };
    study.released(&[added], &own).expect("released");
    let told = told.lock().expect("no panic").concat();
    assert!(
        told.contains("hosts: `release.neighbouring` is \"add-remove\"")
            && told.contains("policy.neighbouring"),
        "{told}"
    );
}

/// The limit of a party covers membership, also if the run's ε covers the columns alone.
#[test]
fn limit_covers_membership_of_records_whose_columns_alone_are_protected() {
    let study = Study::codes();
    let sets = ["release.neighbouring=features"];
    let policy = |limit| Policy { most_epsilon: limit, ..Policy::default() };
    refused(
        study.released(&sets, &Own::new(&policy(4.0))),
        &["most_epsilon", "must be at least the ε of the release ("],
    );
    let found = study.released(&sets, &Own::new(&policy(8.0))).expect("released");
    let party = &found.record().expect("a record").parties[0];
    let code = party.code.expect("a code");
    // A record that moves changes the symbols of two places, and one of them becomes uniform: 1/3 against (1 - p)/2.
    let symbols = 2.0 * (2.0 / (3.0 * (1.0 - code.truth))).ln();
    let expected = gaussian::epsilon(1.0 / party.noise_multiplier, 1e-5) + symbols;
    let (stated, account) = (party.epsilon.expect("a bound"), study.epsilon(1));
    assert!(account >= expected && account < expected + 1e-3, "{account} {expected}");
    assert!(stated < 4.001 && account > 1.2 * stated, "{stated} {account}");
    assert_eq!(found.record().map(|record| record.randomness), Some(Randomness::Experiment));
}

#[test]
fn party_refuses_other_settings_other_requests_and_wrong_places() {
    let study = Study::codes();
    let (experiment, policy) = (study.experiment(&[]), Policy::default());
    let table = study.data(&experiment).secondaries[0].clone();
    let party = || study.party(&experiment, table.clone(), 1, &Own::new(&policy));
    let says = |found: Result<Reply, Failure>, parts: &[&str]| {
        let message = found.expect_err("refused").to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in {message}");
    };
    let of = |sets: &[&str]| Request::Join(joining(&study.experiment(sets), "laboratory", 1));
    says(
        party().ask(of(&["release.epsilon=5"])),
        &["`release.epsilon`", "the primary has 5.0, this party has 4.0"],
    );
    says(party().ask(of(&["seed=5"])), &["`seed`"]);
    let without = parsed(record_code::EXPERIMENT.split("[release]").next().expect("text"), &[]);
    let terms_without = joining(&without, "laboratory", 1);
    says(party().ask(Request::Join(terms_without)), &["`release.kind`", "the primary has nothing"]);
    let mut plain = Secondary::new(party_config(&without, table.clone(), 1, 1));
    says(plain.ask(of(&[])), &["`release.kind`", "this party has nothing"]);
    // A run with other settings of the primary alone has the same terms.
    party().ask(of(&["method={kind='linear-solo'}", "train.epochs=9"])).expect("agreed");

    let joined = || {
        let mut party = party();
        party.ask(of(&[])).expect("agreed");
        party
    };
    says(joined().ask(of(&[])), &["joined a run already"]);
    let forward = Forward { round: Round::Train { step: 0 }, rows: vec![0], active: vec![0], attempt: None };
    for request in [Request::Forward(forward), Request::MakeKey, Request::Finish] {
        says(joined().ask(request), &["it makes one release in this run"]);
    }
    says(party().ask(Request::Release(None)), &["has not joined"]);
    says(joined().ask(Request::Release(None)), &["`places` must be there"]);
    let places = |rows: usize, labels: Vec<u32>, symbols: u32| {
        let keys = Keys::Numbers(Matrix::new(1, (0..rows).map(|row| row as f64).collect()));
        Request::Release(Some(ReleasePlaces { keys, labels, symbols, label_truth: 1.0 }))
    };
    for (request, parts) in [
        (places(3, vec![1, 2], 3), &["`labels`", "3 entries", "it is 2"][..]),
        (places(3, vec![1, 4, 0], 3), &["`labels`", "must be 0 to 3", "it is 4"]),
        (places(2, vec![0, 0], 1), &["`symbols`", "2 to 1024"]),
        (places(2, vec![0, 0], 3), &["`symbols`", "at most the number of keys (2)"]),
        (places(2, vec![0, 0], u32::MAX), &["`symbols`"]),
        (places(101, vec![0; 101], 3), &["`places`", "at most 100 keys", "it is 101"]),
    ] {
        says(joined().ask(request), parts);
    }
    for truth in [0.0, 0.5, 1.5, f64::NAN, f64::INFINITY] {
        let mut request = places(3, vec![1, 2, 0], 2);
        if let Request::Release(Some(places)) = &mut request {
            places.label_truth = truth;
        }
        says(joined().ask(request), &["`label_truth`", "must be above 0.5", "at most 1"]);
    }
    let sealed = Keys::Sealed(fet_core::data::Sealed::new(0, 2, Vec::new()));
    let places_sealed = ReleasePlaces { keys: sealed, labels: vec![1, 2], symbols: 2, label_truth: 1.0 };
    says(joined().ask(Request::Release(Some(places_sealed))), &["`keys`", "it is sealed"]);
    let text = fet_core::data::TextTable::new(1, vec!["a".to_string(), "b".to_string()]);
    let places = ReleasePlaces { keys: Keys::Text(text), labels: vec![1, 2], symbols: 2, label_truth: 1.0 };
    says(joined().ask(Request::Release(Some(places))), &["its operator has the details"]);
    assert!(!study.state(1).join("party/seed").exists() && study.account(1)["runs"] == serde_json::json!([]));
}

/// A party that answers every request for a release with these values.
struct Liar(Secondary, Vec<i64>);

impl Party for Liar {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        match request {
            Request::Release(_) => {
                Ok(Reply::Released(ReleasedValues { values: self.1.clone(), lifetime: None }))
            }
            other => self.0.ask(other),
        }
    }
}

#[test]
fn primary_refuses_a_release_of_another_form() {
    let study = Study::codes();
    let (experiment, policy) = (study.experiment(&[]), Policy::default());
    let table = study.data(&experiment).secondaries[0].clone();
    let own = Own::new(&policy);
    let sound = study.released(&[], &own).expect("released").released();
    let Released { values, .. } = &sound[0];
    let changed = |place: usize, value: i64| {
        let mut values = values.clone();
        values[place] = value;
        values
    };
    let last = values.len() - 1;
    for values in [
        Vec::new(),
        values[..last].to_vec(),
        changed(0, 0),
        changed(0, i64::MAX),
        changed(1, 4),
        changed(2, values[2].wrapping_add(1)),
        changed(last, 3),
        changed(last, -1),
    ] {
        let liar = Liar(study.party(&experiment, table.clone(), 1, &own), values);
        refused(
            study.asked(&experiment, vec![Box::new(liar)], &OwnSeed::new([0; 32])),
            &["party \"laboratory\", Release", "`values`"],
        );
    }
    let study = Study::surfaces();
    let experiment = study.experiment(&[]);
    let own = Own { parties: 2, ..own };
    let tables = study.data(&experiment).secondaries;
    let liars = (1..).zip(tables).map(|(number, table)| {
        Box::new(Liar(study.party(&experiment, table, number, &own), vec![1; 7])) as Box<dyn Party>
    });
    refused(
        study.asked(&experiment, liars.collect(), &OwnSeed::new([0; 32])),
        &["release of hosts", "672 numbers", "it has 7"],
    );
}

#[test]
fn party_keeps_its_release_for_itself() {
    let study = Study::codes();
    let policy = Policy::default();
    study.released(&[], &Own::new(&policy)).expect("released");
    let party = study.state(1).join("party");
    let release = |folder: &Path| -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        entries.map(|entry| entry.path()).filter(|path| path.join("release.json").exists()).collect()
    };
    let kept = release(&party);
    assert_eq!(kept.len(), 1);
    // A damaged release is not drawn again without a word.
    std::fs::write(kept[0].join("release.json"), "{").expect("writable");
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let own =
        Own { tell: Arc::new(move |line| heard.lock().expect("no panic").push(line)), ..Own::new(&policy) };
    refused(study.released(&[], &own), &["its operator has the details"]);
    let told = told.lock().expect("no panic").concat();
    assert!(told.contains("release.json") && told.contains("is damaged"), "{told}");
}
