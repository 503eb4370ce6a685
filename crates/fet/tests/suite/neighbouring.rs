//! Compares the effect of one record on its owner's releases, and the cost of one release, with the account.
//!
//! The tests drive the parties by messages alone, like a primary.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use fet_core::data::{Bounds, Keys, Matrix, PartyTable, Standardise, Task, TextTable, VerticalData};
use fet_core::message::{Forward, LinkKeys, Reply, Request, Round, Terms};
use fet_core::party::Party;
use fet_core::privacy::Guarantee;
use fet_federation::secondary::{PartyConfig, Secondary};
use fet_federation::simulation::ObservedParty;
use fet_federation::trainer::Trainer;

use crate::account::{session, step};
use crate::support::{
    experiment, flex, intercepted, losses, party_config, square, terms, trainer, vanishing_party, watched,
    with_copies,
};

const ROWS: usize = 100;

const FROZEN: [&str; 4] =
    ["privacy.learning=frozen", "privacy.neighbouring=record", "privacy.noise=1", "train.epochs=1"];

fn table() -> PartyTable {
    square(ROWS, Task::Regression).secondaries.swap_remove(0)
}

/// Returns a party with this table, the terms that it agrees to, and the warnings to its operator.
fn party(
    sets: &[&str],
    table: PartyTable,
    standardise: Standardise,
) -> (Secondary, Terms, Arc<Mutex<Vec<String>>>) {
    let experiment = experiment(sets);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&told);
    let party = Secondary::new(PartyConfig {
        seed: fet_core::rng::OwnSeed::simulated(0, 1),
        tell: Arc::new(move |warning| heard.lock().expect("no panic").push(warning)),
        ..party_config(&experiment, table, 1, 2)
    });
    let terms = Terms { rows: ROWS, standardise, ..terms(&experiment) };
    (party, terms, told)
}

/// Returns the releases of a party with this table, one block for each row.
fn released(sets: &[&str], table: PartyTable) -> Vec<Vec<f32>> {
    let (mut party, terms, _) = party(sets, table, Standardise::ALL);
    party.ask(Request::Join(terms)).expect("joined");
    release(&mut party)
}

/// Returns the releases of a party that has joined.
fn release(party: &mut Secondary) -> Vec<Vec<f32>> {
    let data = square(ROWS, Task::Regression);
    party.ask(Request::Link(LinkKeys { keys: data.primary.keys })).expect("linked");
    let rows = (0..ROWS as u32).collect();
    let forward = Forward { round: Round::Once { batch: 0 }, rows, active: vec![0, 1], attempt: None };
    let Ok(Reply::Representation(block)) = party.ask(Request::Forward(forward)) else {
        panic!("a party in the clear sends its representation")
    };
    let [rows, neighbours, width] = block.shape();
    assert_eq!(rows, ROWS);
    block.into_values().chunks(neighbours * width).map(<[f32]>::to_vec).collect()
}

/// Returns the distance between each row's two blocks. Both have the same noise, so only rounding errors of
/// the noise remain.
fn distances(a: &[Vec<f32>], b: &[Vec<f32>]) -> Vec<f64> {
    let distance = |a: &Vec<f32>, b: &Vec<f32>| {
        a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
    };
    a.iter().zip(b).map(|(a, b)| distance(a, b)).collect()
}

fn guarantee(sets: &[&str]) -> Guarantee {
    let mut trainer = trainer(&experiment(sets), square(ROWS, Task::Regression), &flex()).expect("a trainer");
    losses(&mut trainer);
    trainer.spent().and_then(|spent| spent.guarantee).expect("a guarantee")
}

/// Returns the table with one record replaced by another key and another feature.
fn replaced(mut table: PartyTable, record: usize, key: [f64; 2], feature: f32) -> PartyTable {
    let mut keys = table.keys.numbers().expect("numbers").values().to_vec();
    keys[2 * record..2 * record + 2].copy_from_slice(&key);
    table.keys = Matrix::new(2, keys).into();
    let mut features = table.features.numbers().expect("numbers").clone();
    features.values_mut()[record] = feature;
    table.features = features.into();
    table
}

/// Returns the blocks of the first training step, with negligible noise.
fn first_step(sets: &[&str], table: PartyTable) -> Vec<Vec<f32>> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut data = square(ROWS, Task::Regression);
    data.secondaries[0] = table;
    let plain = |_: usize, party: ObservedParty| -> Box<dyn Party> { Box::new(party) };
    let (trainer, mut parties) = session(sets, data, folder.path(), Vec::new(), plain).expect("a session");
    let Ok(Reply::Representation(block)) = parties[0].ask(step(&trainer, 0, &[0, 1])) else {
        panic!("a party in the clear sends its representation")
    };
    let [_, neighbours, width] = block.shape();
    block.into_values().chunks(neighbours * width).map(<[f32]>::to_vec).collect()
}

