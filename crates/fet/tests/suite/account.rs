//! Tests a party's own account: each release counts before it leaves, no matter which process ends when, and
//! the party stops at its limit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fet_core::data::{Matrix, Task, VerticalData};
use fet_core::message::{Backward, Block, Forward, LinkKeys, Reply, Request, Round};
use fet_core::party::Party;
use fet_federation::checkpoint;
use fet_federation::prepare::divide;
use fet_federation::secondary::Secondary;
use fet_federation::simulation::{ObservedParty, Simulation};
use fet_federation::trainer::{RunError, Trainer};

use crate::support::{experiment, flex, losses, silent_party, square, terms, vanishing_party};

const SECURE: &str = "aggregator.kind=secure-average";
pub(crate) const NOISE: &str = "privacy.kind=discrete-gaussian";

/// Returns data with several secondaries, which share the tables of two.
pub(crate) fn many(rows: usize, parties: usize) -> VerticalData {
    let mut data = square(rows, Task::Regression);
    for number in 3..=parties {
        let mut more = data.secondaries[number % 2].clone();
        more.name = format!("party {number}");
        data.secondaries.push(more);
    }
    data
}

/// Starts a session of a run whose parties keep their state in `folder`.
pub(crate) fn session(
    sets: &[&str],
    data: VerticalData,
    folder: &Path,
    gone: Vec<usize>,
    mut wrap: impl FnMut(usize, ObservedParty) -> Box<dyn Party>,
) -> Result<(Trainer, Vec<ObservedParty>), RunError> {
    let (experiment, machine) = (experiment(sets), fet::run::machine(&flex()));
    let simulation = Simulation { folder: Some(folder), ..Simulation::new(&experiment, &machine) };
    let (primary, tables) = divide(data);
    let watched: Vec<ObservedParty> =
        simulation.secondaries(tables)?.into_iter().map(ObservedParty::new).collect();
    let parties = watched.iter().cloned().enumerate().map(|(index, party)| wrap(index, party)).collect();
    Ok((Trainer::new(&experiment, primary, parties, gone, &machine)?, watched))
}

pub(crate) fn plain(sets: &[&str], folder: &Path) -> (Trainer, Vec<ObservedParty>) {
    session(sets, many(100, 2), folder, Vec::new(), |_, party| Box::new(party)).expect("a trainer")
}

/// Drops a session, as if its process had been killed.
pub(crate) fn kill(session: (Trainer, Vec<ObservedParty>)) {
    std::mem::forget(session);
}

/// Returns the request for step `number` of the first epoch with these parties.
pub(crate) fn step(trainer: &Trainer, number: usize, active: &[u32]) -> Request {
    let rows =
        trainer.schedule().batches(0).get(number).expect("a batch").iter().map(|&row| row as u32).collect();
    let round = Round::Train { step: number as u64 };
    Request::Forward(Forward { round, rows, active: active.to_vec(), attempt: None })
}

pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, impl ToString>, parts: &[&str]) {
    let error = answer.expect_err("refused").to_string();
    parts.iter().for_each(|part| assert!(error.contains(part), "{part} in {error}"));
}

fn ledger(folder: &Path, party: usize) -> PathBuf {
    let entries = std::fs::read_dir(folder.join(format!("party{party}"))).expect("a folder");
    let mut paths = entries.map(|entry| entry.expect("readable").path());
    let is_ledger =
        |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("ledger-"));
    paths.find(is_ledger).expect("a ledger")
}

