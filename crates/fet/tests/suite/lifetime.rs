//! Tests a party's lifetime account.
//!
//! The account adds up runs with different settings, over all sessions of a state folder. A party that has
//! seen a newer copy of the folder refuses an old copy.

use std::path::Path;

use fet::ledger::{LedgerAddArguments, LedgerCommand, LedgerShowArguments, ledger};
use fet_core::data::{PartyTable, Task};
use fet_core::message::{PublicKeys, Reply, Request, SignedKey, Terms};
use fet_core::party::{Failure, Party};
use fet_core::policy::Policy;
use fet_core::rng::OwnSeed;
use fet_federation::lifetime::SharedLifetime;
use fet_federation::prepare::divide;
use fet_federation::secondary::{FinishedModel, LifetimePlace, PartyConfig, Secondary, Store};
use fet_federation::trainer::{Predictor, RunError, SavedModel, Trainer};

use crate::support::{experiment, flex, party_config, square};

const NOISE: [&str; 3] = ["privacy.kind=discrete-gaussian", "privacy.target_epsilon=4.0", "train.epochs=1"];
const SECURE: &str = "aggregator.kind=secure-average";

/// Completes a run of two parties on separate machines, with their state in `states`.
fn run(sets: &[&str], states: &Path, policy: &Policy) -> Result<Trainer, RunError> {
    let (experiment, machine) = (experiment(sets), fet::run::machine(&flex()));
    let (primary, tables) = divide(square(100, Task::Regression));
    let party = |(number, table): (usize, PartyTable)| {
        let state = states.join(number.to_string());
        let own = state.join("party");
        Secondary::new(PartyConfig {
            file: "second.csv".into(),
            seed: OwnSeed::new([number as u8; 32]),
            policy: policy.clone(),
            store: Store::in_folders(own.clone(), state.join("run")),
            lifetime: Some(LifetimePlace { folder: own, account: SharedLifetime::default(), table: None }),
            ..party_config(&experiment, table, number + 1, 2)
        })
    };
    let parties = tables.into_iter().enumerate().map(party);
    let parties = parties.map(|party| Box::new(party) as Box<dyn Party>).collect();
    let mut trainer = Trainer::new(&experiment, primary, parties, Vec::new(), &machine)?;
    while !trainer.is_done() {
        trainer.epoch(&mut |_| true)?;
    }
    trainer.finish()?;
    Ok(trainer)
}

/// Returns arguments that add some number of releases with some noise.
fn adding(place: &Path, releases: Option<(f64, u64)>) -> LedgerAddArguments {
    let (noise, releases) = releases.unzip();
    LedgerAddArguments { place: place.to_path_buf(), noise, releases, symbols: 0.0, rate: 1.0, age: None }
}

/// Returns the account of a party, in the form of `fet ledger show --json`.
fn shown(state: &Path) -> serde_json::Value {
    let show = LedgerShowArguments { place: state.to_path_buf(), delta: None, json: true };
    serde_json::from_str(&ledger(&LedgerCommand::Show(show)).expect("an account")).expect("JSON")
}