/// While models learn, they draw dropout masks: the masks of a row must not depend on records that are not
/// its neighbours.
#[test]
fn dropout_masks_depend_only_on_a_rows_neighbours() {
    for model in
        [&["encoder.kind=mlp", "method.dropout=0.5"][..], &["encoder.kind=transformer", "method.dropout=0.5"]]
    {
        let noise = ["privacy.kind=gaussian", "privacy.learning=assumed", "privacy.max_occurrences=1"];
        let noise =
            [&noise[..], &["privacy.neighbouring=record", "privacy.noise=1e-6", "train.epochs=1"]].concat();
        let sets: Vec<&str> = noise.into_iter().chain(model.iter().copied()).collect();
        let before = first_step(&sets, table());
        for record in (0..ROWS).step_by(9) {
            let away = table().keys.numbers().expect("numbers").row((record + 50) % ROWS).to_vec();
            let after = first_step(&sets, replaced(table(), record, [away[0], away[1]], -0.4));
            let changed = distances(&before, &after).iter().filter(|&&distance| distance > 1e-3).count();
            assert!(changed <= 2, "{model:?}, record {record}: {changed} rows change, 2 are counted");
        }
    }
}

/// A replaced record leaves the rows that it served and joins others. The account counts all of these rows,
/// and the whole release moves by at most the account's sensitivity.
#[test]
fn replaced_record_changes_at_most_the_counted_rows() {
    for kind in ["privacy.kind=gaussian", "privacy.kind=discrete-gaussian"] {
        for limit in [1, 3] {
            let limited = format!("privacy.max_occurrences={limit}");
            let sets = [&[kind, limited.as_str()], FROZEN.as_slice()].concat();
            let Guarantee { occurrences, clip, .. } = guarantee(&sets);
            let before = released(&sets, table());
            let mut most = 0;
            for record in (0..ROWS).step_by(7) {
                let away = table().keys.numbers().expect("numbers").row((record + 50) % ROWS).to_vec();
                let after = released(&sets, replaced(table(), record, [away[0], away[1]], -0.4));
                let distances = distances(&before, &after);
                // A value may be rounded to the integer on either side; a row that changes moves much
                // farther.
                let changed = distances.iter().filter(|&&distance| distance > 0.02 * clip).count();
                assert!(changed <= occurrences, "{kind}, {limit}: {changed} rows, {occurrences} counted");
                let whole = distances.iter().map(|distance| distance.powi(2)).sum::<f64>().sqrt();
                // With two parties, each row's block is within a ball of radius C/2.
                let bound = clip * (occurrences as f64).sqrt();
                assert!(
                    whole <= bound * (1.0 + 1e-3),
                    "{kind}, {limit}: moved by {whole}, {bound} accounted"
                );
                most = most.max(changed);
            }
            assert!(most > limit, "{kind}, {limit}: some record leaves rows and joins others, not {most}");
        }
    }
}

/// An outlier moves only the rows that it serves, and all other rows keep every bit: a secondary treats each
/// record independently of the others.
#[test]
fn outlier_moves_only_the_rows_that_it_serves() {
    for kind in ["privacy.kind=gaussian", "privacy.kind=discrete-gaussian"] {
        let sets = [&[kind, "privacy.max_occurrences=2"], FROZEN.as_slice()].concat();
        let before = released(&sets, table());
        let mut most = 0;
        for record in [0, 31, 64] {
            let key = table().keys.numbers().expect("numbers").row(record).to_vec();
            let after = released(&sets, replaced(table(), record, [key[0], key[1]], 1e3));
            let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
            assert!(changed <= 2, "{kind}: an outlier in record {record} changes {changed} of {ROWS} rows");
            most = most.max(changed);
        }
        assert!(most > 0, "{kind}: an outlier changes the rows that it serves");
    }
}

