//! Tests a restarted party, and a primary that then sends it different requests.

use std::path::Path;

use fet_core::data::{Features, VerticalData};
use fet_core::message::{Backward, Block, Epoch, Forward, Reply, Request, Round, Terms};
use fet_core::party::{Failure, Party};
use fet_federation::checkpoint;
use fet_federation::simulation::ObservedParty;
use fet_federation::trainer::{RunError, Trainer};
use fet_privacy::accountant::{Account, Event};

use crate::account::{NOISE, kill, many, plain, refused, session, step};
use crate::support::intercepted;

const OWN: &str = "train.randomness=own";

/// Starts a session in which the first party gets changed requests.
fn changed(
    sets: &[&str],
    folder: &Path,
    change: impl FnMut(&mut Request) + Clone + Send + 'static,
) -> (Trainer, Vec<ObservedParty>) {
    let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
        if index != 0 {
            return Box::new(party);
        }
        let mut change = change.clone();
        intercepted(party, move |party, mut request| {
            change(&mut request);
            party.ask(request)
        })
    };
    session(sets, many(100, 2), folder, Vec::new(), wrap).expect("a trainer")
}

fn ledgers(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder.join("party1")).expect("a folder").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("ledger-")).count()
}

/// The primary writes the text of the terms; a comment in them does not make another run with an empty
/// account.
#[test]
fn wording_of_terms_does_not_open_another_account() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, OWN, "train.epochs=1"];
    let mut first = plain(&sets, folder.path());
    let request = step(&first.0, 0, &[0, 1]);
    let reply = first.1[0].ask(request.clone()).expect("planned");
    kill(first);
    let mut second = changed(&sets, folder.path(), |request| {
        if let Request::Join(Terms { settings, settings_hash, .. }) = request {
            settings.push_str("\n# another run?\n");
            *settings_hash = fet_io::sha256(settings.as_bytes());
        }
    });
    assert_eq!(second.1[0].ask(request).expect("the same again"), reply);
    assert_eq!(ledgers(folder.path()), 1);
}

/// If a release under other keys had the same noise, the primary would learn whether the same records are
/// near both sets of keys. The party therefore accepts one set of keys per run, and refuses all others in the
/// same way, near or far.
#[test]
fn restarted_party_refuses_other_keys_and_other_numbers_of_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, OWN, "train.epochs=1"];
    let mut first = plain(&sets, folder.path());
    let request = step(&first.0, 0, &[0, 1]);
    first.1[0].ask(request.clone()).expect("planned");
    kill(first);
    let mut errors = Vec::new();
    for moved in [1e-12, 0.5] {
        let mut second = changed(&sets, folder.path(), move |request| {
            if let Request::Link(message) = request {
                let numbers = message.keys.numbers().expect("numbers");
                let mut values = numbers.values().to_vec();
                values[7] += moved;
                message.keys = fet_core::data::Matrix::new(numbers.columns(), values).into();
            }
        });
        let error = second.1[0].ask(request.clone()).expect_err("refused").to_string();
        refused::<()>(
            Err(&error),
            &["belongs to a run with other terms", "other keys", "start the run again"],
        );
        errors.push(error);
    }
    assert_eq!(errors[0], errors[1], "it does not say how near");
    let wrap = |_: usize, party: ObservedParty| -> Box<dyn Party> { Box::new(party) };
    let mut more = session(&sets, many(120, 2), folder.path(), Vec::new(), wrap).expect("a trainer");
    let request = step(&more.0, 0, &[0, 1]);
    refused(more.1[0].ask(request), &["another number of records of the primary"]);
    // With the original keys the run continues.
    let mut last = plain(&sets, folder.path());
    let request = step(&last.0, 0, &[0, 1]);
    assert!(last.1[0].ask(request).is_ok());
}

/// Two releases with the same values have different noise if their history differs: here the gradients
/// differ, but the step size removes their effect.
#[test]
fn noise_depends_on_received_messages_even_without_effect() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, OWN, "train.epochs=4"];
    let run = |value: f32| {
        let mut session = plain(&sets, folder.path());
        let party = &mut session.1[0];
        let first = party.ask(step(&session.0, 0, &[0, 1])).expect("planned");
        let Reply::Representation(block) = &first else { panic!("{first:?}") };
        let shape = block.shape();
        let gradient = Block::new(shape, vec![value; shape.iter().product()]).expect("it fills its shape");
        let round = Round::Train { step: 0 };
        party.ask(Request::Backward(Backward { round, gradient, learning_rate: 0.0 })).expect("taken");
        let second = party.ask(step(&session.0, 1, &[0, 1])).expect("planned");
        kill(session);
        (first, second)
    };
    let (one, again, other) = (run(1.0), run(1.0), run(2.0));
    assert_eq!(one, again);
    assert_eq!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