#[test]
fn counts_runs_with_different_seeds_together_up_to_the_limit() {
    let states = tempfile::tempdir().expect("a folder");
    let policy = |limit: f64| Policy {
        lifetime_epsilon: limit,
        neighbouring: vec![fet_core::privacy::Neighbouring::Replace],
        ..Policy::default()
    };
    let first = run(&NOISE, states.path(), &policy(0.0)).expect("a run");
    assert!(!first.warnings().concat().contains("lifetime"), "{:?}", first.warnings());
    let spent = first.spent().and_then(|spent| spent.epsilon).expect("a bound");
    drop(first);
    let account = shown(&states.path().join("0"));
    let one = account["epsilon"].as_f64().expect("a bound");
    assert!((one - spent).abs() < 1e-3 * spent, "{account} {spent}");
    let other = [&NOISE[..], &["seed=1"]].concat();
    let refused = run(&other, states.path(), &policy(4.5)).err().expect("refused").to_string();
    for part in ["policy.lifetime_epsilon", "Join", "earlier runs spent", "it is 4.5"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    let second = run(&other, states.path(), &policy(8.0)).expect("a run");
    let warnings = second.warnings().concat();
    assert!(warnings.contains("party \"first\": its lifetime account has 1 earlier runs"), "{warnings}");
    drop(second);
    let account = shown(&states.path().join("0"));
    let both = account["epsilon"].as_f64().expect("a bound");
    assert!(both > 1.3 * one && both < 2.0 * one, "{account}");
    assert_eq!(account["runs"].as_array().map(Vec::len), Some(2));
    // Repeating the same run releases the same bytes, which are already counted.
    run(&other, states.path(), &policy(8.0)).expect("a run");
    assert_eq!(shown(&states.path().join("0"))["epsilon"].as_f64(), Some(both));
    for rate in [0.0, -0.1, 1.5, f64::NAN] {
        let add = LedgerAddArguments { rate, ..adding(&states.path().join("0"), Some((1.0, 1))) };
        let refused = ledger(&LedgerCommand::Add(add)).expect_err("refused").to_string();
        assert!(refused.contains("--rate must be above 0"), "{refused}");
    }
    assert_eq!(shown(&states.path().join("0"))["epsilon"].as_f64(), Some(both));
}

/// Joins the finished models of a run for predictions, in another session.
fn serving(sets: &[&str], states: &Path, policy: &Policy, trainer: &Trainer) -> Result<Predictor, RunError> {
    let (experiment, machine) = (experiment(sets), fet::run::machine(&flex()));
    let (_, tables) = divide(square(100, Task::Regression));
    let party = |(number, table): (usize, PartyTable)| {
        let state = states.join(number.to_string());
        let own = state.join("party");
        let model = std::fs::read(state.join("run/model.safetensors")).expect("the run has ended");
        Secondary::new(PartyConfig {
            seed: OwnSeed::new([number as u8; 32]),
            policy: policy.clone(),
            store: Store::in_folders(own.clone(), state.join("run")),
            lifetime: Some(LifetimePlace { folder: own, account: SharedLifetime::default(), table: None }),
            model: Some(FinishedModel::read(&model).expect("a model")),
            ..party_config(&experiment, table, number + 1, 2)
        })
    };
    let parties = tables.into_iter().enumerate().map(party);
    let parties = parties.map(|party| Box::new(party) as Box<dyn Party>).collect();
    let saved = SavedModel::from_trainer(trainer, &serde_json::Value::Null, None);
    Predictor::new(&experiment, &saved, parties, Vec::new(), &machine)
}

/// Every batch of predictions with noise is one more release with fresh noise. The lifetime account counts it and ends
/// the predictions at its limit; a party without such a limit does not predict.
#[test]
fn predictions_with_noise_count_up_to_the_limit() {
    let frozen = ["privacy.learning=frozen", "privacy.max_occurrences=3", "privacy.target_epsilon=1.0"];
    for sets in [&[][..], &[SECURE], &frozen] {
        let sets = [&NOISE[..2], &["train.epochs=1", "train.evaluation_batch_size=8"], sets].concat();
        let states = tempfile::tempdir().expect("a folder");
        let policy = |limit: f64| Policy {
            lifetime_epsilon: limit,
            predictions: true,
            neighbouring: vec![fet_core::privacy::Neighbouring::Replace],
            ..Policy::default()
        };
        let trainer = run(&sets, states.path(), &policy(0.0)).expect("a run");
        let epsilon = || shown(&states.path().join("0"))["epsilon"].as_f64().expect("a bound");
        let before = epsilon();
        let refused =
            serving(&sets, states.path(), &policy(0.0), &trainer).err().expect("refused").to_string();
        assert!(refused.contains("`policy.lifetime_epsilon` must be above 0"), "{refused}");
        let (primary, _) = divide(square(100, Task::Regression));
        let rows: Vec<usize> = (0..16).collect();
        let (keys, features) =
            (primary.table.keys.select_rows(&rows), primary.table.features.select_rows(&rows));
        let table = PartyTable { name: primary.table.name, keys, features, bounds: None };
        let mut predictor = serving(&sets, states.path(), &policy(100.0), &trainer).expect("joined");
        let first = predictor.predict(table.clone()).expect("predictions");
        assert_ne!(predictor.predict(table.clone()).expect("again"), first, "{sets:?}: the noise is fresh");
        let spent = predictor.spent().and_then(|spent| spent.epsilon).expect("a bound");
        drop(predictor);
        let after = epsilon();
        assert!(after > before && after > spent && after < before + spent, "{before}, {spent}, {after}");
        let account = shown(&states.path().join("0"));
        let entry = account["runs"].as_array().and_then(|runs| runs.last().cloned()).expect("a session");
        assert!(entry["run"].as_str().expect("a name").starts_with("predictions-"), "{entry}");
        let counted = entry["epsilon"].as_f64().expect("a bound");
        assert!(
            (counted - spent).abs() <= 1e-6 * spent,
            "{sets:?}: the primary says {spent}, the party {counted}"
        );
        let mut predictor = serving(&sets, states.path(), &policy(100.0), &trainer).expect("joined");
        let other = predictor.predict(table.clone()).expect("predictions");
        assert_ne!(other, first, "{sets:?}: another session has other noise");
        drop(predictor);
        let after = epsilon();
        let mut predictor = serving(&sets, states.path(), &policy(1.02 * after), &trainer).expect("joined");
        let refused =
            (0..1000).find_map(|_| predictor.predict(table.clone()).err()).expect("the limit").to_string();
        for part in ["its account refuses", "policy.lifetime_epsilon"] {
            assert!(refused.contains(part), "{part} in {refused}");
        }
        drop(predictor);
        assert!(epsilon() <= 1.02 * after * (1.0 + 1e-9), "{} above {}", epsilon(), 1.02 * after);
    }
}

/// A request whose keys are kept is answered without the parties, whatever its other columns are. Its predictions are those
/// of the parties' answers, and with noise it is no further release.
#[test]
fn kept_records_are_predicted_without_the_parties() {
    let (primary, _) = divide(square(100, Task::Regression));
    let table = |keys: &[usize], features: &[usize]| {
        let PartyTable { name, keys: all, features: of_all, .. } = primary.table.clone();
        let (keys, features) = (all.select_rows(keys), of_all.select_rows(features));
        PartyTable { name, keys, features, bounds: None }
    };
    let (rows, others): (Vec<usize>, Vec<usize>) = ((0..20).collect(), (40..60).collect());
    for sets in [
        &[][..],
        &["aggregator.kind=similarity-weighted"],
        &["method.kind=fedsim"],
        &["method.kind=fet-pool"],
        &[SECURE],
        &[SECURE, "privacy.kind=discrete-gaussian", "privacy.target_epsilon=4.0"],
    ] {
        let noisy = sets.len() > 2;
        let sets = [&["train.epochs=1", "train.evaluation_batch_size=8"], sets].concat();
        let states = tempfile::tempdir().expect("a folder");
        let policy = Policy {
            lifetime_epsilon: if noisy { 100.0 } else { 0.0 },
            predictions: true,
            neighbouring: noisy.then_some(fet_core::privacy::Neighbouring::Replace).into_iter().collect(),
            ..Policy::default()
        };
        let trainer = run(&sets, states.path(), &policy).expect("a run");
        let predict = |predictor: &mut Predictor, keys: &[usize], features: &[usize]| {
            predictor.predict(table(keys, features)).expect("predictions")
        };
        let mut plain = serving(&sets, states.path(), &policy, &trainer).expect("joined");
        let expected = predict(&mut plain, &rows, &rows);
        let expected_of_others = predict(&mut plain, &rows, &others);
        assert_eq!(plain.known_records(), 0, "{sets:?}");
        assert_ne!(expected, expected_of_others, "{sets:?}: the primary's columns count");
        drop(plain);
        let mut keeping = serving(&sets, states.path(), &policy, &trainer).expect("joined");
        keeping.keep(40);
        let first = predict(&mut keeping, &rows, &rows);
        let spent = keeping.spent().and_then(|spent| spent.epsilon);
        assert_eq!(keeping.known_records(), 0, "{sets:?}");
        assert_eq!(predict(&mut keeping, &rows, &rows), first, "{sets:?}: kept");
        assert_eq!(predict(&mut keeping, &rows[3..7], &rows[3..7]).values(), &first.values()[3..7]);
        let of_others = predict(&mut keeping, &rows, &others);
        assert_eq!(keeping.known_records(), 44, "{sets:?}");
        assert_eq!(keeping.spent().and_then(|spent| spent.epsilon), spent, "{sets:?}: no further release");
        if !noisy {
            assert_eq!((&first, &of_others), (&expected, &expected_of_others), "{sets:?}");
        }
        // One new key has the parties asked for all.
        let with_new: Vec<usize> = rows[..3].iter().chain(&others[..1]).copied().collect();
        predict(&mut keeping, &with_new, &with_new);
        assert_eq!(keeping.known_records(), 44, "{sets:?}");
        // A small cache evicts.
        keeping.keep(8);
        predict(&mut keeping, &rows, &rows);
        predict(&mut keeping, &rows, &rows);
        assert_eq!(keeping.known_records(), 44, "{sets:?}: the first rows were evicted");
        predict(&mut keeping, &rows[16..], &rows[16..]);
        assert_eq!(keeping.known_records(), 48, "{sets:?}: the last rows were kept");
    }
}

#[test]
fn run_without_a_mechanism_makes_the_total_unbounded() {
    let states = tempfile::tempdir().expect("a folder");
    let limited = Policy { lifetime_epsilon: 50.0, ..Policy::default() };
    let refused = run(&["train.epochs=1"], states.path(), &limited).err().expect("refused").to_string();
    assert!(refused.contains("policy.lifetime_epsilon") && refused.contains("unbounded"), "{refused}");
    run(&["train.epochs=1"], states.path(), &Policy::default()).expect("a run");
    let account = shown(&states.path().join("1"));
    assert!(account["epsilon"].is_null(), "{account}");
    assert!(account["notes"].to_string().contains("is unbounded"), "{account}");
    let refused = run(&NOISE, states.path(), &limited).err().expect("refused").to_string();
    assert!(refused.contains("earlier runs spent unbounded"), "{refused}");
}

/// One party restores its state folder from before a run. The other party knows its signed age, and refuses
/// to agree on keys.
#[test]
fn other_party_of_secure_sums_refuses_an_old_copy() {
    let states = tempfile::tempdir().expect("a folder");
    let sets = |seed: &'static str| [&NOISE[..], &[SECURE, seed]].concat();
    let account = states.path().join("1/party").join(fet_federation::lifetime::FILE);
    run(&sets("seed=0"), states.path(), &Policy::default()).expect("a run");
    let copy = std::fs::read(&account).expect("there");
    run(&sets("seed=1"), states.path(), &Policy::default()).expect("a run");
    std::fs::write(&account, copy).expect("writable");
    let refused = run(&sets("seed=2"), states.path(), &Policy::default()).err().expect("refused").to_string();
    for part in ["party \"first\"", "AgreeOnKeys", "party 2", "old copy", "fet ledger add"] {
        assert!(refused.contains(part), "{part} in {refused}");
    }
    let age = refused.split("--age ").nth(1).and_then(|rest| rest.split('`').next()).expect("an age");
    let place = states.path().join("1");
    let age = Some(age.parse().expect("a number"));
    let add = LedgerAddArguments { age, ..adding(&place, Some((3.0, 20))) };
    let text = ledger(&LedgerCommand::Add(add)).expect("added");
    assert!(text.contains("added by the operator"), "{text}");
    run(&sets("seed=2"), states.path(), &Policy::default())
        .expect("the account contains the forgotten releases");
}

/// Secondaries of one session, which share their accounts with those of another session.
struct Joining {
    parties: [Secondary; 2],
    terms: [Terms; 2],
    keys: Vec<SignedKey>,
}

impl Joining {
    fn new(seed: &str, states: &Path, accounts: &[SharedLifetime; 2]) -> Self {
        let experiment = experiment(&[SECURE, seed]);
        let (_, tables) = divide(square(100, Task::Regression));
        let names = [tables[0].name.clone(), tables[1].name.clone()];
        let mut tables = tables.into_iter();
        let parties = [0, 1].map(|number| {
            let folder = states.join(number.to_string());
            let lifetime = LifetimePlace { folder, account: accounts[number].clone(), table: None };
            let table = tables.next().expect("two tables");
            Secondary::new(PartyConfig {
                lifetime: Some(lifetime),
                ..party_config(&experiment, table, number + 1, 2)
            })
        });
        let terms = [0, 1].map(|party| Terms {
            name: names[party].clone(),
            number: party + 1,
            ..crate::support::terms(&experiment)
        });
        Self { parties, terms, keys: Vec::new() }
    }

    /// Asks the parties for the next step of the session: one joins, the other joins, both make keys, both agree.
    fn step(&mut self, step: usize, first: usize) -> Result<(), Failure> {
        match step {
            0 | 1 => {
                let party = (first + step) % 2;
                self.parties[party].ask(Request::Join(self.terms[party].clone())).map(drop)
            }
            2 => self.parties.iter_mut().try_for_each(|party| match party.ask(Request::MakeKey)? {
                Reply::Key(key) => {
                    self.keys.push(key);
                    Ok(())
                }
                other => panic!("{other:?}"),
            }),
            _ => {
                let keys = PublicKeys { parties: vec![0, 1], keys: self.keys.clone() };
                self.parties
                    .iter_mut()
                    .try_for_each(|party| party.ask(Request::AgreeOnKeys(keys.clone())).map(drop))
            }
        }
    }
}

/// Two sessions of the same parties join and agree on keys at the same time, in every order. No party takes the
/// account of the other for an old copy, and each still notices an old copy.
#[test]
fn sessions_at_the_same_time_agree_on_keys_in_any_order() {
    let orders = (0..1u32 << 8).filter(|order| order.count_ones() == 4);
    let mut count = 0;
    for order in orders {
        let states = tempfile::tempdir().expect("a folder");
        let accounts = [(); 2].map(|()| SharedLifetime::default());
        let mut sessions = ["seed=0", "seed=1"].map(|seed| Joining::new(seed, states.path(), &accounts));
        let mut steps = [0; 2];
        for place in 0..8 {
            let which = (order >> place) as usize & 1;
            let done = sessions[which].step(steps[which], which);
            done.unwrap_or_else(|error| panic!("{order:08b}, step {} of {which}: {error}", steps[which]));
            steps[which] += 1;
        }
        drop(sessions);
        let account = states.path().join("1").join(fet_federation::lifetime::FILE);
        let text = std::fs::read_to_string(&account).expect("an account");
        let (copy, _) = text.trim_end().rsplit_once('\n').expect("several lines");
        std::fs::write(&account, format!("{copy}\n")).expect("writable");
        // The parties also refuse the copy in repeated and simultaneous sessions.
        for _ in 0..3 {
            let accounts = [(); 2].map(|()| SharedLifetime::default());
            let mut later = ["seed=2", "seed=3"].map(|seed| Joining::new(seed, states.path(), &accounts));
            for step in 0..2 {
                later.iter_mut().for_each(|session| session.step(step, 0).expect("joined"));
            }
            for session in later.iter_mut().rev() {
                let refused =
                    (2..4).find_map(|step| session.step(step, 0).err()).map(|error| error.to_string());
                let refused = refused.expect("an old copy");
                assert!(
                    refused.contains("party 2") && refused.contains("old copy"),
                    "{order:08b}: {refused}"
                );
            }
        }
        count += 1;
    }
    assert_eq!(count, 70);
}

/// The symbols of a lost `record-code` release have most of its ε, and a statement that nothing is missing only makes the
/// account older.
#[test]
fn adds_symbols_and_states_that_no_release_is_missing() {
    let states = tempfile::tempdir().expect("a folder");
    run(&NOISE, states.path(), &Policy::default()).expect("a run");
    let place = states.path().join("0");
    let before = shown(&place);
    let add = |arguments| ledger(&LedgerCommand::Add(arguments));
    let refused = add(LedgerAddArguments { age: Some(u64::MAX), ..adding(&place, None) });
    assert!(refused.expect_err("refused").to_string().contains("--age must be at most"));
    let stated = LedgerAddArguments { age: Some(90), ..adding(&place, None) };
    add(stated).expect("stated");
    let after = shown(&place);
    assert_eq!((after["epsilon"].clone(), after["age"].as_u64()), (before["epsilon"].clone(), Some(1090)));
    assert_eq!(after["runs"], before["runs"]);
    // The noise alone is that of ε = 0.8, and its symbols have 3.2.
    let lost = LedgerAddArguments { symbols: 3.2, ..adding(&place, Some((4.5728, 1))) };
    add(lost).expect("added");
    let epsilon = |account: &serde_json::Value| account["epsilon"].as_f64().expect("a bound");
    let grown = epsilon(&shown(&place)) - epsilon(&before);
    assert!(grown > 3.2 && grown < 4.01, "{grown}");
    let last = shown(&place)["runs"].as_array().and_then(|runs| runs.last().cloned()).expect("a run");
    assert!((epsilon(&last) - 4.0).abs() < 0.001, "{last}");
    for symbols in [-1.0, f64::NAN, f64::INFINITY] {
        let wrong = LedgerAddArguments { symbols, ..adding(&place, Some((4.0, 1))) };
        assert!(add(wrong).expect_err("refused").to_string().contains("--symbols must be at least 0"));
    }
    let none = add(adding(&place, Some((4.0, 0)))).expect_err("refused").to_string();
    assert!(none.contains("--releases must be at least 1"), "{none}");
}