/// Without declared ranges one record would move every row through means and deviations, so the party itself
/// refuses a private run, with advice.
///
/// Runs without scaling or without protection need no ranges.
#[test]
fn refuses_private_runs_with_scaling_by_statistics() {
    let private = [&["privacy.kind=discrete-gaussian"], FROZEN.as_slice()].concat();
    let without = || PartyTable { bounds: None, ..table() };
    let with = |change: fn(&mut Bounds)| {
        let mut table = table();
        table.bounds.as_mut().map(change).expect("it has ranges");
        table
    };
    let features = Standardise { keys: false, features: true };
    let keys = Standardise { keys: true, features: false };
    let none = Standardise { keys: false, features: false };
    let check = |sets: &[&str], table: PartyTable, standardise, refused: Option<&str>| {
        let (mut party, terms, _) = party(sets, table, standardise);
        match (party.ask(Request::Join(terms)), refused) {
            (Ok(Reply::Joined(_)), None) => (),
            (Err(error), Some(part)) => {
                let error = error.to_string();
                for part in [part, "of \"first\"", "privacy.kind", "declared ranges", "`bounds` in `data`"] {
                    assert!(error.contains(part), "{part} in {error}");
                }
            }
            (found, _) => panic!("{sets:?} {standardise:?}: {found:?}, not {refused:?}"),
        }
    };
    check(&private, table(), Standardise::ALL, None);
    check(&private, without(), Standardise::ALL, Some("the features"));
    check(&private, without(), features, Some("the features"));
    check(&private, without(), keys, Some("the keys"));
    check(&private, without(), none, None);
    check(&private, with(|bounds| bounds.keys.clear()), Standardise::ALL, Some("the keys"));
    check(&private, with(|bounds| bounds.keys.clear()), features, None);
    check(&private, with(|bounds| bounds.features.push([0.0, 1.0])), Standardise::ALL, Some("the features"));
    check(&private, with(|bounds| bounds.features[0] = [1.0, 1.0]), features, Some("the features"));
    check(&private, with(|bounds| bounds.keys[1][0] = f64::NAN), Standardise::ALL, Some("the keys"));
    check(&[], without(), Standardise::ALL, None);
    let text = |bounds: Option<Bounds>| {
        let names = (0..ROWS).map(|row| format!("name {row}")).collect();
        PartyTable { keys: Keys::Text(TextTable::new(1, names)), bounds, ..table() }
    };
    let ranges = Bounds { keys: Vec::new(), features: vec![[-0.5, 0.5]] };
    let edit = ["linker.kind=edit", "linker.neighbours=4"];
    check(&[private.as_slice(), &edit].concat(), text(Some(ranges)), Standardise::ALL, None);
    check(&[private.as_slice(), &edit].concat(), text(None), keys, Some("the keys"));
}

/// A diverged model releases only noise, and its operator gets a warning.
#[test]
fn releases_noise_for_nan_blocks_and_warns_the_operator() {
    for kind in ["privacy.kind=gaussian", "privacy.kind=discrete-gaussian"] {
        let sets = [&[kind], FROZEN.as_slice()].concat();
        let made = |value: Option<f32>| {
            let (mut party, terms, told) = party(&sets, table(), Standardise::ALL);
            party.ask(Request::Join(terms)).expect("joined");
            let mut parameters = party.parameters().expect("it has joined").clone();
            if let Some(value) = value {
                parameters.split_mut().1.fill(value);
            }
            party.load(&parameters).expect("its own parameters");
            let blocks = release(&mut party);
            party.ask(Request::Finish).expect("finished");
            (blocks, told.lock().expect("no panic").join("\n"))
        };
        let ((noise, silent), (broken, told)) = (made(Some(0.0)), made(Some(f32::NAN)));
        assert_eq!(silent, "", "{kind}");
        assert!(noise == broken, "{kind}: of a model of NaN nothing leaves but noise");
        assert!(made(None).0 != noise, "{kind}: of a sound model something else does");
        for part in ["100 of 100 blocks hold NaN", "sent as zeros", "100 blocks held NaN"] {
            assert!(told.contains(part), "{kind}: {part} in {told}");
        }
    }
}

/// Returns `square` with six secondaries.
fn six() -> VerticalData {
    with_copies(square(200, Task::Regression), &["third", "fourth", "fifth", "sixth"])
}

/// Last attempt of each round with its number of parties, as the parties received it.
type Heard = Arc<Mutex<BTreeMap<u64, (u32, usize)>>>;

/// Trains with six parties, four in each step; the second and the third drop out at these steps.
fn losing(sets: &[&str], from: [u64; 2]) -> (Trainer, Heard) {
    let base = [
        "aggregator.kind=secure-average",
        "privacy.kind=discrete-gaussian",
        "privacy.neighbouring=record",
        "method.party_dropout=0.2",
    ];
    let heard = Heard::default();
    let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
        let heard = Arc::clone(&heard);
        let party = intercepted(party, move |party, request| {
            if let Request::Forward(Forward { round, active, attempt, .. }) = &request {
                let mut heard = heard.lock().expect("no panic");
                let last = heard.entry(round.key()).or_default();
                *last = (*last).max((attempt.unwrap_or(0), active.len()));
            }
            party.ask(request)
        });
        let from = if (1..=2).contains(&index) { from[index - 1] } else { u64::MAX };
        vanishing_party(party, Arc::new(AtomicU64::new(from)))
    };
    let experiment = experiment(&[&base, sets].concat());
    (watched(&experiment, six(), &flex(), wrap).expect("a trainer").0, heard)
}