/// The number of parties determines the clipping bound of blocks, and therefore the effect of a gradient on a
/// clipped block.
///
/// A later release must not reveal this by whether it repeats a release of an earlier session.
#[test]
fn noise_depends_on_the_request_of_the_gradients_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [NOISE, OWN, "privacy.noise=200", "train.epochs=4"];
    let last = |active: &[u32]| {
        let mut session = plain(&sets, folder.path());
        let party = &mut session.1[0];
        let first = party.ask(step(&session.0, 0, active)).expect("planned");
        let Reply::Representation(block) = first else { panic!("a block") };
        let gradient =
            Block::new(block.shape(), vec![0.0; block.values().len()]).expect("it fills its shape");
        let round = Round::Train { step: 0 };
        party.ask(Request::Backward(Backward { round, gradient, learning_rate: 0.0 })).expect("taken");
        let last = party.ask(step(&session.0, 1, &[0])).expect("planned");
        kill(session);
        last
    };
    assert_eq!(last(&[0, 1]), last(&[0, 1]));
    assert_ne!(last(&[0, 1]), last(&[0]), "no block was changed by it, and yet it is another history");
}

/// Each session of a sum has new noise at every party, so that a primary cannot have some parties repeat
/// theirs and subtract it.
#[test]
fn counts_a_repeated_sum_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = ["aggregator.kind=secure-average", NOISE, OWN, "train.epochs=1"];
    let wrap = |_: usize, party: ObservedParty| -> Box<dyn Party> { Box::new(party) };
    let open = || session(&sets, many(100, 3), folder.path(), Vec::new(), wrap).expect("a trainer");
    let mut first = open();
    assert!(first.0.epoch(&mut |_| true).is_ok());
    kill(first);
    let mut second = open();
    let error = second.0.epoch(&mut |_| true).expect_err("five were planned").to_string();
    refused::<()>(Err(error), &["account refuses", "must be at most that of the planned run"]);
}

/// `psi` blinds keys with a newly drawn exponent: a run without an account continues, a run with an account
/// reports that it cannot.
#[test]
fn continues_with_newly_blinded_keys_only_without_an_account() {
    let identity = serde_json::json!({"name": "test"});
    let resumed = |sets: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        let sets = [&["linker.kind=psi", "linker.neighbours=1", "train.epochs=2"], sets].concat();
        let mut first = plain(&sets, folder.path());
        first.0.epoch(&mut |_| true).expect("an epoch");
        let bytes = checkpoint::save(&mut first.0, &identity, 0.0).expect("saved");
        kill(first);
        checkpoint::load(&mut plain(&sets, folder.path()).0, &identity, &bytes)
            .map_err(|error| error.to_string())
    };
    resumed(&[]).expect("the same run");
    refused(resumed(&[NOISE]), &["Load", "another run", "encodes keys differently"]);
}

/// A checksum of a party's saved state would depend on its records and reveal them.
#[test]
fn name_of_a_saved_state_reveals_no_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = plain(&[NOISE, OWN], folder.path());
    let mut save = || session.1[0].ask(Request::Save(Epoch { epoch: 1 })).expect("saved");
    let (first, second) = (save(), save());
    let (Reply::Saved(first), Reply::Saved(second)) = (first, second) else { panic!("two saved states") };
    assert_ne!(first.tag, second.tag, "the same state twice");
    kill(session);
    let mut again = plain(&[NOISE, OWN], folder.path());
    refused(again.1[0].ask(Request::Load(first)), &["does not belong to the primary's checkpoint"]);
    again.1[0].ask(Request::Load(second)).expect("its own");
}

/// Settings with a guarantee by sampling, for parties with their own seeds.
const SAMPLED: [&str; 9] = [
    NOISE,
    OWN,
    "train.batches=poisson",
    "privacy.neighbouring=add-remove",
    "privacy.learning=assumed",
    "privacy.max_occurrences=1",
    "privacy.amplification=true",
    "privacy.sample_rate=0.2",
    "method.dropout=0",
];

fn three(sets: &[&str], folder: &Path) -> (Trainer, Vec<ObservedParty>) {
    let wrap = |_: usize, party: ObservedParty| -> Box<dyn Party> { Box::new(party) };
    session(sets, many(100, 3), folder, Vec::new(), wrap).expect("a trainer")
}