/// The plan has three training steps, a validation and a test. A killed session has saved nothing; its
/// releases count.
#[test]
fn counts_the_release_of_a_killed_party_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, "privacy.noise=200", "train.epochs=1"];
    let mut first = plain(&sets, folder.path());
    let asked: Vec<Request> = (0..3).map(|number| step(&first.0, number, &[0, 1])).collect();
    let ask =
        |session: &mut (Trainer, Vec<ObservedParty>), request: &Request| session.1[0].ask(request.clone());
    let replies: Vec<Reply> =
        asked.iter().map(|request| ask(&mut first, request).expect("planned")).collect();
    kill(first);
    // The same request repeats the same bytes, so the whole run is still available.
    let mut second = plain(&sets, folder.path());
    let again: Vec<Reply> = asked.iter().map(|request| ask(&mut second, request).expect("again")).collect();
    assert_eq!(replies, again);
    kill(second);
    // Another set of parties is another release: two of the five remain, and then none.
    let mut third = plain(&sets, folder.path());
    let others: Vec<Request> = (0..3).map(|number| step(&third.0, number, &[0])).collect();
    ask(&mut third, &others[0]).expect("the fourth");
    let Reply::Representation(fifth) = ask(&mut third, &others[1]).expect("the fifth") else {
        panic!("a block")
    };
    refused(ask(&mut third, &others[2]), &["account", "ε must be at most that of the planned run"]);
    // The sixth step has overwritten the encoder's state for the fifth, so the party has no state to learn from.
    let gradient = Block::new(fifth.shape(), vec![1.0; fifth.values().len()]).expect("it fills its shape");
    let backward = Backward { round: Round::Train { step: 1 }, gradient, learning_rate: 0.1 };
    refused(ask(&mut third, &Request::Backward(backward)), &["no training representation"]);
    kill(third);
    let mut fourth = plain(&sets, folder.path());
    refused(ask(&mut fourth, &others[2]), &["at most that of the planned run"]);
    // Party 2 received no request; its account is separate.
    assert!(fourth.1[1].ask(step(&fourth.0, 2, &[0, 1])).is_ok());
}

/// A run that was killed after its first epoch and resumed from the checkpoint costs as much as an
/// uninterrupted run.
#[test]
fn resumed_run_ends_within_its_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [SECURE, NOISE, "privacy.target_epsilon=3", "train.epochs=3"];
    let identity = serde_json::json!({"name": "test"});
    let open = || {
        session(&sets, many(100, 3), folder.path(), Vec::new(), |_, party| Box::new(party)).expect("sound")
    };
    let mut first = open();
    losses(&mut first.0);
    let bytes = checkpoint::save(&mut first.0, &identity, 0.0).expect("saved");
    losses(&mut first.0);
    kill(first);
    let (mut second, _parties) = open();
    checkpoint::load(&mut second, &identity, &bytes).expect("its own");
    while !second.is_done() {
        losses(&mut second);
    }
    let spent = second.spent().and_then(|spent| spent.epsilon).expect("bounded");
    assert!(spent <= 3.0, "{spent}");
}

/// If a party drops out and the remaining run costs more than planned, the other parties' accounts stop the
/// run, with rule and value.
#[test]
fn account_stops_a_run_with_rule_and_value() {
    let base = [SECURE, NOISE, "privacy.neighbouring=record", "train.epochs=4"];
    let run = |sets: &[&str], from: u64| {
        let folder = tempfile::tempdir().expect("a folder");
        let sets = [base.as_slice(), sets].concat();
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            let from = if index == 1 { from } else { u64::MAX };
            vanishing_party(party, Arc::new(from.into()))
        };
        let (mut trainer, parties) =
            session(&sets, many(200, 4), folder.path(), Vec::new(), wrap).expect("sound");
        let mut whole = true;
        while !trainer.is_done() {
            whole = trainer.epoch(&mut |_| true).expect("no error").is_some();
        }
        trainer.finish().expect("models are kept");
        drop(parties);
        let why = trainer.warnings().iter().find(|warning| warning.contains("within the next")).cloned();
        assert_eq!(whole, why.is_none(), "{why:?}");
        (trainer.spent().and_then(|spent| spent.epsilon), why)
    };
    let (planned, error) = run(&["privacy.noise=10"], u64::MAX);
    let planned = planned.expect("bounded");
    assert_eq!(error, None);
    let most = format!("policy.most_epsilon={}", planned * 1.02);
    let (whole, error) = run(&["privacy.noise=10", &most], u64::MAX);
    assert_eq!((whole, error), (Some(planned), None), "a run without dropped parties stays within the limit");
    let (stopped, error) = run(&["privacy.noise=10", &most], 3);
    let error = error.expect("refused");
    let parts =
        ["after 2 of 4 epochs", "account refuses", "ε must be at most `policy.most_epsilon`", "; it is"];
    for part in parts {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(
        stopped.is_some_and(|stopped| stopped <= planned * 1.05 && stopped > 0.8 * planned),
        "{stopped:?}"
    );
    // The party drops out within the last epoch. The trainer, which checks only between epochs, continues,
    // while the parties stop.
    let (_, error) = run(&["privacy.target_epsilon=4"], 16);
    let error = error.expect("refused");
    assert!(error.contains("privacy.target_epsilon` (4)"), "{error}");
}