/// Two parties drop out in different draws. The ε covers every single release with its actual parties, and
/// the evaluations of test rows that the account charges although they do not happen.
#[test]
fn charges_every_release_with_its_actual_parties() {
    let (mut trainer, heard) =
        losing(&["privacy.noise=30", "policy.most_epsilon=1000", "train.epochs=4"], [2, 7]);
    while !trainer.is_done() {
        losses(&mut trainer);
    }
    assert_eq!(trainer.federation().dropped(), [1, 2]);
    let heard: Vec<usize> = heard.lock().expect("no panic").values().map(|(_, active)| *active).collect();
    for active in [3, 4, 5] {
        assert!(heard.contains(&active), "some release is of {active} parties: {heard:?}");
    }
    let spent = trainer.spent().expect("others take part");
    let Guarantee { releases, occurrences, .. } = spent.guarantee.expect("a guarantee");
    let mu = |parties: &[usize]| {
        let one = |&active: &usize| 4.0 * occurrences as f64 / (30.0 * active as f64).powi(2);
        parties.iter().map(one).sum::<f64>().sqrt()
    };
    let epsilon = |parties: &[usize]| fet_privacy::accountant::gaussian::epsilon(mu(parties), spent.delta);
    let found = spent.epsilon.expect("bounded");
    let charged = releases as usize - heard.len();
    let least = epsilon(&heard);
    let most = epsilon(&[heard.as_slice(), &vec![4; charged]].concat());
    assert!(charged <= 3, "test evaluations after the first epoch may not have happened: {charged}");
    assert!(found >= least * (1.0 - 1e-12), "{found} and {least} of {heard:?}");
    assert!(found <= most * 1.001, "{found} and {most} of {heard:?}, {charged} more charged");
}

/// If fewer than a majority of a step's parties remain, there can be no sum: the run skips the step and
/// continues.
#[test]
fn skips_a_step_with_too_few_parties_for_a_sum() {
    let sets =
        ["privacy.noise=30", "policy.most_epsilon=1000", "train.epochs=2", "method.party_dropout=0.34"];
    for (from, gone) in [([u64::MAX; 2], vec![]), ([2, 7], vec![1, 2])] {
        let (mut trainer, _) = losing(&sets, from);
        while !trainer.is_done() {
            assert!(losses(&mut trainer).iter().all(|loss| loss.is_finite()));
        }
        assert_eq!((trainer.progress().epochs.len(), trainer.federation().dropped()), (2, gone.as_slice()));
        let said = trainer.warnings().join("\n");
        assert_eq!(said.contains("training steps are left out"), !gone.is_empty(), "{said}");
    }
}

/// A run that loses parties costs more than planned: it stops before the epoch that would exceed the target.
#[test]
fn run_stops_before_the_epoch_that_exceeds_its_target() {
    let sets = ["privacy.target_epsilon=8", "train.epochs=8"];
    let (mut whole, _) = losing(&sets, [u64::MAX; 2]);
    let mut epsilon_of_one_epoch = 0.0;
    while !whole.is_done() {
        losses(&mut whole);
    }
    let spent = |trainer: &Trainer| trainer.spent().and_then(|spent| spent.epsilon).expect("bounded");
    assert_eq!(whole.progress().epochs.len(), 8, "a run without dropped parties is complete");
    assert!(spent(&whole) <= 8.0);
    let (mut trainer, _) = losing(&sets, [2, 7]);
    while !trainer.is_done() {
        let before = trainer.spent().and_then(|spent| spent.epsilon).unwrap_or(0.0);
        losses(&mut trainer);
        epsilon_of_one_epoch = spent(&trainer) - before;
    }
    let (epochs, found) = (trainer.progress().epochs.len(), spent(&trainer));
    assert!(epochs < 8 && found <= 8.0, "{epochs} epochs for {found}");
    assert!(found + epsilon_of_one_epoch > 8.0, "another epoch of {epsilon_of_one_epoch} passes it: {found}");
    let said = trainer.warnings().join("\n");
    for part in ["privacy.target_epsilon", "stopped", &format!("{epochs} of 8 epochs"), "lost"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!trainer.best().segments().is_empty(), "its best model is kept");
}