/// Returns the reply to the first training step, and the gradient of the party's model for it.
///
/// The gradient depends on the records that the step drew, but not on the noise.
fn first_step(
    session: &mut (Trainer, Vec<ObservedParty>),
    active: &[u32],
    attempt: Option<u32>,
) -> Result<(Reply, Vec<f32>), Failure> {
    let Request::Forward(message) = step(&session.0, 0, active) else { unreachable!("a forward request") };
    let party = &mut session.1[0];
    let reply = party.ask(Request::Forward(Forward { attempt, ..message }))?;
    let shape = match &reply {
        Reply::Representation(block) => block.shape(),
        Reply::Masked(masked) => masked.shape,
        other => panic!("{other:?}"),
    };
    let gradient = Block::new(shape, vec![1.0; shape.iter().product()]).expect("it fills its shape");
    let round = Round::Train { step: 0 };
    party.ask(Request::Backward(Backward { round, gradient, learning_rate: 0.0 })).expect("taken");
    let gradient = party.lock().gradient().expect("it has joined").to_vec();
    Ok((reply, gradient))
}

/// Attacks amplification by sampling: a primary repeats the first step in ten sessions without sending
/// gradients.
///
/// If all sessions had the same sample, ten releases would cost as much as one release with a tenth of the
/// noise's variance.
#[test]
fn repeated_sum_draws_a_new_sample_and_is_charged() {
    let event = |noise, steps| Event { noise, rate: 0.01, steps };
    let epsilon = |event| Account::from_events(&[event], 1e-5).expect("sound").epsilon();
    let (charged, one_sample) = (epsilon(event(1.0, 10)), epsilon(event(0.1f64.sqrt(), 1)));
    assert!((charged - 0.38).abs() < 0.01 && (one_sample - 9.47).abs() < 0.05, "{charged} and {one_sample}");

    let folder = tempfile::tempdir().expect("a folder");
    let sets = [SAMPLED.as_slice(), &["aggregator.kind=secure-average", "train.epochs=2"]].concat();
    let mut samples: Vec<Vec<f32>> = Vec::new();
    for number in 0..10 {
        let mut session = three(&sets, folder.path());
        let (_, sample) = first_step(&mut session, &[0, 1, 2], Some(0)).expect("planned");
        // Two independent samples of 100 records are equal with probability 0.68^100, below 1e-16.
        assert!(samples.iter().all(|earlier| *earlier != sample), "session {number} repeats a sample");
        samples.push(sample);
        kill(session);
    }
    // The account charged each session: nothing remains of the plan of ten.
    let mut last = three(&sets, folder.path());
    let error = first_step(&mut last, &[0, 1, 2], Some(0));
    refused(error, &["account refuses", "`privacy.amplification`", "it is number 11 of 10, with 3 parties"]);
}

/// If the primary sees each part, a repeated release has the same bytes of the same sample and costs nothing.
/// Any other release has a new sample.
///
/// The party does not release the same sample with other values, such as those of another device.
#[test]
fn clear_release_repeats_both_sample_and_noise_or_neither() {
    let folder = tempfile::tempdir().expect("a folder");
    let sets = [SAMPLED.as_slice(), &["policy.probes=true", "train.epochs=1"]].concat();
    let first = |active: &[u32]| {
        let mut session = plain(&sets, folder.path());
        let found = first_step(&mut session, active, None).expect("planned, or not limited");
        kill(session);
        found
    };
    let (one, again, other) = (first(&[0, 1]), first(&[0, 1]), first(&[0]));
    assert_eq!(one, again);
    assert!(one.0 != other.0 && one.1 != other.1, "another request draws another sample");
    assert_eq!(first(&[0]), other);
    // With almost no noise, the values of a probe show its sample. The same rows in another order are another
    // release.
    let (seen, tiny) = (["privacy.kind=gaussian"], ["privacy.noise=0.000001", "policy.probes=true"]);
    let seen = [seen.as_slice(), &SAMPLED[1..], &tiny].concat();
    let probe = |rows: Vec<u32>| {
        let mut session = plain(&seen, folder.path());
        let (round, active) = (Round::Probe { batch: 0 }, vec![0, 1]);
        let reply = session.1[0].ask(Request::Forward(Forward { round, rows, active, attempt: None }));
        let Ok(Reply::Representation(block)) = reply else { panic!("its policy allows probes: {reply:?}") };
        kill(session);
        let [_, neighbours, width] = block.shape();
        block.into_values().chunks(neighbours * width).map(<[f32]>::to_vec).collect::<Vec<_>>()
    };
    let is_same = |a: &[Vec<f32>], b: &[Vec<f32>]| {
        a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-5)
    };
    let (one, again) = (probe((0..50).collect()), probe((0..50).collect()));
    let mut other = probe((0..50).rev().collect());
    other.reverse();
    assert_eq!(one, again);
    assert!(!is_same(&one, &other), "the sample of a probe follows from more than the round");
    let mut session = plain(&sets, folder.path());
    let mut parameters = session.1[0].lock().parameters().expect("it has joined").clone();
    parameters.split_mut().1.fill(0.01);
    session.1[0].lock().load(&parameters).expect("its own parameters");
    refused(
        first_step(&mut session, &[0, 1], None),
        &["the same sample of records", "training step 1", "another `seed`"],
    );
}