/// A party that loses another party in the middle of its only release sends different sums after the run
/// resumes: a second release.
#[test]
fn counts_a_frozen_release_twice_if_its_bytes_differ() {
    let base = [
        SECURE,
        NOISE,
        "privacy.learning=frozen",
        "privacy.max_occurrences=2",
        "train.evaluation_batch_size=64",
        "train.epochs=3",
    ];
    let identity = serde_json::json!({"name": "test"});
    // Returns the messages and the ε of a run's second session after the checkpoint is lost; the first
    // session was killed after one epoch.
    let run = |lose: bool, sets: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let sets = [base.as_slice(), sets].concat();
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            let lost =
                |request: &Request| request.round().is_some_and(|round| round >= Round::Once { batch: 1 });
            if lose && index == 1 { silent_party(party, lost) } else { Box::new(party) }
        };
        let mut first = session(&sets, many(200, 4), folder.path(), Vec::new(), wrap).expect("sound");
        losses(&mut first.0);
        let bytes = checkpoint::save(&mut first.0, &identity, 0.0).expect("saved");
        kill(first);
        let gone = checkpoint::dropped_out(&bytes).expect("sound");
        assert_eq!(gone.len(), usize::from(lose));
        // With its checkpoint the run asks no party again.
        let silent = |_: usize, party: ObservedParty| {
            silent_party(party, |request| matches!(request, Request::Forward(_)))
        };
        let (mut resumed, _parties) =
            session(&sets, many(200, 4), folder.path(), gone.clone(), silent).expect("sound");
        checkpoint::load(&mut resumed, &identity, &bytes).expect("its own");
        assert!(resumed.epoch(&mut |_| true).expect("no party is asked").is_some());
        let (mut second, _parties) = session(&sets, many(200, 4), folder.path(), gone, wrap).expect("sound");
        let error = second.epoch(&mut |_| true).err().map(|error| error.to_string());
        (resumed.spent().and_then(|spent| spent.epsilon).expect("bounded"), error)
    };
    let (once, error) = run(false, &[]);
    assert_eq!(error, None, "the same bytes, once");
    let (_, error) = run(true, &[]);
    let error = error.expect("refused");
    assert!(error.contains("ε must be at most that of the planned run"), "{error}");
    assert_eq!(run(true, &["policy.most_epsilon=1000"]).1, None, "its policy has room for two");
    let (_, error) = run(true, &[&format!("policy.most_epsilon={}", 1.2 * once)]);
    assert!(error.is_some_and(|error| error.contains("policy.most_epsilon")), "not for two");
}

#[test]
fn refuses_a_release_with_an_unwritable_or_damaged_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, "train.epochs=1"];
    let mut first = plain(&sets, folder.path());
    for number in 0..3 {
        first.1[0].ask(step(&first.0, number, &[0, 1])).expect("planned");
    }
    drop(first);
    let path = ledger(folder.path(), 1);
    let sound = std::fs::read(&path).expect("there");
    let name = path.display().to_string();
    let ask = || {
        let mut session = plain(&sets, folder.path());
        let request = step(&session.0, 0, &[0]);
        session.1[0].ask(request)
    };
    let mut flipped = sound.clone();
    flipped[70] ^= 4;
    std::fs::write(&path, flipped).expect("writable");
    refused(ask(), &[&name, "damaged", "Restore a valid copy", "move the party's folder away"]);
    // A path that cannot be written: a link into a folder that does not exist.
    #[cfg(unix)]
    {
        std::fs::remove_file(&path).expect("there");
        std::os::unix::fs::symlink(folder.path().join("nowhere/ledger"), &path).expect("a link");
        refused(ask(), &["cannot write", &name]);
        std::fs::remove_file(&path).expect("there");
    }
    std::fs::create_dir(&path).expect("writable");
    refused(ask(), &[&name, "cannot be read"]);
    std::fs::remove_dir(&path).expect("empty");
    std::fs::write(&path, sound).expect("writable");
    assert!(ask().is_ok());
}