/// The micro-batches of the only release of frozen parties share a sample. In another session of a sum the
/// sample is new, so it is another pass over the rows, although no micro-batch was released twice.
#[test]
fn micro_batches_of_different_samples_form_no_common_pass() {
    let sets = [
        SAMPLED.as_slice(),
        &["privacy.learning=frozen", "train.evaluation_batch_size=64", "train.epochs=1"],
    ];
    let portion = |session: &mut (Trainer, Vec<ObservedParty>), batch: u32, attempt| {
        let rows = session.0.schedule().portion(batch as usize).expect("two portions");
        let rows = rows.map(|row| row as u32).collect();
        let message = Forward { round: Round::Once { batch }, rows, active: vec![0, 1, 2], attempt };
        session.1[0].ask(Request::Forward(message))
    };
    for (aggregator, attempt) in [("average", None), ("secure-average", Some(0))] {
        let folder = tempfile::tempdir().expect("a folder");
        let aggregator = format!("aggregator.kind={aggregator}");
        let sets = [sets.concat(), vec![aggregator.as_str()]].concat();
        let mut first = three(&sets, folder.path());
        portion(&mut first, 0, attempt).expect("planned");
        kill(first);
        let mut second = three(&sets, folder.path());
        let answer = portion(&mut second, 1, attempt);
        match attempt {
            None => assert!(answer.is_ok(), "{answer:?}"),
            Some(_) => refused(answer, &["passes over the rows", "must be those planned", "number 2 of 1"]),
        }
    }
}

/// Returns the checkpoint of a run after one epoch; its parties keep their state in `folder`.
fn saved(folder: &Path) -> Vec<u8> {
    let mut first = plain(&["train.epochs=3"], folder);
    first.0.epoch(&mut |_| true).expect("an epoch");
    let bytes = checkpoint::save(&mut first.0, &serde_json::Value::Null, 0.0).expect("saved");
    kill(first);
    bytes
}

fn continued(data: VerticalData, folder: &Path, bytes: &[u8]) -> Result<(), String> {
    let wrap = |_: usize, party: ObservedParty| -> Box<dyn Party> { Box::new(party) };
    let mut next = session(&["train.epochs=3"], data, folder, Vec::new(), wrap).expect("a trainer");
    let loaded = checkpoint::load(&mut next.0, &serde_json::Value::Null, bytes);
    loaded.map(drop).map_err(|error| error.to_string())
}

/// Otherwise the model would be an undetectable mixture of two tables.
#[test]
fn refuses_to_continue_with_another_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = saved(folder.path());
    let changed = |change: fn(&mut VerticalData)| {
        let mut data = many(100, 2);
        change(&mut data);
        continued(data, folder.path(), &bytes)
    };
    for (party, change) in [
        ("second", (|data| nudge(&mut data.secondaries[1].features)) as fn(&mut VerticalData)),
        ("first", |data| data.secondaries[0].keys = data.secondaries[1].keys.clone()),
        ("first", |data| data.secondaries[0].bounds = None),
        ("primary", |data| nudge(&mut data.primary.features)),
        ("primary", |data| data.labels[7] += 1.0),
    ] {
        let parts =
            [&format!("the table of \"{party}\"") as &str, "checksum", "now", "put the former table back"];
        refused(changed(change), &parts);
    }
    assert_eq!(changed(|_| ()), Ok(()), "with the tables that it began with it continues");
}

fn nudge(features: &mut Features) {
    let Features::Numbers(numbers) = features else { panic!("the tables are numbers") };
    numbers.values_mut()[99] += 0.25;
}

/// Party that restores its state in spite of another table, and reports this when it joins.
#[test]
fn primary_refuses_a_party_with_another_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = saved(folder.path());
    let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
        if index != 1 {
            return Box::new(party);
        }
        intercepted(party, |party, request| {
            let mut reply = party.ask(request)?;
            if let Reply::Joined(joined) = &mut reply {
                joined.table[0] ^= 1;
            }
            Ok(reply)
        })
    };
    let next: Result<_, RunError> =
        session(&["train.epochs=3"], many(100, 2), folder.path(), Vec::new(), wrap);
    let mut next = next.expect("a trainer");
    let loaded = checkpoint::load(&mut next.0, &serde_json::Value::Null, &bytes);
    refused(loaded, &["the table of \"second\"", "put the former table back"]);
}