#[test]
fn refuses_a_state_without_its_ledger() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, "train.epochs=2"];
    let identity = serde_json::json!({"name": "test"});
    let mut first = plain(&sets, folder.path());
    losses(&mut first.0);
    let bytes = checkpoint::save(&mut first.0, &identity, 0.0).expect("saved");
    drop(first);
    let path = ledger(folder.path(), 2);
    let sound = std::fs::read(&path).expect("there");
    std::fs::write(&path, &sound[..sound.len() / 128 * 64]).expect("writable");
    let load = || checkpoint::load(&mut plain(&sets, folder.path()).0, &identity, &bytes);
    refused(load(), &["party \"second\"", &path.display().to_string(), "records; when the state was saved"]);
    std::fs::remove_file(&path).expect("there");
    refused(load(), &["has 0 records"]);
    std::fs::write(&path, sound).expect("writable");
    load().expect("its own");
}

/// The agreed settings may have a mechanism that no policy requires; a policy can require secure aggregation.
#[test]
fn policy_limits_the_aggregators() {
    let check = |sets: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        session(sets, many(100, 3), folder.path(), Vec::new(), |_, party| Box::new(party)).map(|_| ())
    };
    let sums = "policy.aggregators=[\"secure-average\"]";
    refused(check(&[sums]), &["policy.aggregators", "must name \"average\"", "secure-average"]);
    check(&[sums, SECURE]).expect("a sum");
    check(&[]).expect("any");
}

/// With a single honest party, the sum reveals that party's part.
#[test]
fn refuses_a_sum_over_fewer_than_two_honest_parties() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [SECURE, NOISE, "privacy.colluding=2"];
    let (trainer, mut parties) =
        session(&sets, many(100, 5), folder.path(), Vec::new(), |_, party| Box::new(party)).expect("sound");
    let ask = |party: &mut ObservedParty, active: &[u32]| {
        let Request::Forward(message) = step(&trainer, 0, active) else { panic!("it is made so") };
        party.ask(Request::Forward(Forward { attempt: Some(0), ..message }))
    };
    refused(
        ask(&mut parties[0], &[0, 1, 2]),
        &["3 parties are too few", "at least 4 are needed", "may collude"],
    );
    assert!(ask(&mut parties[0], &[0, 1, 2, 3]).is_ok());
}

/// After a party has searched its records for a set of keys, it accepts no other keys, whether it found links
/// or not. Keys that the party refuses before the search do not count.
#[test]
fn failed_linking_is_final() {
    let (experiment, machine) = (experiment(&[]), fet::run::machine(&flex()));
    let joined = || -> Secondary {
        let (_, tables) = divide(square(100, Task::Regression));
        let simulation = Simulation::new(&experiment, &machine);
        let mut party = simulation.secondaries(tables).expect("parties").swap_remove(0);
        let terms = fet_core::message::Terms { name: party.name().to_string(), ..terms(&experiment) };
        party.ask(Request::Join(terms)).expect("its own terms");
        party
    };
    let link = |party: &mut Secondary, rows: usize, columns: usize| {
        let keys = Matrix::new(columns, vec![0.5; columns * rows]).into();
        party.ask(Request::Link(LinkKeys { keys }))
    };
    let mut party = joined();
    refused(link(&mut party, 99, 2), &["100 records"]);
    assert!(matches!(link(&mut party, 100, 2), Ok(Reply::Linked(_))), "the party had not searched before");
    let mut party = joined();
    refused(link(&mut party, 100, 3), &["3"]);
    refused(link(&mut party, 100, 2), &["or tried to", "links once"]);
}
